// Steps, log-decays and write strengths, and sums over rows, in which a thread keeps its columns.
#include "kernels/cuda/gates.cuh"

namespace sb::cuda {
namespace {

template <class E>
struct StepForward {
  StepGates p;
  TokenRows<float> step, decay;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> x;
    float v[kPack], bias[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
    at.parameters(bias, p.bias, pack, 0.f);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = softplus(x[j] + bias[j]);
    if (step.data) at.store(row_of<float>(step, r), pack, v);
    if (!decay.data) return;
    float A[kPack];
    at.parameters(A, p.A_log, pack, 0.f);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = -expf(A[j]) * v[j];
    at.store(row_of<float>(decay, r), pack, v);
  }
};
template <class E>
struct SigmoidForward {
  SigmoidGate p;
  TokenRows<float> out;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> x;
    float v[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = p.scale * (p.log ? log_sigmoid(x[j]) : sigmoid(x[j]));
    at.store(row_of<float>(out, r), pack, v);
  }
};
template <class E>
struct SigmoidBackward {
  SigmoidGate p;
  TokenRows<const float> g;
  RowsOut dx;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> x;
    Raw<float> go;
    float v[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
    at.load(go, row_of<const float>(g, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float sig = sigmoid(x[j]);
      v[j] = p.scale * go[j] * (p.log ? sigmoid(-x[j]) : sig * (1.f - sig));
    }
    at.store(row_of<E>(dx, r), pack, v);
  }
};

// Blocks of `lanes` <= 32 packs x 256 / lanes rows; grid (columns, parts)
struct Tiling {
  int lanes, columns, parts;
  Tiling(const GateRows& p) {
    const int packs = (p.width + kPack - 1) / kPack;
    lanes = 1;
    while (lanes < packs && lanes < 32) lanes *= 2;
    columns = (packs + lanes - 1) / lanes;
    const int64_t rows = (p.rows + kThreads / lanes - 1) / (kThreads / lanes);
    parts = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>({rows, std::max(64, 2112 / columns), kMaxParts})));
  }
};

// `Sums` sums a column, added over the rows of a warp, then over warps, in order, to parts [parts][Sums][width]
template <int Sums, Access A>
__device__ void store_sums(float (&sums)[Sums][kPack], const Pack<A>& at, int pack, int lanes, float* parts) {
  __shared__ float shared[kThreads / 32][Sums * kPack][33];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      for (int step = 16; step >= lanes; step /= 2) sums[s][j] += __shfl_xor_sync(0xffffffffu, sums[s][j], step);
      shared[warp][s * kPack + j][lane] = sums[s][j];
    }
  }
  __syncthreads();
  if (threadIdx.x >= lanes) return;
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (!at.inside(pack, j)) continue;
      float total = 0;
      for (int from = 0; from < kThreads / 32; ++from) total += shared[from][s * kPack + j][lane];
      parts[(static_cast<int64_t>(blockIdx.y) * Sums + s) * at.width + at.column(pack, j)] = total;
    }
  }
}

