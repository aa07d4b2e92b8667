// Products over the columns of V for every chunk, all chunks in parallel (formulas: general_delta_problem.cuh):
//   [dO; Z] S^T = [dQd; dEd]        [dO; Z] V^T = [dP; dE]        by the first eight warps, 16 rows each
//   [V; R] dS+^T = [dKd; dWd]       [dO; Z] R^T = [dQ; dA]        by the others
// and <dS+, S> of each key channel. So each operand is read once. If keys are written, D takes the place of V and R,
// -dV that of Z. The last two products are then [dO; Z] D^T = [dP; dA] and D dS+^T = dKd, each warp with half of its
// channels.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/general_delta_chunk.cuh"

namespace sb::cuda::attention {
namespace {

constexpr int kOuterThreads = 512;
constexpr int kSlice = 64;  // columns of V at a time

// Tiles of a slice: dO, Z, V, R or, if keys are written, dO, -Z, D, each 64 rows, then N rows of S and of dS+
template <Product P, int N, int Sides>
struct OuterLayout {
  using E = Operand<P>;
  static constexpr int LV = leading<E>(kSlice), buffers = sizeof(E) == 2 ? 2 : 1;
  static constexpr int rows = kChunk * LV, states = N * LV, states_at = (2 + Sides) * rows,
                       one = states_at + 2 * states;
  size_t tiles, bytes;
  __host__ __device__ OuterLayout() {
    Pieces m;
    tiles = m.take<E>(buffers * one);
    bytes = m.used;
  }
};

// 16 rows and N columns of a product, summed in groups of columns that leave registers for operands
template <Product P, int N>
struct ProductStrip {
  using E = Operand<P>;
  static constexpr int columns = P == Product::bf16 ? (N < 128 ? N : 64) : N % 32 == 0 ? 32 : N, groups = N / columns;
  Sum sums[groups][1][columns / 8];
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < groups; ++i) cuda::clear(sums[i]);
  }
  // sums += left right^T over a slice, only the first `Few` columns, at most N
  template <int Few = N>
  __device__ __forceinline__ void add(const E* left, const E* right, const Place& at, int depth) {
    constexpr int ld = leading<E>(kSlice), whole = Few / columns, rest = Few % columns / 8;
#pragma unroll
    for (int i = 0; i < whole; ++i)
      multiply<P, Depth::fast, Depth::fast, kSlice>(sums[i], left, ld, right + i * columns * ld, ld, at.lane, depth);
    if constexpr (rest > 0)
      multiply<P, Depth::fast, Depth::fast, kSlice>(reinterpret_cast<Sum(&)[1][rest]>(sums[whole]), left, ld,
                                                    right + whole * columns * ld, ld, at.lane, depth);
  }
  // Calls f(row, first column of the group, column in it, two elements)
  template <int Few = N, class F>
  __device__ __forceinline__ void each(const Place& at, const F& f) {
    constexpr int whole = Few / columns, rest = Few % columns / 8;
    const auto each_of = [&](auto& of, int first) {
      for_pairs(of, at, [&](int r, int column, float x, float y) { f(r, first, column, x, y); });
    };
#pragma unroll
    for (int i = 0; i < whole; ++i) each_of(sums[i], i * columns);
    if constexpr (rest > 0) each_of(reinterpret_cast<Sum(&)[1][rest]>(sums[whole]), whole * columns);
  }
};

