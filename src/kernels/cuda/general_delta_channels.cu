// Gradients of q, k, e, w and g of every chunk from those of its decayed rows and pairs, channel by channel, through
// the tiles of the pairs (general_delta_chunk.cuh) and through strips. Every product of decayed rows contributes H =
// (row) o d(row), positive for q and e, negative for k and w:
//   dg_t = e^b_end <dS+, S> + sum_{j < t} (Kd o dKd + Wd o dWd)_j + sum_{i >= t} H_i        per channel
// H uses the same rounded factors as the products, so that terms cancel exactly where they should. No sum has a term
// without a decay, so small gradients of strong decays stay accurate.
//
// A warp has a strip of 16 steps and 16 channels. Its groups are transposed: rows are channels, columns are steps. So
// they are left operands of products with gradients of pairs, which sum over steps, and the products have their order.
#include "kernels/cuda/general_delta_steps.cuh"

namespace sb::cuda::attention {
namespace {

constexpr int kChannels = 2 * kGroup;  // channels at a time, half of them for each warp of a strip

template <Product P, int Sides>
struct ChannelLayout {
  using E = Operand<P>;
  using Tiles = OperandTiles<E, kChannels, Sides>;
  static constexpr int LP = leading<E>(kChunk), matrix = kChunk * LP;
  size_t tiles, d_tiles, matrices, strips, sums, bytes;
  __host__ __device__ ChannelLayout() {
    Pieces m;
    tiles = m.take<E>(Tiles::count * Tiles::size);
    d_tiles = m.take<E>(Tiles::count * Tiles::size);
    matrices = m.take<E>(2 * Sides * matrix);
    strips = m.take<float>(4 * kChannels);
    sums = m.take<float>(2 * 4 * kChannels);
    bytes = m.used;
  }
};

// Through pairs within a strip of 16 steps; x: its undecayed rows; block: of its gradients of P, then Q, E and A, or A
template <Product P, int Sides>
__device__ __forceinline__ void add_strip(Sum (&dx)[2][2], Sum (&dy)[Sides][2], float (&H)[8],
                                          LevelDecays<Operand<P>>& d, const Group<Operand<P>> (&x)[2 + Sides],
                                          const Operand<P>* block, const Place& at) {
  using E = Operand<P>;
  using L = ChannelLayout<P, Sides>;
  // Whether the steps of this lane's pairs (i, j) are equal (l = -1), or first differ in the bit l < 3
  const auto of_level = [&](Pair<E> pair, int l) {
    const int first = at.row ^ (2 * at.pair), second = at.row ^ (2 * at.pair + 1);
    return l < 0 ? keep(pair, first == 0, second == 0) : keep(pair, first >> l == 1, second >> l == 1);
  };
  Group<E> M[2 * Sides];  // gradients of P, C, C^T and A, or of C and C^T
  {
    Group<E> lower[2 * Sides], upper[2 * Sides];
#pragma unroll
    for (int i = 0; i < 2 * Sides; ++i) {
      lower[i].load(block + i * L::matrix, L::LP, at);
      upper[i].load_transposed(block + i * L::matrix, L::LP, at);
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      Pair<E> same[2 * Sides];
#pragma unroll
      for (int i = 0; i < 2 * Sides; ++i) same[i] = of_level(lower[i].r[3 * n], -1);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if constexpr (Sides == 2)
          multiply_halves<P>(dx[i][n], x[rows_k], same[2 * i], x[rows_w], same[2 * i + 1], n);
        else
          multiply_half<P>(dx[i][n], x[rows_k], same[i], n);
        if (i < Sides) multiply_halves<P>(dy[i][n], x[rows_q], same[i], x[rows_e], same[Sides + i], n);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (Sides == 2) {
        M[0].r[i] = either(lower[matrix_p].r[i], upper[matrix_p].r[i]);
        M[1].r[i] = either(lower[matrix_q].r[i], upper[matrix_e].r[i]);
        M[2].r[i] = either(lower[matrix_e].r[i], upper[matrix_q].r[i]);
        M[3].r[i] = either(lower[matrix_a].r[i], upper[matrix_a].r[i]);
      } else {
        M[0].r[i] = either(lower[0].r[i], upper[1].r[i]);
        M[1].r[i] = either(lower[1].r[i], upper[0].r[i]);
      }
    }
  }
#pragma unroll
  for (int l = 0; l < kLevels; ++l) {
    float f[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) f[e] = LevelDecays<E>::later(e, l, at) ? d.since[e] : d.until[e];
    const Group<E> factors = Group<E>::of(f);
    Group<E> tile[2];
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Pair<E> earlier = x[rows_k + t % Sides].r[i], later = x[rows_q + t].r[i];
        const Pair<E> row = l == 0                                ? first_and_second(earlier, later)
                            : LevelDecays<E>::later(2 * i, l, at) ? later
                                                                  : earlier;
        tile[t].r[i] = times(row, factors.r[i]);
      }
    Sum grad[2][2];
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      clear(grad[t]);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int k = l == 3 ? 1 - n : n, i = n + 2 * k;  // steps of a level's pairs differ in their half only if l = 3
        const auto pairs = [&](int m) { return l == 3 ? M[m].r[i] : of_level(M[m].r[i], l); };
        if constexpr (Sides == 2)
          multiply_halves<P>(grad[t][n], tile[0], pairs(2 * t), tile[1], pairs(2 * t + 1), k);
        else
          multiply_half<P>(grad[t][n], tile[1 - t], pairs(t), k);
      }
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const bool later = LevelDecays<E>::later(e, l, at);
      float along = 0;
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const float d_row = grad[t][e / 4][e % 4];
        const float2 rows = floats(tile[t].r[e / 2]);
        along = fmaf(e % 2 ? rows.y : rows.x, d_row, along);
        if (later)
          dx[t][e / 4][e % 4] = fmaf(d_row, f[e], dx[t][e / 4][e % 4]);
        else
          dy[t % Sides][e / 4][e % 4] = fmaf(d_row, f[e], dy[t % Sides][e / 4][e % 4]);
      }
      H[e] += later ? along : -along;
    }
    d.merge(l, at);
  }
}

