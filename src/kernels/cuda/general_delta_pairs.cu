// Decayed rows, pairs and the inverse N of every chunk, all chunks in parallel (formulas: general_delta_problem.cuh).
// Pairs of strips I > J are (rows of I decayed since I's start, times the strips between) (rows of J decayed until J's
// end)^T. Everything is a sum over channels, taken C at a time.
#include "kernels/cuda/delta_inverse.cuh"
#include "kernels/cuda/general_delta_chunk.cuh"

namespace sb::cuda::attention {
namespace {

// Decay factors of the chunk's strips, per channel: from the chunk's start to the strip, the same times scale, from the
// strip to the chunk's end, and of the strips between 0 and 2, 1 and 3, 0 and 3
enum StripFactors { factors_before = 0, factors_scaled = 4, factors_after = 8, factors_between = 12, factor_rows = 15 };

// Sums over channels of the pairs in one strip: of C (general_delta_chunk.cuh) or, with two sides, of P, A and C in the
// 8 x 8 blocks on the diagonal, of C below and above them or P, A, Q and E^T, and of E, or A, on the diagonal
template <int Sides>
struct StripSums {
  static constexpr int tiles = Sides == 2 ? 3 : 1, corners = tiles + 1, count = 4 * tiles + 2 * corners + 2;
  float near[tiles][4] = {}, far[corners][2] = {}, same[2] = {};

