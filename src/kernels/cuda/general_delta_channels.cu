// Gradients of q, k, e, w and g of every chunk from those of its decayed rows and pairs, channel by channel, through
// the tiles of the pairs (general_delta_chunk.cuh) and through strips. Every product of decayed rows contributes H =
// (row) o d(row), positive for q and e, negative for k and w:
//   dg_t = e^b_end <dS+, S> + sum_{j < t} (Kd o dKd + Wd o dWd)_j + sum_{i >= t} H_i        per channel
// H uses the same rounded factors as the products, so that terms cancel exactly where they should. No sum has a term
// without a decay, so small gradients of strong decays stay accurate.
#include "kernels/cuda/general_delta_chunk.cuh"

namespace sb::cuda::attention {
namespace {

template <Product P>
struct ChannelLayout {
  using E = Operand<P>;
  static constexpr int LP = leading<E>(kChunk), LG = leading<E>(kGroup), one = 16 * LG, matrix = kChunk * LP;
  static constexpr int levels = 3 * kLevels * one;  // of a strip: by level, gradients of P, C and A
  size_t tiles, matrices, by_level, scratch, strips, sums, bytes;
  __host__ __device__ ChannelLayout() {
    Pieces m;
    tiles = m.take<E>(4 * OperandTiles<E>::size);
    matrices = m.take<E>(4 * matrix);
    by_level = m.take<E>(4 * levels);
    scratch = m.take<E>(8 * 2 * one);
    strips = m.take<float>(4 * kChannels);
    sums = m.take<float>(2 * 4 * kChannels);
    bytes = m.used;
  }
};

template <class E>
__device__ inline float rounded(float x) {
  return to_float(from_float<E>(x));
}

// Column of a 16 x 16 group among the thread's four
__device__ constexpr int own_column(int e) {
  return e / 4 * 2 + e % 2;
}

// Through pairs of different rows within a strip of 16 rows, by levels
template <Product P>
__device__ __forceinline__ void add_levels(float (&dx)[2][8], float (&dy)[2][8], float (&H)[8], BlockDecays& d,
                                           const OperandTiles<Operand<P>>& tiles, const Operand<P>* by_level,
                                           Operand<P>* scratch, int c0, bool idle, const Place& at) {
  using E = Operand<P>;
  using L = ChannelLayout<P>;
#pragma unroll
  for (int l = 0; l < kLevels; ++l) {
    if (idle) break;
    float pair[2][8], grad[2][1][2][4];
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      level_tile(pair[t], tiles, t, c0, d, 1 << l, at);
      write_group(pair[t], scratch + t * L::one, L::LG, at);
      clear(grad[t]);
    }
    __syncwarp();
    const E *of_p = by_level + l * L::one, *of_c = of_p + kLevels * L::one, *of_a = of_c + kLevels * L::one;
    multiply<P, Depth::fast, Depth::slow, 16>(grad[0], of_p, L::LG, scratch, L::LG, at.lane);
    multiply<P, Depth::fast, Depth::slow, 16>(grad[0], of_c, L::LG, scratch + L::one, L::LG, at.lane);
    multiply<P, Depth::slow, Depth::slow, 16>(grad[1], of_c, L::LG, scratch, L::LG, at.lane);
    multiply<P, Depth::fast, Depth::slow, 16>(grad[1], of_a, L::LG, scratch + L::one, L::LG, at.lane);
    __syncwarp();
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float row = rounded<E>(pair[t][e]), d_row = grad[t][0][e / 4][e % 4];
        const bool later = BlockDecays::later(e, 1 << l, at);
        if (later)
          dx[t][e] = fmaf(d_row, d.since[e], dx[t][e]);
        else
          dy[t][e] = fmaf(d_row, d.until[e], dy[t][e]);
        H[e] = fmaf(later ? row : -row, d_row, H[e]);
      }
    d.merge(1 << l, at);
  }
}

