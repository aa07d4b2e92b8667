// S <- A S + B from the first segment on, or dS <- A^T dS + D from the last one on, in float. One block per (sequence,
// head) pair and 16 columns of V; a thread has two columns of some rows. A does not depend on the states: its panels,
// of 16 terms of each sum, are copied several ahead.
#include "kernels/cuda/delta_join.cuh"

#include "kernels/cuda/delta_rows.cuh"

namespace sb::cuda {
namespace {

constexpr int kColumns = 16, kThreads = 256, kRowThreads = kThreads / (kColumns / 2), kDepth = 16;

// Groups: of 128 rows
template <bool Backward, int Groups>
struct Join {
  static constexpr int stages = Groups == 1 ? 4 : 3;
  static constexpr int panel_ld = kDepth + 4;  // forward: a panel is [K][kDepth], backward [kDepth][rows]
  const DeltaJoin& p;
  int rows;  // K, rounded up to a multiple of 4
  float *states, *panels;
  int column, row_thread, value;

  __host__ __device__ static int rows_of(int K) { return (K + 3) / 4 * 4; }
  __host__ __device__ static int panel_size(int rows) { return rows * panel_ld; }
  static size_t bytes(int K) { return sizeof(float) * (2 * rows_of(K) * kColumns + stages * panel_size(rows_of(K))); }
  __device__ explicit Join(const DeltaJoin& join) : p(join), rows(rows_of(join.K)) {
    states = reinterpret_cast<float*>(shared_memory());  // [2][rows][kColumns]
    panels = states + 2 * rows * kColumns;
    column = static_cast<int>(threadIdx.x) % (kColumns / 2) * 2;
    row_thread = static_cast<int>(threadIdx.x) / (kColumns / 2);
    value = static_cast<int>(blockIdx.y) * kColumns + column;
  }
  // The thread's rows: in forward, neighbours read neighbouring rows of a panel; in backward, a thread reads four
  // neighbouring columns at once
  __device__ int row(int group, int m) const {
    return 4 * kRowThreads * group + (Backward ? 4 * row_thread + m : row_thread + kRowThreads * m);
  }
  __device__ int64_t segment(int step) const {
    return static_cast<int64_t>(blockIdx.x) * p.count + (Backward ? p.count - 1 - step : step);
  }
  __device__ const float* matrix(int step) const {
    return p.added + segment(step) * p.K * p.added_columns + p.transition;
  }
  __device__ float* panel(int n) const { return panels + n % stages * panel_size(rows); }

  // Starts to copy panel `part` of the matrix of a step to the ring's place n. Behind the last row there are zeros.
  __device__ void copy(int n, int step, int part) const {
    if (step + 1 < p.count) {
      const float* const from = matrix(step);
      float* const to = panel(n);
      const int first = part * kDepth, thread = static_cast<int>(threadIdx.x);
      if constexpr (Backward) {
        for (int j = thread / 32; j < kDepth; j += kThreads / 32) {
          const bool inside = first + j < p.K;
          for (int k = thread % 32 * 4; k < rows; k += 128) {
            const float* const x = inside ? from + static_cast<int64_t>(first + j) * p.added_columns + k : from;
            copy_async(to + j * rows + k, x, inside ? 16 : 0);
          }
        }
      } else {
        const int j = thread % (kDepth / 4) * 4;
        if (first + j < rows) {
          for (int k = thread / (kDepth / 4); k < p.K; k += kThreads / (kDepth / 4))
            copy_async(to + k * panel_ld + j, from + static_cast<int64_t>(k) * p.added_columns + first + j, 16);
        }
      }
    }
    copy_commit();
  }

  // sums += the panel's terms
  __device__ void add(float2 (&sums)[Groups][4], const float* panel, const float* now, int first) const {
    const int depth = min(kDepth, rows - first);
    now += first * kColumns + column;
    for (int j = 0; j < depth; j += 4) {
      float2 x[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) x[e] = *reinterpret_cast<const float2*>(now + (j + e) * kColumns);
#pragma unroll
      for (int g = 0; g < Groups; ++g) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // forward: a row and four terms; backward: a term and four rows
          const float* const at = Backward ? panel + (j + i) * rows + min(row(g, 0), rows - 4)
                                           : panel + min(row(g, i), p.K - 1) * panel_ld + j;
          const float4 four = *reinterpret_cast<const float4*>(at);
          const float a[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float2& sum = sums[g][Backward ? e : i];
            const float2 y = x[Backward ? i : e];
            sum.x = fmaf(a[e], y.x, sum.x), sum.y = fmaf(a[e], y.y, sum.y);
          }
        }
      }
    }
  }