  // Adds the channels of a group and decays it since the strip's start or until its end
  template <Product P>
  __device__ __forceinline__ void add(Group<Operand<P>> (&x)[2 + Sides], BlockDecays& d, const Place& at) {
    using E = Operand<P>;
    const auto add_if = [&](int matrix, const Sum(&sums)[2], bool first, bool second) {
      if (first) near[matrix][0] += sums[0][0], near[matrix][2] += sums[1][2];
      if (second) near[matrix][1] += sums[0][1], near[matrix][3] += sums[1][3];
    };
    const auto product = [&](Sum(&sums)[2], const Group<E>& a, const Group<E>& b) {
      clear(sums);
      multiply_groups<P>(sums, a, b);
    };
    const bool even = at.row == 2 * at.pair, odd = at.row == 2 * at.pair + 1;  // this lane is on the diagonal
    Sum sums[2];
    product(sums, x[rows_q], x[rows_k]), add_if(0, sums, even, odd);
    if constexpr (Sides == 2) {
      product(sums, x[rows_e], x[rows_w]), add_if(1, sums, even, odd);
      product(sums, x[rows_q], x[rows_w]), add_if(2, sums, even, odd);
    }
    product(sums, x[rows_e], x[rows_k]);
    if (even) same[0] += sums[0][0], same[1] += sums[1][2];
    if (odd) same[0] += sums[0][1], same[1] += sums[1][3];
    Group<E> tile[2];
#pragma unroll
    for (int l = 0; l < 3; ++l) {
      const bool later = BlockDecays::later(0, 1 << l, at);
      const bool first = level_of(at.row, 2 * at.pair) == l, second = level_of(at.row, 2 * at.pair + 1) == l;
      float f[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) f[e] = later ? d.since[e] : d.until[e];
      const Group<E> factors = Group<E>::of(f);
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          tile[t].r[i] = times(later ? x[rows_q + t].r[i] : x[rows_k + t % Sides].r[i], factors.r[i]);
      if constexpr (Sides == 2) {
        product(sums, tile[0], tile[0]), add_if(0, sums, first, second);
        product(sums, tile[1], tile[1]), add_if(1, sums, first, second);
      }
      product(sums, tile[0], tile[1]), add_if(tiles - 1, sums, first, second);
      d.merge(1 << l, at);
    }
    Group<E> since = Group<E>::of(d.since), until = Group<E>::of(d.until);
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        tile[t].r[i] = i % 2 ? times(x[rows_q + t].r[i], since.r[i]) : times(x[rows_k + t % Sides].r[i], until.r[i]);
    const auto corner = [&](float(&to)[2], const Group<E>& a, const Group<E>& b, int n) {
      Sum sum = {0, 0, 0, 0};
      multiply_tile<P>(sum, a, b, n);
      to[0] += sum[n ? 0 : 2], to[1] += sum[n ? 1 : 3];
    };
    if constexpr (Sides == 2) {
      corner(far[0], tile[0], tile[0], 0);
      corner(far[1], tile[1], tile[1], 0);
    }
    corner(far[corners - 2], tile[0], tile[1], 0);
    corner(far[corners - 1], tile[0], tile[1], 1);
    d.merge(8, at);
    since = Group<E>::of(d.since), until = Group<E>::of(d.until);
#pragma unroll
    for (int i = 0; i < 2 + Sides; ++i) x[i] = x[i] * (i < rows_k ? since : until);
  }
  // Calls f(value, index) for all sums
  template <class F>
  __device__ void each(const F& f) {
#pragma unroll
    for (int i = 0; i < 4 * tiles; ++i) f(near[i / 4][i % 4], i);
#pragma unroll
    for (int i = 0; i < 2 * corners; ++i) f(far[i / 2][i % 2], 4 * tiles + i);
#pragma unroll
    for (int i = 0; i < 2; ++i) f(same[i], count - 2 + i);
  }
};

// The results of a chunk take the place of its tiles.
template <Product P, int C, int Sides>
struct PairLayout {
  using E = Operand<P>;
  static constexpr int LP = leading<E>(kChunk);
  size_t tiles, A, inverse, matrices, halves, strips, factors, bytes;
  __host__ __device__ PairLayout() {
    Pieces m, n;
    using Tiles = OperandTiles<E, C, Sides>;
    tiles = m.take<E>(Tiles::count * Tiles::size);
    A = n.take<float>(kChunk * kFloatLd);
    inverse = n.take<float>(kChunk * kFloatLd);
    matrices = n.take<E>((2 * Sides - 1) * kChunk * LP);
    halves = n.take<float>(StripSums<Sides>::count * 128);
    if (m.used < n.used) m.used = n.used;
    strips = m.take<float>(4 * C);
    factors = m.take<float>(factor_rows * C);
    bytes = m.used;
  }
};

// Log-decays of the warp's 16 rows and of 16 channels, in the order of Element8
struct LogDecays {
  float x[8];
  __device__ LogDecays(const GeneralProblem& p, const ChunkPlace& c, int channel, const Place& at) {
    const int row = at.strip * 16 + at.row, column = channel + at.pair * 2;
    const float* g =
        p.in.g + c.b * p.in.g_batch + c.h * p.in.g_head + (c.begin + row) * p.in.g_time + column * p.in.g_key;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* from = g + i % 2 * 8 * p.in.g_time + i / 2 * 8 * p.in.g_key;
      const bool inside = p.in.g && row + i % 2 * 8 < c.steps;
      const int left = inside ? p.K - column - i / 2 * 8 : 0;
      if (p.even_decays) {
        const float2 two = left > 0 ? load_pair(from) : float2{};
        x[2 * i] = two.x, x[2 * i + 1] = two.y;
      } else {
        x[2 * i] = left > 0 ? from[0] : 0.f;
        x[2 * i + 1] = left > 1 ? from[p.in.g_key] : 0.f;
      }
    }
  }
  template <class E>
  __device__ BlockDecays decays() const {
    BlockDecays d;
#pragma unroll
    for (int e = 0; e < 8; ++e) d.since[e] = d.total[e] = decay_of<E>(x[e]), d.until[e] = 1;
    return d;
  }
};

// Pairs of a chunk in shared memory. With erase_first, rows of E and A move to the next row.
template <class E, int LP, int Sides>
struct PairTiles {
  E* matrices;
  float* A;
  float scale;
  int shift;
  // Elements (i, j) and (i, j + 1)
  __device__ void put(int matrix, int i, int j, float x, float y) const {
    const int row = i + (matrix < matrix_e ? 0 : shift);
    if (row >= kChunk) return;
    const float factor = matrix < matrix_e ? scale : 1.f;
    if (matrix == matrix_a)
      store_pair(A + row * kFloatLd + j, x, y);
    else
      store_pair(matrices + (matrix * kChunk + row) * LP + j, factor * x, factor * y);
  }
  // Of E or, with one side, A, the elements (i, j) below the diagonal, or on it if rows move
  __device__ void put_erase(int i, int j, float x) const {
    if (j < i + shift && i + shift < kChunk) {
      if constexpr (Sides == 2)
        matrices[(matrix_e * kChunk + i + shift) * LP + j] = from_float<E>(x);
      else
        A[(i + shift) * kFloatLd + j] = x;
    }
  }
  __device__ void put_strip(const StripSums<Sides>& s, int i0, const Place& at) const {
    const auto kept = [](float x, bool below) { return below ? x : 0.f; };
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = at.row, column = 2 * at.pair, i = i0 + 8 * h + row, j = i0 + 8 * h + column;
      const float *p = s.near[0] + 2 * h, *c = s.near[s.tiles - 1] + 2 * h;
      put(matrix_p, i, j, kept(p[0], column <= row), kept(p[1], column < row));
      if constexpr (Sides == 2) {
        const float* a = s.near[1] + 2 * h;
        put(matrix_q, i, j, kept(c[0], column <= row), kept(c[1], column < row));
        put(matrix_a, i, j, kept(a[0], column < row + shift), kept(a[1], column + 1 < row + shift));
      }
      if (row < column) put_erase(j, i, c[0]);
      if (row < column + 1) put_erase(j + 1, i, c[1]);
      if (row == column || row == column + 1) put_erase(i, i, s.same[h]);
    }
    const int i = i0 + at.row, j = i0 + 2 * at.pair;
    put(matrix_p, i + 8, j, s.far[0][0], s.far[0][1]);
    if constexpr (Sides == 2) {
      put(matrix_a, i + 8, j, s.far[1][0], s.far[1][1]);
      put(matrix_q, i + 8, j, s.far[2][0], s.far[2][1]);
    }
    put_erase(j + 8, i, s.far[s.corners - 1][0]);
    put_erase(j + 9, i, s.far[s.corners - 1][1]);
  }
};

