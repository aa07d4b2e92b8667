// Decayed rows, pairs and the inverse N of every chunk, all chunks in parallel (formulas: general_delta_problem.cuh).
// Pairs of strips I > J are (rows of I decayed since I's start, times the strips between) (rows of J decayed until J's
// end)^T. Everything is a sum over channels, taken kChannels at a time.
#include "kernels/cuda/delta_inverse.cuh"
#include "kernels/cuda/general_delta_chunk.cuh"

namespace sb::cuda::attention {
namespace {

constexpr int kJobs = 12;  // pairs of strips (1,0), (2,0), (2,1), (3,0), (3,1), (3,2), each for q and for e

// A and its inverse take the place of the tiles.
template <Product P>
struct PairLayout {
  using E = Operand<P>;
  static constexpr int LP = leading<E>(kChunk), LG = leading<E>(kGroup), one = 16 * LG;
  size_t tiles, scratch, A, inverse, matrices, diagonal, strips, bytes;
  __host__ __device__ PairLayout() {
    Pieces m;
    tiles = m.take<E>(4 * OperandTiles<E>::size);
    scratch = m.take<E>(8 * 2 * one);
    Pieces n;
    A = n.take<float>(kChunk * kFloatLd);
    inverse = n.take<float>(kChunk * kFloatLd);
    if (m.used < n.used) m.used = n.used;
    matrices = m.take<E>(3 * kChunk * LP);
    diagonal = m.take<float>(4 * kChunk * 16);
    strips = m.take<float>(4 * kChannels);
    bytes = m.used;
  }
};

// Sums over channels of the pairs in one strip
struct StripSums {
  float p[8] = {}, a[8] = {}, c[8] = {};  // by levels
  float same[4][2] = {};                  // of equal rows, for P, Q, E, A; partial sums of a lane

  // scratch: two tiles
  template <Product P, int LG>
  __device__ void add(const OperandTiles<Operand<P>>& rows, int column, BlockDecays& d, Operand<P>* scratch,
                      const Place& at) {
    Operand<P>* const second = scratch + 16 * LG;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float x[8], y[8];
      read_group(x, rows.strip(rows_q + i / 2, at.strip, column), rows.ld, at);
      read_group(y, rows.strip(rows_k + i % 2, at.strip, column), rows.ld, at);
#pragma unroll
      for (int e = 0; e < 8; ++e) same[i][e % 4 / 2] = fmaf(x[e], y[e], same[i][e % 4 / 2]);
    }
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      float tile[8], sums[3][1][2][4];
      level_tile(tile, rows, 0, column, d, 1 << l, at);
      write_group(tile, scratch, LG, at);
      level_tile(tile, rows, 1, column, d, 1 << l, at);
      write_group(tile, second, LG, at);
#pragma unroll
      for (int i = 0; i < 3; ++i) clear(sums[i]);
      __syncwarp();
      multiply<P, Depth::fast, Depth::fast, kGroup>(sums[0], scratch, LG, scratch, LG, at.lane);
      multiply<P, Depth::fast, Depth::fast, kGroup>(sums[1], second, LG, second, LG, at.lane);
      multiply<P, Depth::fast, Depth::fast, kGroup>(sums[2], scratch, LG, second, LG, at.lane);
      __syncwarp();
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int i = Element8::row(e, at), j = Element8::column(e, at);
        if (i == j || level_of(i, j) != l) continue;
        p[e] += sums[0][0][e / 4][e % 4];
        a[e] += sums[1][0][e / 4][e % 4];
        c[e] += sums[2][0][e / 4][e % 4];
      }
      d.merge(1 << l, at);
    }
  }
  __device__ void finish() {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) same[i][h] = sum_lanes(same[i][h], 1, 4);
  }
  // Calls put(matrix, row, column, value) for the lane's pairs j <= i of the strip; the matrix is of PairMatrix.
  template <class Put>
  __device__ void each(const Place& at, const Put& put) const {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = Element8::row(e, at), j = Element8::column(e, at), h = e % 4 / 2;
      if (i > j) {
        put(matrix_p, i, j, p[e]);
        put(matrix_a, i, j, a[e]);
        put(matrix_q, i, j, c[e]);
      } else if (i < j) {
        put(matrix_e, j, i, c[e]);
      } else {
        put(matrix_p, i, i, same[0][h]);
        put(matrix_q, i, i, same[1][h]);
        put(matrix_e, i, i, same[2][h]);
        put(matrix_a, i, i, same[3][h]);
      }
    }
  }
};

