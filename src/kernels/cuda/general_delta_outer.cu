// Products over the columns of V for every chunk, all chunks in parallel (formulas: general_delta_problem.cuh):
//   0: [dO; Z] S^T = [dQd; dEd]        1: [V; R] dS+^T = [dKd; dWd]        2: [dO; Z] [V; R]^T = [dP dQ; dE dA]
// and <dS+, S> of each key channel.
#include "kernels/cuda/general_delta_chunk.cuh"

namespace sb::cuda::attention {
namespace {

constexpr int kSlice = 64;  // columns of V at a time

enum Job { by_states, by_gradients, by_values };

struct OuterArguments {
  GeneralProblem p;
  int first_job;
};

template <Product P, int N>
struct OuterLayout {
  using E = Element<P>;
  static constexpr int LV = leading<E>(kSlice), buffers = sizeof(E) == 2 ? 2 : 1;
  static constexpr int left = 2 * kChunk * LV, one = left + N * LV;
  size_t tiles, bytes;
  __host__ __device__ OuterLayout() {
    Pieces m;
    tiles = m.take<E>(buffers * one);
    bytes = m.used;
  }
};

// One block: 128 rows, 16 per warp, by N columns
template <Product P, int N>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 && N <= 128 ? 2 : 1)
    general_outer(const __grid_constant__ OuterArguments a) {
  using E = Element<P>;
  using L = OuterLayout<P, N>;
  constexpr int columns = P == Product::bf16 ? (N <= 128 ? N : 128) : 32, groups = N / columns;  // of one product
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E* const tiles = reinterpret_cast<E*>(memory + at_bytes.tiles);
  const GeneralProblem& p = a.p;
  const Place at;
  const ChunkPlace c(p);
  const int job = a.first_job + static_cast<int>(blockIdx.y);
  const int64_t state_at = c.index * p.key_tile * p.values;
  const auto chunk_rows = [&](void* rows) {
    return HeadRows<const E>(static_cast<const E*>(rows) + c.index * kChunk * p.values, p.values);
  };
  const auto copy_rows = [&](E* to, const ConstRows& rows, void* more, int first) {
    HeadRows<const E> from(rows, c.b, c.begin, c.h, p.V), from_more = chunk_rows(more);
    from.data += first;
    from_more.data += first;
    copy_tile<kChunk, kSlice>(to, L::LV, from, c.steps, p.V - first, at);
    copy_tile<kChunk, kSlice>(to + kChunk * L::LV, L::LV, from_more, kChunk, p.values - first, at);
  };
  const auto copy_slice = [&](int first) {
    E *left = tiles + first / kSlice % L::buffers * L::one, *right = left + L::left;
    if (job == by_gradients)
      copy_rows(left, p.in.v, p.erased, first);
    else
      copy_rows(left, p.d.d_out, p.solved, first);
    if (job == by_values) {
      if constexpr (N == 2 * kChunk) copy_rows(right, p.in.v, p.erased, first);
    } else {
      const E* from = static_cast<const E*>(job == by_states ? p.states : p.d_states) + state_at + first;
      copy_tile<N, kSlice>(right, L::LV, HeadRows<const E>(from, p.values), p.key_tile, p.values - first, at);
    }
  };

  float acc[groups][1][columns / 8][4];
#pragma unroll
  for (int i = 0; i < groups; ++i) clear(acc[i]);
  copy_slice(0);
  for (int first = 0; first < p.V; first += kSlice) {
    finish_copies();
    __syncthreads();
    if (L::buffers == 2 && first + kSlice < p.V) copy_slice(first + kSlice);
    const E *left = tiles + first / kSlice % L::buffers * L::one, *right = left + L::left;
#pragma unroll
    for (int i = 0; i < groups; ++i)
      multiply<P, Depth::fast, Depth::fast, kSlice>(acc[i], left + at.warp * 16 * L::LV, L::LV,
                                                    right + i * columns * L::LV, L::LV, at.lane);
    if (L::buffers == 1 && first + kSlice < p.V) {
      __syncthreads();
      copy_slice(first + kSlice);
    }
  }

  const int lower = at.warp / 4, i0 = at.warp % 4 * 16;  // rows of dO or V, or of Z or R
#pragma unroll
  for (int i = 0; i < groups; ++i)
    for_pairs(acc[i], at, [&](int r, int column, float x, float y) {
      const int row = i0 + r, to = i * columns + column;
      if (job == by_values) {
        const int j = to % kChunk, most = lower ? row - 1 : row;  // e_i meets k_j and w_j of steps before it
        const float scale = lower ? 1.f : p.in.scale;
        store_pair(p.matrix_of<E>(p.d_matrices, c.index, lower * 2 + to / kChunk) + row * kChunk + j,
                   j <= most ? scale * x : 0.f, j + 1 <= most ? scale * y : 0.f);
      } else if (to < p.key_tile) {
        store_pair(p.rows_of<E>(p.d_rows, c.index, job * 2 + lower) + row * p.key_tile + to, x, y);
      }
    });
  if (job != by_gradients) return;
  for (int channel = at.warp; channel < p.key_tile; channel += kBlock / 32) {
    const int64_t from = state_at + static_cast<int64_t>(channel) * p.values;
    float sum = 0;
    for (int v = 2 * at.lane; v < p.values; v += 64) {
      const float2 x = load_pair(static_cast<const E*>(p.states) + from + v),
                   y = load_pair(static_cast<const E*>(p.d_states) + from + v);
      sum += x.x * y.x + x.y * y.y;
    }
    sum = sum_lanes(sum, 1, 32);
    if (at.lane == 0) p.along[c.index * p.key_tile + channel] = sum;
  }
}

template <Product P, int N>
cudaError_t launch_jobs(const GeneralProblem& p, Job first, int jobs, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(p.all_chunks()), static_cast<unsigned>(jobs));
  return launch(general_outer<P, N>, grid, OuterLayout<P, N>().bytes, OuterArguments{p, first}, stream);
}

struct Launch {
  const GeneralProblem& p;
  cudaStream_t stream;
  template <Product P>
  cudaError_t operator()() const {
    const cudaError_t status = launch_jobs<P, 2 * kChunk>(p, by_values, 1, stream);
    if (status != cudaSuccess) return status;
    if constexpr (P == Product::bf16)
      if (p.key_tile == 80) return launch_jobs<P, 80>(p, by_states, 2, stream);
    if (p.key_tile == 64) return launch_jobs<P, 64>(p, by_states, 2, stream);
    if (p.key_tile == 96) return launch_jobs<P, 96>(p, by_states, 2, stream);
    if (p.key_tile == 128) return launch_jobs<P, 128>(p, by_states, 2, stream);
    return launch_jobs<P, 256>(p, by_states, 2, stream);
  }
};

}  // namespace
}  // namespace sb::cuda::attention

namespace sb::cuda {

cudaError_t launch_general_outer(const GeneralProblem& p, cudaStream_t stream) {
  return attention::by_precision(p, attention::Launch{p, stream});
}

}  // namespace sb::cuda