// One block: every gridDim.x-th chunk and N key channels, from N * blockIdx.y on. It copies the first slice of the next
// chunk while it works on the last one of this chunk.
template <Product P, int N, int Sides>
__global__ void __launch_bounds__(kOuterThreads, 1) general_outer(const __grid_constant__ GeneralProblem p) {
  using E = Operand<P>;
  using L = OuterLayout<P, N, Sides>;
  constexpr int channels = Sides == 2 ? N : N / 2;  // of a warp's first product
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E* const tiles = reinterpret_cast<E*>(memory + at_bytes.tiles);
  const Place at;
  const int key = N * static_cast<int>(blockIdx.y);
  const bool later = at.warp >= 8, pairs = blockIdx.y == 0;
  const auto copy_slice = [&](const ChunkPlace& c, int first, int turn) {
    const int64_t states_at = (c.index * p.key_tile + key) * p.values, rows_at = c.index * kChunk * p.values;
    E* const to = tiles + turn % L::buffers * L::one;
    const auto copy_rows = [&](int tile, const auto& rows) {
      HeadRows<const E> from(rows, c.b, c.begin, c.h, p.V);
      from.data += first;
      copy_tile<kChunk, kSlice, kOuterThreads>(to + tile * L::rows, L::LV, from, c.steps, p.V - first, at);
    };
    const auto copy_kept = [&](E* tile, void* kept, int64_t start, auto rows) {
      const HeadRows<const E> from(static_cast<const E*>(kept) + start + first, p.values);
      copy_tile<rows.value, kSlice, kOuterThreads>(tile, L::LV, from, rows.value, p.values - first, at);
    };
    copy_rows(0, p.d.d_out);
    if constexpr (Sides == 2) {
      copy_kept(to + L::rows, p.solved, rows_at, std::integral_constant<int, kChunk>());
      copy_rows(2, p.in.v);
    } else {
      copy_rows(1, p.d.dv);
    }
    copy_kept(to + (1 + Sides) * L::rows, p.erased, rows_at, std::integral_constant<int, kChunk>());
    copy_kept(to + L::states_at, p.states, states_at, std::integral_constant<int, N>());
    copy_kept(to + L::states_at + L::states, p.d_states, states_at, std::integral_constant<int, N>());
  };

  int turn = 0;  // number of slices before this one
  copy_slice(ChunkPlace(p, blockIdx.x), 0, turn);
  for (int64_t index = blockIdx.x; index < p.all_chunks(); index += gridDim.x) {
    ProductStrip<P, channels> by_state;
    ProductStrip<P, kChunk> by_pair;
    by_state.clear();
    by_pair.clear();
    float along = 0;  // <dS+, S> of a channel: a quarter of the columns
    const int channel = at.thread / 4;
    for (int first = 0; first < p.V; first += kSlice, ++turn) {
      finish_copies();
      __syncthreads();
      const bool last = first + kSlice >= p.V, more = !last || index + gridDim.x < p.all_chunks();
      const auto copy_next = [&] {
        copy_slice(ChunkPlace(p, last ? index + gridDim.x : index), last ? 0 : first + kSlice, turn + 1);
      };
      if (L::buffers == 2 && more) copy_next();
      const E* const slice = tiles + turn % L::buffers * L::one;
      const int half = Sides == 1 ? at.half % 2 : 0;
      const E *d_rows = slice + at.warp % 8 * 16 * L::LV, *left = d_rows + (later ? (2 - half) * L::rows : 0);
      const E *states = slice + L::states_at, *right = states + (later ? L::states + half * channels * L::LV : 0);
      const int depth = min(kSlice, p.values - first);
      if (channel < N) {
#pragma unroll
        for (int v = 2 * at.pair; v < kSlice; v += 8) {
          const float2 x = load_pair(states + channel * L::LV + v),
                       y = load_pair(states + L::states + channel * L::LV + v);
          along = fmaf(x.x, y.x, fmaf(x.y, y.y, along));
        }
      }
      by_state.add(left, right, at, depth);
      if (Sides == 1 && !later)
        by_pair.template add<channels>(d_rows, states + channels * L::LV, at, depth);
      else if (pairs)
        by_pair.add(d_rows, slice + (Sides == 2 && later ? 3 : 2) * L::rows, at, depth);
      if (L::buffers == 1 && more) {
        __syncthreads();
        copy_next();
      }
    }

    const int second = at.warp / 4 % 2, i0 = at.warp % 4 * 16;  // rows of dO or V, or of Z or R
    E* const to =
        p.rows_of<E, Sides>(p.d_rows, index, (later ? rows_k : rows_q) + (Sides == 2 || !later ? second : 0)) + key +
        (Sides == 1 && later ? second * channels : 0);
    const auto put = [&](int r, int first, int column, float x, float y) {
      const float sign = Sides == 1 && !later && second ? -1.f : 1.f;  // of -Z S^T
      store_pair(to + (i0 + r) * p.key_tile + first + column, sign * x, sign * y);
    };
    by_state.each(at, put);
    if (Sides == 1 && !later) {
      by_pair.template each<channels>(
          at, [&](int r, int first, int column, float x, float y) { put(r, channels + first, column, x, y); });
    } else if (pairs) {
      E* const matrix = p.matrix_of<E, Sides>(p.d_matrices, index, Sides == 2 ? 2 * second + (later ? 1 : 0) : second);
      const float scale = second ? (Sides == 2 ? 1.f : -1.f) : p.in.scale;
      by_pair.each(at, [&](int r, int first, int column, float x, float y) {
        const int row = i0 + r, j = first + column;
        const int most = second ? row - 1 : row;  // e_i meets k_j and w_j of steps before it
        store_pair(matrix + row * kChunk + j, j <= most ? scale * x : 0.f, j + 1 <= most ? scale * y : 0.f);
      });
    }
    along = sum_lanes(along, 1, 4);
    if (at.pair == 0 && channel < N) p.along[index * p.key_tile + key + channel] = along;
  }
}

struct Launch {
  const GeneralProblem& p;
  Target to;
  template <Product P, int N, int Sides>
  cudaError_t launch_tiles() const {
    const int64_t blocks = std::min<int64_t>(p.all_chunks(), multiprocessors());
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(p.key_tile / N));
    return launch(general_outer<P, N, Sides>, grid, kOuterThreads, OuterLayout<P, N, Sides>().bytes, to, p);
  }
  template <Product P, int Sides>
  cudaError_t operator()() const {
    if constexpr (P == Product::bf16)
      if (p.key_tile == 80) return launch_tiles<P, 80, Sides>();
    if (p.key_tile == 64) return launch_tiles<P, 64, Sides>();
    if (p.key_tile == 96) return launch_tiles<P, 96, Sides>();
    return launch_tiles<P, 128, Sides>();
  }
};

}  // namespace
}  // namespace sb::cuda::attention

namespace sb::cuda {

cudaError_t launch_general_outer(const GeneralProblem& p, Target to) {
  return attention::by_precision(p, attention::Launch{p, to});
}

}  // namespace sb::cuda