// Adds the pairs within the warp's strip, then decays its rows since the strip's start or until its end; `strips` gets
// the decays of the whole strip.
template <Product P, int Sides>
__device__ __forceinline__ void decay_strip(Sum (&dx)[2][2], Sum (&dy)[Sides][2], float (&H)[8],
                                            LevelDecays<Operand<P>>& d,
                                            const OperandTiles<Operand<P>, kChannels, Sides>& tiles,
                                            const Operand<P>* block, float* strips, int R, int c0, const Place& at) {
  using E = Operand<P>;
  Group<E> x[2 + Sides];
#pragma unroll
  for (int i = 0; i < 2 + Sides; ++i) x[i].load_transposed(tiles.strip(i, R, c0), tiles.ld, at);
  add_strip<P, Sides>(dx, dy, H, d, x, block, at);
  const Group<E> since = Group<E>::of(d.since), until = Group<E>::of(d.until);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 2 + Sides; ++i)
    (x[i] * (i < rows_k ? since : until)).store_transposed(tiles.strip(i, R, c0), tiles.ld, at);
  if (at.pair == 0) {
    strips[R * kChannels + c0 + at.row] = d.total[0];
    strips[R * kChannels + c0 + at.row + 8] = d.total[1];
  }
}

// Sums over the steps of a strip. H becomes its sum over the steps from this one on, key_sum its sum over the steps
// before this one. The sums of the whole strip go to `sums`.
__device__ __forceinline__ void sum_steps(float (&H)[8], float (&key_sum)[8], float* sums, int R, int c0,
                                          const Place& at) {
  float after[4], before[4];  // sums of pairs of steps, then over the quad's lanes from this one on, or up to this one
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    after[i] = H[2 * i] + H[2 * i + 1];
    before[i] = key_sum[2 * i] + key_sum[2 * i + 1];
#pragma unroll
    for (int by = 1; by < 4; by *= 2) {
      const float down = __shfl_down_sync(~0u, after[i], by), up = __shfl_up_sync(~0u, before[i], by);
      if (at.pair + by < 4) after[i] += down;
      if (at.pair >= by) before[i] += up;
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float second = __shfl_sync(~0u, after[h + 2], at.lane & ~3), first = __shfl_sync(~0u, before[h], at.lane | 3);
    const int column = c0 + at.row + 8 * h;
    if (at.pair == 0) sums[R * kChannels + column] = after[h] + second;
    if (at.pair == 3) sums[(4 + R) * kChannels + column] = first + before[h + 2];
#pragma unroll
    for (int i = h; i < 4; i += 2) {
      const float down = __shfl_down_sync(~0u, after[i], 1), up = __shfl_up_sync(~0u, before[i], 1);
      H[2 * i + 1] += (at.pair == 3 ? 0.f : down) + (i < 2 ? second : 0.f);
      H[2 * i] += H[2 * i + 1];
      const float here = key_sum[2 * i];
      key_sum[2 * i] = (at.pair == 0 ? 0.f : up) + (i < 2 ? 0.f : first);
      key_sum[2 * i + 1] = key_sum[2 * i] + here;
    }
  }
}