template <class E, Access A>
__global__ void __launch_bounds__(kThreads)
    step_backward(const __grid_constant__ StepGates p, TokenRows<const float> d_step, TokenRows<const float> d_decay,
                  RowsOut dx, int lanes, float* parts) {
  const Pack<A> at{0, p.rows.width, p.rows.width};
  const int pack = blockIdx.x * lanes + threadIdx.x % lanes, groups = kThreads / lanes;
  float sums[2][kPack] = {}, bias[kPack], A_log[kPack];
  at.parameters(bias, p.bias, pack, 0.f);
  at.parameters(A_log, p.A_log, pack, 0.f);
#pragma unroll
  for (int j = 0; j < kPack; ++j) A_log[j] = -expf(A_log[j]);
  for (int64_t r = static_cast<int64_t>(blockIdx.y) * groups + threadIdx.x / lanes; r < p.rows.rows;
       r += static_cast<int64_t>(gridDim.y) * groups) {
    if (!at.inside(pack, 0)) break;
    Raw<E> x;
    Raw<float> by_step, by_decay;
    float v[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
    if (d_step.data) at.load(by_step, row_of<const float>(d_step, r), pack);
    if (d_decay.data) at.load(by_decay, row_of<const float>(d_decay, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float in = x[j] + bias[j], slope = in > 20 ? 1.f : sigmoid(in);
      float d = d_step.data ? by_step[j] : 0.f;
      if (d_decay.data) {
        const float step = softplus(in), through = by_decay[j] * A_log[j];
        d += through;
        sums[1][j] += through * step;
      }
      v[j] = d * slope;
      sums[0][j] += v[j];
    }
    at.store(row_of<E>(dx, r), pack, v);
  }
  store_sums<2>(sums, at, pack, lanes, parts);
}

template <class E, Access A>
__global__ void __launch_bounds__(kThreads) add_columns(GateRows p, RowsIn x, int lanes, float* parts) {
  const Pack<A> at{0, p.width, p.width};
  const int pack = blockIdx.x * lanes + threadIdx.x % lanes, groups = kThreads / lanes;
  const int64_t step = static_cast<int64_t>(gridDim.y) * groups;
  float sums[1][kPack] = {};
  if (at.inside(pack, 0)) {
#pragma unroll 4
    for (int64_t r = static_cast<int64_t>(blockIdx.y) * groups + threadIdx.x / lanes; r < p.rows; r += step) {
      Raw<E> v;
      at.load(v, row_of<const E>(x, r), pack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) sums[0][j] += v[j];
    }
  }
  store_sums<1>(sums, at, pack, lanes, parts);
}

}  // namespace

cudaError_t step_gates_forward(const StepGates& p, const TokenRows<float>& step, const TokenRows<float>& decay,
                               cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    return launch_packs(p.rows, all_on_vectors<E>(1, p.x) && all_on_vectors<float>(1, step, decay),
                        StepForward<E>{p, step, decay}, stream);
  });
}
size_t step_gates_scratch_bytes(const StepGates& p) {
  return sizeof(float) * 2 * p.rows.width * Tiling(p.rows).parts;
}
cudaError_t step_gates_backward(const StepGates& p, const TokenRows<const float>& d_step,
                                const TokenRows<const float>& d_decay, const RowsOut& dx, float* d_bias, float* d_A_log,
                                void* scratch, cudaStream_t stream) {
  if (!valid(p.rows) || p.rows.rows == 0) return cudaErrorInvalidValue;
  const Tiling tiling(p.rows);
  const cudaError_t status = with_element(p.rows.element, [&]<class E>() {
    const auto run = [&](auto kernel) {
      kernel<<<dim3(tiling.columns, tiling.parts), kThreads, 0, stream>>>(p, d_step, d_decay, dx, tiling.lanes,
                                                                          static_cast<float*>(scratch));
      return cudaGetLastError();
    };
    return all_on_vectors<E>(1, p.x, dx) && all_on_vectors<float>(1, d_step, d_decay)
               ? run(step_backward<E, Access::vectors>)
               : run(step_backward<E, Access::neighbours>);
  });
  if (status != cudaSuccess) return status;
  return sum_parts(static_cast<float*>(scratch), tiling.parts, 2 * p.rows.width, d_bias, p.rows.width, d_A_log, stream);
}

cudaError_t sigmoid_gate_forward(const SigmoidGate& p, const TokenRows<float>& out, cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    return launch_packs(p.rows, all_on_vectors<E>(1, p.x) && all_on_vectors<float>(1, out), SigmoidForward<E>{p, out},
                        stream);
  });
}
cudaError_t sigmoid_gate_backward(const SigmoidGate& p, const TokenRows<const float>& d_out, const RowsOut& dx,
                                  cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    return launch_packs(p.rows, all_on_vectors<E>(1, p.x, dx) && all_on_vectors<float>(1, d_out),
                        SigmoidBackward<E>{p, d_out, dx}, stream);
  });
}

size_t column_sums_scratch_bytes(const GateRows& p) {
  return sizeof(float) * p.width * Tiling(p).parts;
}
cudaError_t column_sums(const GateRows& p, const RowsIn& x, float* sums, void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  const Tiling tiling(p);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    const auto run = [&](auto kernel) {
      kernel<<<dim3(tiling.columns, tiling.parts), kThreads, 0, stream>>>(p, x, tiling.lanes,
                                                                          static_cast<float*>(scratch));
      return cudaGetLastError();
    };
    return all_on_vectors<E>(1, x) ? run(add_columns<E, Access::vectors>) : run(add_columns<E, Access::neighbours>);
  });
  if (status != cudaSuccess) return status;
  return sum_parts(static_cast<float*>(scratch), tiling.parts, p.width, sums, p.width, nullptr, stream);
}

}  // namespace sb::cuda