// q and e: through pairs of the strip R with the earlier strips; f becomes the decay of these strips
template <Product P>
__device__ __forceinline__ void add_earlier(float (&far)[2][8], float (&H)[8], float (&f)[4],
                                            const float (&strip)[4][4], const OperandTiles<Operand<P>>& tiles,
                                            const Operand<P>* matrices, int R, int c0, bool idle, const Place& at) {
  using E = Operand<P>;
  using L = ChannelLayout<P>;
  const auto block = [&](int matrix, int I, int J) { return matrices + matrix * L::matrix + I * 16 * L::LP + J * 16; };
#pragma unroll
  for (int J = 2; J >= 0; --J) {
    if (J >= R || idle) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float x[8], grad[1][2][4];
      read_group(x, tiles.strip(rows_q + i, R, c0), tiles.ld, at);
      clear(grad);
#pragma unroll
      for (int w = 0; w < 2; ++w)
        multiply<P, Depth::fast, Depth::slow, 16>(grad, block(2 * i + w, R, J), L::LP, tiles.strip(rows_k + w, J, c0),
                                                  tiles.ld, at.lane);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float d_row = grad[0][e / 4][e % 4];
        far[i][e] = fmaf(d_row, f[own_column(e)], far[i][e]);
        H[e] = fmaf(rounded<E>(x[e] * f[own_column(e)]), d_row, H[e]);
      }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) f[n] *= strip[J][n];
  }
}

// k and w: through pairs of the later strips with the strip R; f becomes the decay of these strips
template <Product P>
__device__ __forceinline__ void add_later(float (&far)[2][8], float (&H)[8], float (&f)[4], const float (&strip)[4][4],
                                          const OperandTiles<Operand<P>>& tiles, const Operand<P>* matrices,
                                          Operand<P>* scratch, int R, int c0, bool idle, const Place& at) {
  using L = ChannelLayout<P>;
  const auto block = [&](int matrix, int I, int J) { return matrices + matrix * L::matrix + I * 16 * L::LP + J * 16; };
#pragma unroll
  for (int I = 1; I < 4; ++I) {
    if (I <= R || idle) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float row[8];
      read_group(row, tiles.strip(rows_q + i, I, c0), tiles.ld, at);
#pragma unroll
      for (int e = 0; e < 8; ++e) row[e] *= f[own_column(e)];
      write_group(row, scratch + i * L::one, L::LG, at);
    }
    __syncwarp();
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      float y[8], grad[1][2][4];
      read_group(y, tiles.strip(rows_k + w, R, c0), tiles.ld, at);
      clear(grad);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        multiply<P, Depth::slow, Depth::slow, 16>(grad, block(2 * i + w, I, R), L::LP, scratch + i * L::one, L::LG,
                                                  at.lane);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        far[w][e] += grad[0][e / 4][e % 4];
        H[e] = fmaf(-y[e], grad[0][e / 4][e % 4], H[e]);
      }
    }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 4; ++n) f[n] *= strip[I][n];
  }
}

// H becomes its sum over the rows from this one to the strip's end, key_sum its sum over the rows before this one. The
// sums of the whole strip go to `sums`.
__device__ __forceinline__ void sum_rows(float (&H)[8], float (&key_sum)[8], float* sums, int R, int c0,
                                         const Place& at) {
#pragma unroll
  for (int e = 0; e < 8; ++e) {
#pragma unroll
    for (int by = 1; by < 8; by *= 2) {
      const float later = __shfl_down_sync(~0u, H[e], 4 * by), earlier = __shfl_up_sync(~0u, key_sum[e], 4 * by);
      if (at.row + by < 8) H[e] += later;
      if (at.row >= by) key_sum[e] += earlier;
    }
  }
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e % 4 < 2) {
      H[e] += __shfl_sync(~0u, H[e + 2], at.pair);
      const float half = __shfl_sync(~0u, key_sum[e], 28 + at.pair), all = half + key_sum[e + 2];
      const float before = __shfl_up_sync(~0u, key_sum[e], 4), before_2 = __shfl_up_sync(~0u, key_sum[e + 2], 4);
      key_sum[e] = at.row == 0 ? 0.f : before;
      key_sum[e + 2] = at.row == 0 ? half : half + before_2;
      const int column = c0 + Element8::column(e, at);
      if (at.row == 0) sums[R * kChannels + column] = H[e];
      if (at.row == 7) sums[(4 + R) * kChannels + column] = all;
    }
}

// Through pairs of equal rows; `same`: their gradients
template <class E>
__device__ __forceinline__ void add_equal_rows(float (&dx)[2][8], float (&dy)[2][8], const float (&same)[4][2],
                                               const OperandTiles<E>& tiles, int R, int c0, const Place& at) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float row[8];
    read_group(row, tiles.strip(i, R, c0), tiles.ld, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int h = e % 4 / 2;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if (i < rows_k)
          dy[j][e] = fmaf(same[2 * i + j][h], row[e], dy[j][e]);
        else
          dx[j][e] = fmaf(same[2 * j + i - rows_k][h], row[e], dx[j][e]);
      }
    }
  }
}

