// A thread has one head, and walks over tokens.
#include "kernels/cuda/mamba3_rows.h"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr int kMaxHeads = kThreads;
constexpr float kLeastRate = 1e-4f;

template <class E>
struct GateValues {
  float in, step, f, share;  // f before its bound
  bool rises;                // rate >= 0
  __device__ GateValues(const Mamba3Gates& p, int64_t token, int head, float bias) {
    const auto at = [&](const RowsIn& rows) {
      return to_float(static_cast<const E*>(rows.data)[token * rows.token + head]);
    };
    const float rate = at(p.rate);
    in = at(p.dt) + bias, step = softplus(in), share = sigmoid(at(p.trap));
    rises = rate >= 0, f = rises ? 1 + rate : 1 / (1 - rate);
  }
};

// Tokens of a thread: from `first` in steps of `stride`
struct TokenWalk {
  int head, group, groups;  // of a block's tokens
  int64_t first, stride;
  __device__ explicit TokenWalk(int heads)
      : head(static_cast<int>(threadIdx.x) % heads),
        group(static_cast<int>(threadIdx.x) / heads),
        groups(kThreads / heads),
        first(static_cast<int64_t>(blockIdx.x) * groups + group),
        stride(static_cast<int64_t>(gridDim.x) * groups) {}
  __device__ bool idle() const { return group >= groups; }
};

template <class E>
__global__ void __launch_bounds__(kThreads) gates_forward(Mamba3Gates p, Mamba3GateOutputs out) {
  const TokenWalk walk(p.heads);
  if (walk.idle()) return;
  const float bias = p.bias[walk.head];
  for (int64_t token = walk.first; token < p.tokens; token += walk.stride) {
    const GateValues<E> x(p, token, walk.head, bias);
    const int64_t at = token * p.heads + walk.head;
    const float here = x.share * x.step;
    out.step[at] = x.step;
    out.decay[at] = -at_least(x.f, kLeastRate) * x.step;
    out.here[at] = here;
    out.before[at] = x.step - here;
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads) gates_backward(Mamba3Gates p, Mamba3GateGradients d, float* parts) {
  __shared__ float sums[kThreads];
  const TokenWalk walk(p.heads);
  float sum = 0;
  const float bias = walk.idle() ? 0.f : p.bias[walk.head];
  for (int64_t token = walk.first; token < p.tokens && !walk.idle(); token += walk.stride) {
    const GateValues<E> x(p, token, walk.head, bias);
    const int64_t at = token * p.heads + walk.head;
    const auto given = [&](const float* from) { return from ? from[at] : 0.f; };
    const float d_before = given(d.before), to_here = given(d.here) - d_before;
    const float to_decay = given(d.decay);
    const float to_f = x.f < kLeastRate ? 0.f : -to_decay * x.step;
    const float to_step = given(d.step) + d_before + to_here * x.share - to_decay * at_least(x.f, kLeastRate);
    const float to_dt = to_step * (x.in > 20 ? 1.f : sigmoid(x.in));
    const auto put = [&](const RowsOut& rows, float v) {
      static_cast<E*>(rows.data)[token * rows.token + walk.head] = from_float<E>(v);
    };
    put(d.d_dt, to_dt);
    put(d.d_rate, x.rises ? to_f : to_f * x.f * x.f);
    put(d.d_trap, to_here * x.step * x.share * (1 - x.share));
    sum += to_dt;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (walk.group != 0) return;
  for (int group = 1; group < walk.groups; ++group) sum += sums[group * p.heads + walk.head];
  parts[static_cast<int64_t>(blockIdx.x) * p.heads + walk.head] = sum;
}

bool valid(const Mamba3Gates& p) {
  return p.tokens > 0 && p.heads > 0 && p.heads <= kMaxHeads;
}
int blocks_of(const Mamba3Gates& p) {
  const int64_t wanted = (p.tokens + kThreads / p.heads - 1) / (kThreads / p.heads);
  return static_cast<int>(std::min({wanted, static_cast<int64_t>(multiprocessors()) * 4, int64_t{kMaxParts}}));
}

}  // namespace

cudaError_t mamba3_gates_forward(const Mamba3Gates& p, const Mamba3GateOutputs& out, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    gates_forward<E><<<blocks_of(p), kThreads, 0, stream>>>(p, out);
    return cudaGetLastError();
  });
}

size_t mamba3_gates_scratch_bytes(const Mamba3Gates& p) {
  return sizeof(float) * static_cast<size_t>(blocks_of(p)) * p.heads;
}

cudaError_t mamba3_gates_backward(const Mamba3Gates& p, const Mamba3GateGradients& d, void* scratch,
                                  cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  auto* const parts = static_cast<float*>(scratch);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    gates_backward<E><<<blocks_of(p), kThreads, 0, stream>>>(p, d, parts);
    return cudaGetLastError();
  });
  return status == cudaSuccess ? sum_parts(parts, blocks_of(p), p.heads, d.d_bias, p.heads, nullptr, stream) : status;
}

}  // namespace sb::cuda