  // Calls f(the thread's pair of elements, row) for its rows
  template <class F>
  __device__ void each(float2 (&x)[Groups][4], const F& f) const {
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
#pragma unroll
      for (int m = 0; m < 4; ++m)
        if (row(g, m) < p.K) f(x[g][m], row(g, m));
    }
  }
  __device__ void read(float2 (&x)[Groups][4], const float* from, int ld) const {
    each(x, [&](float2& pair, int k) {
      const float* const at = from + static_cast<int64_t>(k) * ld + value;
      pair = make_float2(value < p.V ? at[0] : 0.f, value + 1 < p.V ? at[1] : 0.f);
    });
  }
  __device__ void write(float2 (&x)[Groups][4], float* to) const {
    each(x, [&](const float2& pair, int k) {
      float* const at = to + static_cast<int64_t>(k) * p.V + value;
      if (value < p.V) at[0] = pair.x;
      if (value + 1 < p.V) at[1] = pair.y;
    });
  }
  // B or D of a step's segment
  __device__ void read_added(float2 (&x)[Groups][4], int step) const {
    if (step + 1 >= p.count) return;
    if constexpr (Backward)
      read(x, p.states + segment(step) * p.K * p.V, p.V);
    else
      read(x, p.added + segment(step) * p.K * p.added_columns, p.added_columns);
  }

  __device__ void run() const {
    const int parts = (rows + kDepth - 1) / kDepth;
    for (int n = 0; n < stages - 1; ++n) copy(n, n / parts, n % parts);
    float2 own[Groups][4] = {}, added[Groups][4] = {};
    if (p.given) read(own, p.given + static_cast<int64_t>(blockIdx.x) * p.K * p.V, p.V);
    for (int i = static_cast<int>(threadIdx.x); i < 2 * rows * kColumns; i += kThreads) states[i] = 0;
    read_added(added, 0);
    __syncthreads();
    for (int step = 0, n = 0; step < p.count; ++step) {
      float* const now = states + step % 2 * rows * kColumns;
      each(own, [&](const float2& pair, int k) { *reinterpret_cast<float2*>(now + k * kColumns + column) = pair; });
      float2 sums[Groups][4];
#pragma unroll
      for (int g = 0; g < Groups; ++g)
#pragma unroll
        for (int m = 0; m < 4; ++m) sums[g][m] = added[g][m];
      read_added(added, step + 1);
      write(own, p.states + segment(step) * p.K * p.V);
      if (step + 1 == p.count) return;
      for (int part = 0; part < parts; ++part, ++n) {
        copy_wait<stages - 2>();
        __syncthreads();
        const int ahead = n + stages - 1;
        copy(ahead, ahead / parts, ahead % parts);
        add(sums, panel(n), now, part * kDepth);
      }
#pragma unroll
      for (int g = 0; g < Groups; ++g)
#pragma unroll
        for (int m = 0; m < 4; ++m) own[g][m] = sums[g][m];
    }
  }
};

template <bool Backward, int Groups>
__global__ void __launch_bounds__(kThreads) join(const __grid_constant__ DeltaJoin p) {
  Join<Backward, Groups>(p).run();
}

}  // namespace

cudaError_t launch_join(const DeltaJoin& p, bool backward, Target to) {
  const dim3 grid(p.pairs, (p.V + kColumns - 1) / kColumns);
  const auto run = [&](auto kernel, size_t bytes) { return launch(kernel, grid, kThreads, bytes, to, p); };
  if (p.K > 4 * kRowThreads)
    return backward ? run(join<true, 2>, Join<true, 2>::bytes(p.K)) : run(join<false, 2>, Join<false, 2>::bytes(p.K));
  return backward ? run(join<true, 1>, Join<true, 1>::bytes(p.K)) : run(join<false, 1>, Join<false, 1>::bytes(p.K));
}

}  // namespace sb::cuda