__device__ __forceinline__ void write_decays(const GeneralProblem& p, const ChunkPlace& c, float* dg,
                                             const float (&H)[8], const float (&key_sum)[8], const float (&strip)[4][4],
                                             const float* sums, int first, int R, int c0, const Place& at) {
  float common[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int column = c0 + i / 2 * 8 + at.pair * 2 + i % 2;
    common[i] = first + column < p.K ? strip[0][i] * strip[1][i] * (strip[2][i] * strip[3][i]) *
                                           p.along[c.index * p.key_tile + first + column]
                                     : 0.f;
#pragma unroll
    for (int s = 0; s < 4; ++s)
      if (s != R) common[i] += sums[(s < R ? 4 + s : s) * kChannels + column];
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int r = R * 16 + Element8::row(e, at), column = c0 + Element8::column(e, at);
    if (r < c.steps && first + column < p.K) dg[r * p.d.dg_time + column] = H[e] + key_sum[e] + common[own_column(e)];
  }
}

template <Product P>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 ? 2 : 1)
    general_channels(const __grid_constant__ GeneralProblem p) {
  using E = Operand<P>;
  using L = ChannelLayout<P>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  const OperandTiles<E> tiles{reinterpret_cast<E*>(memory + at_bytes.tiles)};
  E* const matrices = reinterpret_cast<E*>(memory + at_bytes.matrices);
  float* strips = reinterpret_cast<float*>(memory + at_bytes.strips);
  float* sums = reinterpret_cast<float*>(memory + at_bytes.sums);

  const Place at;
  const ChunkPlace c(p);
  const int R = at.strip, c0 = at.half * kGroup, shift = p.in.erase_first ? 1 : 0;
  E* const by_level = reinterpret_cast<E*>(memory + at_bytes.by_level) + R * L::levels;
  E* const scratch = reinterpret_cast<E*>(memory + at_bytes.scratch) + at.warp * 2 * L::one;
  // With erase_first, rows of dE and dA move one row up, to the place of their e in its tile.
  for (int i = 0; i < 4; ++i) {
    const int up = i >= matrix_e ? shift : 0;
    const E* from = p.matrix_of<E>(p.d_matrices, c.index, i) + up * kChunk;
    copy_tile<kChunk, kChunk>(matrices + i * L::matrix, L::LP, HeadRows<const E>(from, kChunk), kChunk - up, kChunk,
                              at);
  }
  finish_copies();
  __syncthreads();
  const auto block = [&](int matrix, int I, int J) { return matrices + matrix * L::matrix + I * 16 * L::LP + J * 16; };
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = Element8::row(e, at), j = Element8::column(e, at), level = i == j ? -1 : level_of(i, j);
    const int low = max(i, j) * L::LP + min(i, j);
    const auto put = [&](int which, int matrix) {
      const E x = block(matrix, R, R)[low];
#pragma unroll
      for (int l = 0; l < kLevels; ++l)
        by_level[(which * kLevels + l) * L::one + i * L::LG + j] = level == l ? x : from_float<E>(0);
    };
    if (at.half == 0)
      put(0, matrix_p), put(2, matrix_a);
    else
      put(1, i > j ? matrix_q : matrix_e);
  }
  float same[4][2];  // gradients of pairs of equal rows
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) same[i][h] = to_float(block(i, R, R)[(at.row + 8 * h) * (L::LP + 1)]);

  for (int first = 0; first < p.K; first += kChannels) {
    const bool idle = first + c0 >= p.K;  // a warp without channels; nothing that it computes is used
    tiles.copy(p, c, first, at);
    BlockDecays d;
    read_decays(d, p, c, first + c0, at);
    finish_copies();
    __syncthreads();

    float dx[2][8] = {}, dy[2][8] = {}, H[8] = {};  // gradients of the rows of q and e, of k and w
    add_equal_rows(dx, dy, same, tiles, R, c0, at);
    add_levels<P>(dx, dy, H, d, tiles, by_level, scratch, c0, idle, at);
    decay_strip(tiles, c0, d, at);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (e % 4 < 2 && at.row == 0) strips[R * kChannels + c0 + Element8::column(e, at)] = d.total[e];
    __syncthreads();

    float strip[4][4];  // decays of the strips, of this thread's four columns
#pragma unroll
    for (int s = 0; s < 4; ++s)
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float2 f = load_pair(strips + s * kChannels + c0 + n * 8 + at.pair * 2);
        strip[s][2 * n] = f.x;
        strip[s][2 * n + 1] = f.y;
      }
    // Gradient of the chunk's decayed row, from memory
    const auto d_decayed = [&](float(&to)[8], int which) {
      const float scale = which == rows_q ? p.in.scale : 1.f;
#pragma unroll
      for (int e = 0; e < 8; e += 2) {
        const int row = R * 16 + Element8::row(e, at) + (which == rows_e ? shift : 0);
        const int channel = first + c0 + Element8::column(e, at);
        const bool inside = channel < p.key_tile && row < kChunk;
        const float2 two =
            inside ? load_pair(p.rows_of<E>(p.d_rows, c.index, which) + row * p.key_tile + channel) : float2{};
        to[e] = scale * two.x, to[e + 1] = scale * two.y;
      }
    };
    float f[4] = {1, 1, 1, 1};  // of the strips between
    float far[2][8] = {};       // gradients of rows decayed since the strip's start, or until its end
    add_earlier<P>(far, H, f, strip, tiles, matrices, R, c0, idle, at);