__device__ __forceinline__ void write_decays(const GeneralProblem& p, const ChunkPlace& c, const float (&H)[8],
                                             const float (&key_sum)[8], const float* strips, const float* sums,
                                             int first, int R, int c0, const Place& at) {
  const int step = R * 16 + at.pair * 2;
  float* dg = p.d.dg + c.b * p.d.dg_batch + c.h * p.d.dg_head + (c.begin + step) * p.d.dg_time + first + c0 + at.row;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int column = c0 + at.row + 8 * h;
    if (first + column >= p.K) continue;
    float common = p.along[c.index * p.key_tile + first + column];
#pragma unroll
    for (int s = 0; s < 4; ++s) common *= strips[s * kChannels + column];
#pragma unroll
    for (int s = 0; s < 4; ++s)
      if (s != R) common += sums[(s < R ? 4 + s : s) * kChannels + column];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int e = i / 2 * 4 + 2 * h + i % 2, steps = i / 2 * 8 + i % 2;
      if (step + steps < c.steps) dg[steps * p.d.dg_time + 8 * h] = H[e] + key_sum[e] + common;
    }
  }
}

// Writes a tile to the rows of a gradient, `shift` rows later
template <class E>
__device__ __forceinline__ void write_tile(const GeneralProblem& p, const ChunkPlace& c, const Rows& rows,
                                           const E* tile, int ld, int first, int shift, const Place& at) {
  constexpr int part = 16 / sizeof(E), parts = kChannels / part;
  const HeadRows<E> to(rows, c.b, c.begin, c.h, p.K);
  for (int i = at.thread; i < kChunk * parts; i += kBlock) {
    const int r = i / parts, column = i % parts * part;
    if (r + shift >= c.steps || first + column >= p.K) continue;
    const E* from = tile + r * ld + column;
    E* const row = to.data + (r + shift) * to.stride + first + column;
    if (to.wide) {
      *reinterpret_cast<uint4*>(row) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int e = 0; e < part && first + column + e < p.K; ++e) row[e] = from[e];
    }
  }
}

