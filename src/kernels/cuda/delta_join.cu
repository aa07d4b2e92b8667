// S <- A S + B from the first segment on, or dS <- A^T dS + D from the last one on, in float. One block per (sequence,
// head) pair and 16 columns of V.
#include "kernels/cuda/delta_join.cuh"

#include "kernels/cuda/delta_rows.cuh"

namespace sb::cuda {
namespace {

constexpr int kColumns = 16, kThreads = 256, kRowStep = kThreads / kColumns, kRowsAtOnce = 4;

template <bool Backward>
__global__ void __launch_bounds__(kThreads) join(const DeltaJoin p) {
  float* const states = reinterpret_cast<float*>(shared_memory());  // [2][K][kColumns]
  const int column = static_cast<int>(threadIdx.x) % kColumns, row = static_cast<int>(threadIdx.x) / kColumns;
  const int value = static_cast<int>(blockIdx.y) * kColumns + column;
  const bool inside = value < p.V;
  const int64_t pair = blockIdx.x, size = static_cast<int64_t>(p.K) * p.V;
  for (int k = row; k < p.K; k += kRowStep) {
    states[k * kColumns + column] =
        p.given && inside ? p.given[pair * size + static_cast<int64_t>(k) * p.V + value] : 0.f;
  }
  for (int i = 0; i < p.count; ++i) {
    const int64_t segment = pair * p.count + (Backward ? p.count - 1 - i : i);
    const float* const now = states + i % 2 * p.K * kColumns;
    float* const next = states + (i + 1) % 2 * p.K * kColumns;
    const float* const added = p.added + segment * p.K * p.added_columns;
    float* const to = p.states + segment * size + value;
    const float* const more = Backward ? to : added + value;
    const int more_ld = Backward ? p.V : p.added_columns;
    __syncthreads();
    for (int first = row; first < p.K; first += kRowsAtOnce * kRowStep) {
      float sum[kRowsAtOnce];
      int at[kRowsAtOnce];  // of the rows of A, or of its columns; rows behind the last are computed like it
#pragma unroll
      for (int m = 0; m < kRowsAtOnce; ++m) {
        const int k = min(first + m * kRowStep, p.K - 1);
        at[m] = p.transition + (Backward ? k : k * p.added_columns);
        sum[m] = inside && i + 1 < p.count ? more[static_cast<int64_t>(k) * more_ld] : 0.f;
      }
      if (i + 1 < p.count) {
#pragma unroll 4
        for (int j = 0; j < p.K; ++j) {
          const float x = now[j * kColumns + column];
#pragma unroll
          for (int m = 0; m < kRowsAtOnce; ++m) {
            sum[m] = fmaf(added[at[m] + (Backward ? j * p.added_columns : j)], x, sum[m]);
          }
        }
      }
#pragma unroll
      for (int m = 0; m < kRowsAtOnce; ++m) {
        const int k = first + m * kRowStep;
        if (k >= p.K) continue;
        next[k * kColumns + column] = sum[m];
        if (inside) to[static_cast<int64_t>(k) * p.V] = now[k * kColumns + column];
      }
    }
  }
}

}  // namespace

cudaError_t launch_join(const DeltaJoin& p, bool backward, Target to) {
  return launch(backward ? join<true> : join<false>, dim3(p.pairs, (p.V + kColumns - 1) / kColumns), kThreads,
                sizeof(float) * 2 * p.K * kColumns, to, p);
}

}  // namespace sb::cuda