// Writes a row's channels of the tiles, decayed since the chunk's start or until its end, to memory. With erase_first,
// rows of e move to the next row, and the chunk's first one is not decayed.
template <class E>
__device__ void write_decayed_rows(const GeneralProblem& p, const ChunkPlace& c, const OperandTiles<E>& tiles,
                                   const float* strips, int first, const Place& at) {
  constexpr int part = 16 / sizeof(E), parts = kChannels / part;
  const int shift = p.in.erase_first ? 1 : 0;
  for (int i = at.thread; i < 4 * kChunk * parts; i += kBlock) {
    const int which = i / (kChunk * parts), r = i / parts % kChunk, column = i % parts * part, strip = r / 16;
    const int row = r + (which == rows_e ? shift : 0);
    if (first + column >= p.key_tile || row >= kChunk) continue;
    const bool reads = which == rows_q || which == rows_e;
    const float scale = which == rows_q ? p.in.scale : 1.f;
    uint4 x = *reinterpret_cast<const uint4*>(tiles.of(which) + r * tiles.ld + column);
    E* const x_e = reinterpret_cast<E*>(&x);
#pragma unroll
    for (int e = 0; e < part; ++e) {
      const float f = reads ? strips_between<kChannels>(strips, -1, strip, column + e)
                            : strips_between<kChannels>(strips, strip, 4, column + e);
      x_e[e] = from_float<E>(to_float(x_e[e]) * (scale * f));
    }
    *reinterpret_cast<uint4*>(p.rows_of<E>(p.rows, c.index, which) + row * p.key_tile + first + column) = x;
  }
  if (shift && at.thread < kChannels && first + at.thread < p.key_tile) {
    const HeadRows<const E> from(p.in.erase, c.b, c.begin, c.h, p.K);
    const int channel = first + at.thread;
    p.rows_of<E>(p.rows, c.index, rows_e)[channel] = channel < p.K ? from.data[channel] : from_float<E>(0);
  }
}