template <Product P, int Sides>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 ? 2 : 1)
    general_channels(const __grid_constant__ GeneralProblem p) {
  using E = Operand<P>;
  using L = ChannelLayout<P, Sides>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  const typename L::Tiles tiles{reinterpret_cast<E*>(memory + at_bytes.tiles)},
      d_tiles{reinterpret_cast<E*>(memory + at_bytes.d_tiles)};  // gradients of decayed rows, then of rows
  E* const matrices = reinterpret_cast<E*>(memory + at_bytes.matrices);
  float* strips = reinterpret_cast<float*>(memory + at_bytes.strips);
  float* sums = reinterpret_cast<float*>(memory + at_bytes.sums);

  const Place at;
  const ChunkPlace c(p, blockIdx.x);
  const int R = at.strip, c0 = at.half * kGroup, shift = p.in.erase_first ? 1 : 0;
  const auto block = [&](int matrix, int I, int J) { return matrices + matrix * L::matrix + I * 16 * L::LP + J * 16; };
  // With erase_first, rows of dE, dA and dEd move one row up, to the place of their e in its tile.
  const auto copy_rows = [&](auto columns, E* to, int ld, const E* from, int stride, int up, int width) {
    copy_tile<kChunk, columns.value>(to, ld, HeadRows<const E>(from + up * stride, stride), kChunk - up, width, at);
  };
  for (int i = 0; i < 2 * Sides; ++i)
    copy_rows(std::integral_constant<int, kChunk>(), matrices + i * L::matrix, L::LP,
              p.matrix_of<E, Sides>(p.d_matrices, c.index, i), kChunk, i >= Sides ? shift : 0, kChunk);

  for (int first = 0; first < p.K; first += kChannels) {
    const bool idle = first + c0 >= p.K;  // a warp without channels
    tiles.copy(p, c, first, at);
    for (int i = 0; i < 2 + Sides; ++i)
      copy_rows(std::integral_constant<int, kChannels>(), d_tiles.of(i), d_tiles.ld,
                p.rows_of<E, Sides>(p.d_rows, c.index, i) + first, p.key_tile, i == rows_e ? shift : 0,
                p.key_tile - first);
    LevelDecays<E> d(p, c, first + c0, at);
    finish_copies();
    __syncthreads();

    Sum dx[2][2], dy[Sides][2];  // gradients of the rows of q and e, of k and w
    float H[8] = {}, key_sum[8] = {};
    clear(dx), clear(dy);
    if (!idle) decay_strip<P, Sides>(dx, dy, H, d, tiles, block(0, R, R), strips, R, c0, at);
    __syncthreads();

    if (!idle) {
      float f[2];  // decays of the strips between, of this thread's two channels
      const auto pass = [&](int s) {
#pragma unroll
        for (int h = 0; h < 2; ++h) f[h] *= strips[s * kChannels + c0 + at.row + 8 * h];
      };
      // x times f, rounded
      const auto decayed = [&](const Group<E>& x) {
        Group<E> out;
#pragma unroll
        for (int i = 0; i < 4; ++i) out.r[i] = times(x.r[i], make_pair<E>(f[i % 2], f[i % 2]));
        return out;
      };
      const auto strip_rows = [&](const typename L::Tiles& from, int which, int s) {
        Group<E> x;
        x.load_transposed(from.strip(which, s, c0), from.ld, at);
        return x;
      };
      const auto element = [](const Group<E>& x, int e) {
        const float2 two = floats(x.r[e / 2]);
        return e % 2 ? two.y : two.x;
      };

      // q and e: through pairs with the earlier strips, then through the chunk's initial state
      f[0] = f[1] = 1;
      float far[2][8] = {};  // gradients of rows decayed since the strip's start
      const Group<E> own[2] = {strip_rows(tiles, rows_q, R), strip_rows(tiles, rows_e, R)};
#pragma unroll 1
      for (int J = R - 1; J >= 0; --J) {
        Group<E> y[Sides];
        y[0] = strip_rows(tiles, rows_k, J);
        if constexpr (Sides == 2) y[1] = strip_rows(tiles, rows_w, J);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          Sum grad[2];
          clear(grad);
#pragma unroll
          for (int w = 0; w < Sides; ++w) {
            Group<E> pairs;
            pairs.load(block(Sides * i + w, R, J), L::LP, at);
            multiply_groups<P>(grad, y[w], pairs);
          }
          const Group<E> row = decayed(own[i]);
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            const float d_row = grad[e / 4][e % 4];
            far[i][e] = fmaf(d_row, f[e % 4 / 2], far[i][e]);
            H[e] = fmaf(element(row, e), d_row, H[e]);
          }
        }
        pass(J);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Group<E> row = decayed(own[i]), of_chunk = strip_rows(d_tiles, rows_q + i, R);
        float to[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float d_row = (i == 0 ? p.in.scale : 1.f) * element(of_chunk, e);
          H[e] = fmaf(element(row, e), d_row, H[e]);
          to[e] = fmaf(fmaf(d_row, f[e % 4 / 2], far[i][e]), d.since[e], dx[i][e / 4][e % 4]);
        }
        __syncwarp();
        Group<E>::of(to).store_transposed(d_tiles.strip(rows_q + i, R, c0), d_tiles.ld, at);
      }

      // k and w: through pairs with the later strips, then through the chunk's final state
      f[0] = f[1] = 1;
      Sum later[Sides][2];  // gradients of rows decayed until the strip's end
      clear(later);
#pragma unroll 1
      for (int I = R + 1; I < 4; ++I) {
        const Group<E> row[2] = {decayed(strip_rows(tiles, rows_q, I)), decayed(strip_rows(tiles, rows_e, I))};
#pragma unroll
        for (int i = 0; i < 2 * Sides; ++i) {
          Group<E> pairs;
          pairs.load_transposed(block(i, I, R), L::LP, at);
          multiply_groups<P>(later[i % Sides], row[i / Sides], pairs);
        }
        pass(I);
      }
#pragma unroll
      for (int w = 0; w < Sides; ++w) {
        const Group<E> y = strip_rows(tiles, rows_k + w, R), row = decayed(y);
        const Group<E> of_chunk = strip_rows(d_tiles, rows_k + w, R);
        float to[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float near = later[w][e / 4][e % 4], d_row = element(of_chunk, e);
          H[e] = fmaf(-element(y, e), near, H[e]);
          key_sum[e] = fmaf(element(row, e), d_row, key_sum[e]);
          to[e] = fmaf(fmaf(d_row, f[e % 4 / 2], near), d.until[e], dy[w][e / 4][e % 4]);
        }
        __syncwarp();
        Group<E>::of(to).store_transposed(d_tiles.strip(rows_k + w, R, c0), d_tiles.ld, at);
      }
      sum_steps(H, key_sum, sums, R, c0, at);
    }
    __syncthreads();

    write_tile(p, c, p.d.dq, d_tiles.of(rows_q), d_tiles.ld, first, 0, at);
    write_tile(p, c, p.d.d_erase, d_tiles.of(rows_e), d_tiles.ld, first, shift, at);
    write_tile(p, c, p.d.dk, d_tiles.of(rows_k), d_tiles.ld, first, 0, at);
    if constexpr (Sides == 2) write_tile(p, c, p.d.d_write, d_tiles.of(rows_w), d_tiles.ld, first, 0, at);
    if (shift && at.thread < kChannels && first + at.thread < p.K) {  // the chunk's first e reads S itself
      const HeadRows<E> to(p.d.d_erase, c.b, c.begin, c.h, p.K);
      to.data[first + at.thread] = p.rows_of<E, Sides>(p.d_rows, c.index, rows_e)[first + at.thread];
    }
    if (p.d.dg && !idle) write_decays(p, c, H, key_sum, strips, sums, first, R, c0, at);
    __syncthreads();
  }
}

struct Launch {
  const GeneralProblem& p;
  Target to;
  template <Product P, int Sides>
  cudaError_t operator()() const {
    return launch(general_channels<P, Sides>, dim3(static_cast<unsigned>(p.all_chunks())), kBlock,
                  ChannelLayout<P, Sides>().bytes, to, p);
  }
};

}  // namespace
}  // namespace sb::cuda::attention

namespace sb::cuda {

cudaError_t launch_general_channels(const GeneralProblem& p, Target to) {
  return attention::by_precision(p, attention::Launch{p, to});
}

}  // namespace sb::cuda