// Writes the rows of the tiles, decayed since the chunk's start or until its end, to memory. With erase_first, rows of
// e move to the next row, and the chunk's first one is not decayed.
template <class E, int C, int Sides>
__device__ void write_decayed_rows(const GeneralProblem& p, const ChunkPlace& c, const OperandTiles<E, C, Sides>& tiles,
                                   const float* factors, int first, const Place& at) {
  constexpr int part = 16 / sizeof(E), parts = C / part, step = kBlock / parts;
  const int shift = p.in.erase_first ? 1 : 0, column = at.thread % parts * part;
#pragma unroll
  for (int which = 0; which < 2 + Sides; ++which) {
    const int from = which == rows_q ? factors_scaled : which == rows_e ? factors_before : factors_after;
    const int down = which == rows_e ? shift : 0;
    E* const to = p.rows_of<E, Sides>(p.rows, c.index, which) + first + column;
#pragma unroll
    for (int i = 0; i < kChunk; i += step) {
      const int r = i + at.thread / parts;
      if (at.thread >= step * parts || r + down >= kChunk) continue;
      const float* f = factors + (from + r / 16) * C + column;
      uint4 x = *reinterpret_cast<const uint4*>(tiles.of(which) + r * tiles.ld + column);
      E* const x_e = reinterpret_cast<E*>(&x);
#pragma unroll
      for (int e = 0; e < part; e += 4) {
        const float4 y = *reinterpret_cast<const float4*>(f + e);
        const float2 a = load_pair(x_e + e), b = load_pair(x_e + e + 2);
        store_pair(x_e + e, a.x * y.x, a.y * y.y);
        store_pair(x_e + e + 2, b.x * y.z, b.y * y.w);
      }
      *reinterpret_cast<uint4*>(to + (r + down) * p.key_tile) = x;
    }
  }
  if (shift && at.thread < C) {
    const HeadRows<const E> from(p.in.erase, c.b, c.begin, c.h, p.K);
    const int channel = first + at.thread;
    p.rows_of<E, Sides>(p.rows, c.index, rows_e)[channel] = channel < p.K ? from.data[channel] : from_float<E>(0);
  }
}