template <Product P>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 ? 2 : 1)
    general_pairs(const __grid_constant__ GeneralProblem p) {
  using E = Operand<P>;
  using L = PairLayout<P>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  const OperandTiles<E> tiles{reinterpret_cast<E*>(memory + at_bytes.tiles)};
  E* matrices = reinterpret_cast<E*>(memory + at_bytes.matrices);
  float *A = reinterpret_cast<float*>(memory + at_bytes.A),
        *inverse = reinterpret_cast<float*>(memory + at_bytes.inverse);
  float* diagonal = reinterpret_cast<float*>(memory + at_bytes.diagonal);
  float* strips = reinterpret_cast<float*>(memory + at_bytes.strips);

  const Place at;
  const ChunkPlace c(p);
  E* const scratch = reinterpret_cast<E*>(memory + at_bytes.scratch) + at.warp * 2 * L::one;
  const int c0 = at.half * kGroup;
  for (int i = at.thread; i < 3 * kChunk * L::LP; i += kBlock) matrices[i] = from_float<E>(0);
  StripSums sums;
  float between[2][2][1][2][4];  // by job; with k, with w
#pragma unroll
  for (int i = 0; i < 4; ++i) clear(between[i / 2][i % 2]);

  for (int first = 0; first < p.key_tile; first += kChannels) {
    tiles.copy(p, c, first, at);
    BlockDecays d;
    read_decays(d, p, c, first + c0, at);
    finish_copies();
    __syncthreads();
    if (first + c0 < p.key_tile) {
      sums.add<P, L::LG>(tiles, c0, d, scratch, at);
      decay_strip(tiles, c0, d, at);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (e % 4 < 2 && at.row == 0) strips[at.strip * kChannels + c0 + Element8::column(e, at)] = d.total[e];
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < 2; ++round) {
      const int job = round * 8 + at.warp, place = job / 2, I = place == 0 ? 1 : place < 3 ? 2 : 3;
      const int J = place - I * (I - 1) / 2;
      if (job >= kJobs) continue;
#pragma unroll
      for (int group = 0; group < kChannels; group += kGroup) {
        if (first + group >= p.key_tile) break;
        float row[8];
        read_group(row, tiles.strip(rows_q + job % 2, I, group), tiles.ld, at);
#pragma unroll
        for (int e = 0; e < 8; ++e) row[e] *= strips_between<kChannels>(strips, J, I, group + Element8::column(e, at));
        write_group(row, scratch, L::LG, at);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 2; ++i)
          multiply<P, Depth::fast, Depth::fast, kGroup>(between[round][i], scratch, L::LG,
                                                        tiles.strip(rows_k + i, J, group), tiles.ld, at.lane);
        __syncwarp();
      }
    }
    write_decayed_rows(p, c, tiles, strips, first, at);
    if (at.thread < kChannels && first + at.thread < p.key_tile)
      p.factors[c.index * p.key_tile + first + at.thread] = strips_between<kChannels>(strips, -1, 4, at.thread);
    __syncthreads();
  }

  for (int i = at.thread; i < kChunk * kFloatLd; i += kBlock) A[i] = inverse[i] = 0;
  sums.finish();
  const auto half_sum = [&](int matrix, int i, int j) -> float& {
    return diagonal[(matrix * kChunk + at.strip * 16 + i) * 16 + j];
  };
  if (at.half == 1) sums.each(at, [&](int matrix, int i, int j, float x) { half_sum(matrix, i, j) = x; });
  __syncthreads();
  const int shift = p.in.erase_first ? 1 : 0;
  const auto put = [&](int matrix, int i, int j, float x) {
    const bool erases = matrix == matrix_e || matrix == matrix_a;
    const int row = i + (erases ? shift : 0);
    if (row >= kChunk || (erases && j >= row)) return;
    if (matrix == matrix_a)
      A[row * kFloatLd + j] = x;
    else
      matrices[(matrix * kChunk + row) * L::LP + j] = from_float<E>(erases ? x : p.in.scale * x);
  };
  if (at.half == 0) {
    const int i0 = at.strip * 16;
    sums.each(at, [&](int matrix, int i, int j, float x) { put(matrix, i0 + i, i0 + j, x + half_sum(matrix, i, j)); });
  }
#pragma unroll
  for (int round = 0; round < 2; ++round) {
    const int job = round * 8 + at.warp, place = job / 2, I = place == 0 ? 1 : place < 3 ? 2 : 3;
    const int J = place - I * (I - 1) / 2;
    if (job >= kJobs) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      for_pairs(between[round][i], at, [&](int r, int column, float x, float y) {
        put(job % 2 * 2 + i, I * 16 + r, J * 16 + column, x);
        put(job % 2 * 2 + i, I * 16 + r, J * 16 + column + 1, y);
      });
  }
  __syncthreads();
  invert_chunk(A, inverse, at.warp);

  constexpr int part = 16 / sizeof(E), parts = kChunk / part;
  for (int i = at.thread; i < 4 * kChunk * parts; i += kBlock) {
    const int matrix = i / (kChunk * parts), r = i / parts % kChunk, column = i % parts * part;
    uint4 x;
    if (matrix == matrix_n) {
      E* const x_e = reinterpret_cast<E*>(&x);
#pragma unroll
      for (int e = 0; e < part; ++e) x_e[e] = from_float<E>(inverse[r * kFloatLd + column + e]);
    } else {
      x = *reinterpret_cast<const uint4*>(matrices + (matrix * kChunk + r) * L::LP + column);
    }
    *reinterpret_cast<uint4*>(p.matrix_of<E>(p.matrices, c.index, matrix) + r * kChunk + column) = x;
  }
}

struct Launch {
  const GeneralProblem& p;
  Target to;
  template <Product P>
  cudaError_t operator()() const {
    return launch(general_pairs<P>, dim3(static_cast<unsigned>(p.all_chunks())), kBlock, PairLayout<P>().bytes, to, p);
  }
};

}  // namespace
}  // namespace sb::cuda::attention

namespace sb::cuda {

cudaError_t launch_general_pairs(const GeneralProblem& p, Target to) {
  return attention::by_precision(p, attention::Launch{p, to});
}

}  // namespace sb::cuda