#pragma unroll
    for (int i = 0; i < 2; ++i) {  // f: all strips before this one
      float x[8], of_chunk[8];
      read_group(x, tiles.strip(rows_q + i, R, c0), tiles.ld, at);
      d_decayed(of_chunk, rows_q + i);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        H[e] = fmaf(rounded<E>(x[e] * f[own_column(e)]), of_chunk[e], H[e]);
        dx[i][e] = fmaf(fmaf(of_chunk[e], f[own_column(e)], far[i][e]), d.since[e], dx[i][e]);
        far[i][e] = 0;
      }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) f[n] = 1;
    add_later<P>(far, H, f, strip, tiles, matrices, scratch, R, c0, idle, at);
    float key_sum[8] = {};
#pragma unroll
    for (int w = 0; w < 2; ++w) {  // f: all strips after this one
      float y[8], of_chunk[8];
      read_group(y, tiles.strip(rows_k + w, R, c0), tiles.ld, at);
      d_decayed(of_chunk, rows_k + w);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        key_sum[e] = fmaf(rounded<E>(y[e] * f[own_column(e)]), of_chunk[e], key_sum[e]);
        dy[w][e] = fmaf(fmaf(of_chunk[e], f[own_column(e)], far[w][e]), d.until[e], dy[w][e]);
      }
    }
    const auto write_rows = [&](const Rows& rows, const float(&from)[8], int shifted) {
      const HeadRows<E> to(rows, c.b, c.begin, c.h, p.K);
#pragma unroll
      for (int e = 0; e < 8; e += 2) {
        const int r = R * 16 + Element8::row(e, at) + shifted, channel = first + c0 + Element8::column(e, at);
        if (r < c.steps) write_pair(to, r, channel, p.K, from[e], from[e + 1]);
      }
    };
    write_rows(p.d.dq, dx[0], 0);
    write_rows(p.d.d_erase, dx[1], shift);
    write_rows(p.d.dk, dy[0], 0);
    write_rows(p.d.d_write, dy[1], 0);
    if (shift && at.thread < kChannels && first + at.thread < p.K) {  // the chunk's first e reads S itself
      const HeadRows<E> to(p.d.d_erase, c.b, c.begin, c.h, p.K);
      to.data[first + at.thread] = p.rows_of<E>(p.d_rows, c.index, rows_e)[first + at.thread];
    }

    sum_rows(H, key_sum, sums, R, c0, at);
    __syncthreads();
    if (!p.d.dg) continue;
    float* dg = p.d.dg + c.b * p.d.dg_batch + c.h * p.d.dg_head + c.begin * p.d.dg_time + first;
    write_decays(p, c, dg, H, key_sum, strip, sums, first, R, c0, at);
  }
}

struct Launch {
  const GeneralProblem& p;
  Target to;
  template <Product P>
  cudaError_t operator()() const {
    return launch(general_channels<P>, dim3(static_cast<unsigned>(p.all_chunks())), kBlock, ChannelLayout<P>().bytes,
                  to, p);
  }
};

}  // namespace
}  // namespace sb::cuda::attention

namespace sb::cuda {

cudaError_t launch_general_channels(const GeneralProblem& p, Target to) {
  return attention::by_precision(p, attention::Launch{p, to});
}

}  // namespace sb::cuda