// `whole`: C is the key tile
template <Product P, int C, int Sides, bool whole>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 ? 2 : 1)
    general_pairs(const __grid_constant__ GeneralProblem p) {
  using E = Operand<P>;
  using L = PairLayout<P, C, Sides>;
  constexpr int rows = 2 + Sides, matrices_count = 2 * Sides;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  const auto floats_at = [&](size_t bytes) { return reinterpret_cast<float*>(memory + bytes); };
  const OperandTiles<E, C, Sides> tiles{reinterpret_cast<E*>(memory + at_bytes.tiles)};
  float *strips = floats_at(at_bytes.strips), *factors = floats_at(at_bytes.factors);
  const Place at;
  const ChunkPlace c(p, blockIdx.x);
  // Strips of the warp's pairs: (1,0), (2,0), (2,1), (3,0), (3,1), (3,2); two warps have none.
  const int I = at.warp == 0 ? 1 : at.warp < 3 ? 2 : 3, J = at.warp - I * (I - 1) / 2;
  StripSums<Sides> sums;
  Sum between[matrices_count][2];  // of P, Q, E, A, or P, A

  for (int first = 0; whole ? first == 0 : first < p.key_tile; first += C) {
    tiles.copy(p, c, first, at);
    LogDecays logs(p, c, first + at.half * kGroup, at);
    finish_copies();
    __syncthreads();
#pragma unroll 1
    for (int c0 = at.half * kGroup; c0 < C; c0 += 2 * kGroup) {
      BlockDecays d = logs.template decays<E>();
      if (c0 + 2 * kGroup < C) logs = LogDecays(p, c, first + c0 + 2 * kGroup, at);
      Group<E> x[rows];
#pragma unroll
      for (int i = 0; i < rows; ++i) x[i].load(tiles.strip(i, at.strip, c0), tiles.ld, at);
      sums.template add<P>(x, d, at);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < rows; ++i) x[i].store(tiles.strip(i, at.strip, c0), tiles.ld, at);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (e % 4 < 2 && at.row == 0) strips[at.strip * C + c0 + Element8::column(e, at)] = d.total[e];
    }
    __syncthreads();
    if (at.thread < C) {
      const float s[4] = {strips[at.thread], strips[C + at.thread], strips[2 * C + at.thread],
                          strips[3 * C + at.thread]};
      float before = 1, after = 1;
      const auto put = [&](int row, float x) { factors[row * C + at.thread] = x; };
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        put(factors_before + i, before);
        put(factors_scaled + i, p.in.scale * before);
        put(factors_after + 3 - i, after);
        before *= s[i];
        after *= s[3 - i];
      }
      put(factors_between, s[1]);
      put(factors_between + 1, s[2]);
      put(factors_between + 2, s[1] * s[2]);
      p.factors[c.index * p.key_tile + first + at.thread] = before;
    }
    __syncthreads();
    if (first == 0) clear(between);
    if (at.warp < 6) {
#pragma unroll 1
      for (int c0 = 0; c0 < C; c0 += kGroup) {
        Group<E> x[rows];
#pragma unroll
        for (int i = 0; i < rows; ++i) x[i].load(tiles.strip(i, i < rows_k ? I : J, c0), tiles.ld, at);
        if (I - J > 1) {
          const float* f = factors + (factors_between + (I - J == 3 ? 2 : J)) * C + c0 + at.pair * 2;
          const float2 left = load_pair(f), right = load_pair(f + 8);
          const Pair<E> both[2] = {make_pair<E>(left.x, left.y), make_pair<E>(right.x, right.y)};
#pragma unroll
          for (int i = 0; i < 8; ++i) x[i / 4].r[i % 4] = times(x[i / 4].r[i % 4], both[i % 4 / 2]);
        }
#pragma unroll
        for (int i = 0; i < matrices_count; ++i) multiply_groups<P>(between[i], x[i / Sides], x[rows_k + i % Sides]);
      }
    }
    write_decayed_rows(p, c, tiles, factors, first, at);
    __syncthreads();
  }

  float *A = floats_at(at_bytes.A), *inverse = floats_at(at_bytes.inverse), *halves = floats_at(at_bytes.halves);
  E* const matrices = reinterpret_cast<E*>(memory + at_bytes.matrices);
  for (int i = at.thread; i < static_cast<int>(at_bytes.halves / 16); i += kBlock)
    reinterpret_cast<uint4*>(memory)[i] = uint4{};
  if (at.half == 1) sums.each([&](float x, int i) { halves[i * 128 + at.thread % 128] = x; });
  __syncthreads();
  const PairTiles<E, L::LP, Sides> pairs{matrices, A, p.in.scale, p.in.erase_first ? 1 : 0};
  if (at.half == 0) {
    sums.each([&](float& x, int i) { x += halves[i * 128 + at.thread]; });
    pairs.put_strip(sums, at.strip * 16, at);
  }
  if (at.warp < 6) {
#pragma unroll
    for (int i = 0; i < matrices_count; ++i)
#pragma unroll
      for (int e = 0; e < 8; e += 2)
        pairs.put(Sides == 1 && i == 1 ? matrix_a : i, I * 16 + Element8::row(e, at), J * 16 + Element8::column(e, at),
                  between[i][e / 4][e % 4], between[i][e / 4][e % 4 + 1]);
  }
  __syncthreads();
  invert_chunk(A, inverse, at.warp);

  constexpr int part = 16 / sizeof(E), parts = kChunk / part;
  for (int i = at.thread; i < matrices_count * kChunk * parts; i += kBlock) {
    const int matrix = i / (kChunk * parts), r = i / parts % kChunk, column = i % parts * part;
    uint4 x;
    if (matrix == matrices_count - 1) {
      E* const x_e = reinterpret_cast<E*>(&x);
#pragma unroll
      for (int e = 0; e < part; ++e) x_e[e] = from_float<E>(inverse[r * kFloatLd + column + e]);
    } else {
      x = *reinterpret_cast<const uint4*>(matrices + (matrix * kChunk + r) * L::LP + column);
    }
    *reinterpret_cast<uint4*>(p.matrix_of<E, Sides>(p.matrices, c.index, matrix) + r * kChunk + column) = x;
  }
}

struct Launch {
  const GeneralProblem& p;
  Target to;
  template <Product P, int C, int Sides, bool whole>
  cudaError_t launch_tiles() const {
    return launch(general_pairs<P, C, Sides, whole>, dim3(static_cast<unsigned>(p.all_chunks())), kBlock,
                  PairLayout<P, C, Sides>().bytes, to, p);
  }
  template <Product P, int Sides>
  cudaError_t operator()() const {
    if constexpr (P == Product::bf16) {
      if (p.key_tile == 64) return launch_tiles<P, 64, Sides, true>();
      if (p.key_tile == 80) return launch_tiles<P, 80, Sides, true>();
      if (p.key_tile == 96) return launch_tiles<P, 96, Sides, true>();
      if (p.key_tile == 128) return launch_tiles<P, 128, Sides, true>();
    }
    return launch_tiles<P, 32, Sides, false>();
  }
};

}  // namespace
}  // namespace sb::cuda::attention

namespace sb::cuda {

cudaError_t launch_general_pairs(const GeneralProblem& p, Target to) {
  return attention::by_precision(p, attention::Launch{p, to});
}

}  // namespace sb::cuda
