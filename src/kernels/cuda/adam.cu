#include "kernels/cuda/adam.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr int kNormBlocks = 1056;  // whatever the GPU, so that sums do not depend on it

struct Coefficients {
  float scale, root;
  int apply;
};
struct GroupCoefficients {
  float step, shrink;
};

struct Workspace {
  unsigned* done;  // blocks of the norm that are through
  double* sums;    // [kNormBlocks]
  Coefficients* common;
  GroupCoefficients* of_group;
  explicit Workspace(void* memory) {
    char* at = static_cast<char*>(memory);
    done = reinterpret_cast<unsigned*>(at);
    common = reinterpret_cast<Coefficients*>(at + 16);
    sums = reinterpret_cast<double*>(at + 32);
    of_group = reinterpret_cast<GroupCoefficients*>(at + 32 + sizeof(double) * kNormBlocks);
  }
};

__device__ inline double block_sum(double sum) {
  __shared__ double shared[kThreads];
  __syncthreads();
  shared[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

__global__ void __launch_bounds__(kThreads)
    norm_and_coefficients(const __grid_constant__ FlatAdam p, AdamReport* report, Workspace work) {
  double sum = 0;
  const int64_t quads = p.count / 4, step = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const auto square = [](float x) { return static_cast<double>(x) * static_cast<double>(x); };
#pragma unroll 4
  for (int64_t i = first; i < quads; i += step) {
    const float4 g = reinterpret_cast<const float4*>(p.gradients)[i];
    sum += (square(g.x) + square(g.y)) + (square(g.z) + square(g.w));
  }
  if (first < p.count % 4) sum += square(p.gradients[quads * 4 + first]);
  sum = block_sum(sum);
  __shared__ bool last;
  if (threadIdx.x == 0) {
    work.sums[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(work.done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0;
  for (int i = threadIdx.x; i < kNormBlocks; i += kThreads) sum += __ldcg(work.sums + i);
  const double norm = sqrt(block_sum(sum));
  const bool made = isfinite(norm) && (!p.loss || isfinite(*p.loss)) && (!p.sound || *p.sound);
  const double t = static_cast<double>(*p.updates + 1), lr = *p.lr, clip = p.clip ? *p.clip : 0;
  const double to_first = 1 - pow(p.beta1, t), to_second = 1 - pow(p.beta2, t);
  for (int i = threadIdx.x; i < p.group_count; i += kThreads) {
    const AdamGroup group = p.groups[i];
    const double rate = group.max_lr > 0 ? fmin(lr, group.max_lr) : lr;
    work.of_group[i] = {static_cast<float>(rate / to_first),
                        static_cast<float>(group.decay ? 1 - rate * p.weight_decay : 1)};
  }
  __syncthreads();  // everyone has read the count and `sound`
  if (threadIdx.x != 0) return;
  *work.common = {static_cast<float>(clip > 0 ? fmin(1.0, clip / (norm + 1e-6)) : 1.0),
                  static_cast<float>(1 / sqrt(to_second)), made};
  if (made) *p.updates += 1;
  if (p.sound) *p.sound = made;
  if (report) *report = {norm, made ? 1.0 : 0.0};
}

// A thread's position in the groups; positions only increase.
struct GroupCursor {
  const FlatAdam& p;
  const GroupCoefficients* of_group;
  int64_t end = 0;
  int at = -1;
  GroupCoefficients c{};
  __device__ void move(int64_t i) {
    if (i < end) return;
    while (i >= end && at + 1 < p.group_count) {
      ++at;
      end = p.groups[at].offset + p.groups[at].length;
    }
    c = of_group[at];
  }
};

__device__ inline float rounded(float x) {
  return __bfloat162float(__float2bfloat16_rn(x));
}

struct Rule {
  float beta1, one_beta1, beta2, one_beta2, eps, scale, root;
};

template <bool bf16_state>
__device__ __forceinline__ void update(const Rule& r, const GroupCoefficients& c, float g, float& p, float& m,
                                       float& v) {
  if constexpr (bf16_state) {
    const float grad = rounded(rounded(g) * r.scale);
    m = rounded(m + (grad - m) * r.one_beta1);
    v = rounded(rounded(v * r.beta2) + r.one_beta2 * grad * grad);
    const float root = rounded(rounded(rounded(sqrtf(v)) * r.root) + r.eps);
    p = rounded(rounded(p * c.shrink) - c.step * m / root);
  } else {
    const float grad = g * r.scale;
    m += (grad - m) * r.one_beta1;
    v = v * r.beta2 + r.one_beta2 * grad * grad;
    p = p * c.shrink - c.step * m / (sqrtf(v) * r.root + r.eps);
  }
}

template <bool bf16_state>
__global__ void __launch_bounds__(kThreads) update_all(const __grid_constant__ FlatAdam p, Workspace work) {
  const Coefficients common = *work.common;
  if (!common.apply) return;
  const Rule rule{static_cast<float>(p.beta1),
                  static_cast<float>(1 - p.beta1),
                  static_cast<float>(p.beta2),
                  static_cast<float>(1 - p.beta2),
                  static_cast<float>(p.eps),
                  common.scale,
                  common.root};
  GroupCursor group{p, work.of_group};
  bf16* const copy = static_cast<bf16*>(p.copy);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * 4;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 4; i < p.count; i += step) {
    const int n = static_cast<int>(p.count - i < 4 ? p.count - i : 4);
    float x[4], m[4], v[4], g[4];
    if (n == 4) {
      const float4 q = *reinterpret_cast<const float4*>(p.gradients + i);
      const float4 a = *reinterpret_cast<const float4*>(p.parameters + i);
      const float4 b = *reinterpret_cast<const float4*>(p.first_moment + i);
      const float4 c = *reinterpret_cast<const float4*>(p.second_moment + i);
      g[0] = q.x, g[1] = q.y, g[2] = q.z, g[3] = q.w;
      x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
      m[0] = b.x, m[1] = b.y, m[2] = b.z, m[3] = b.w;
      v[0] = c.x, v[1] = c.y, v[2] = c.z, v[3] = c.w;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= n) continue;
      if (n < 4) {
        g[k] = p.gradients[i + k];
        x[k] = p.parameters[i + k], m[k] = p.first_moment[i + k], v[k] = p.second_moment[i + k];
      }
      group.move(i + k);
      update<bf16_state>(rule, group.c, g[k], x[k], m[k], v[k]);
      if (n < 4) p.parameters[i + k] = x[k], p.first_moment[i + k] = m[k], p.second_moment[i + k] = v[k];
      if (n < 4 && copy) copy[i + k] = __float2bfloat16_rn(x[k]);
    }
    if (n == 4) {
      *reinterpret_cast<float4*>(p.parameters + i) = make_float4(x[0], x[1], x[2], x[3]);
      *reinterpret_cast<float4*>(p.first_moment + i) = make_float4(m[0], m[1], m[2], m[3]);
      *reinterpret_cast<float4*>(p.second_moment + i) = make_float4(v[0], v[1], v[2], v[3]);
    }
    if (copy && n == 4) *reinterpret_cast<uint2*>(copy + i) = make_uint2(pack(x[0], x[1]), pack(x[2], x[3]));
  }
}

bool aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

}  // namespace

size_t adam_workspace_bytes(const FlatAdam& p) {
  return 32 + sizeof(double) * kNormBlocks + sizeof(GroupCoefficients) * static_cast<size_t>(p.group_count);
}

cudaError_t adam_update(const FlatAdam& p, AdamReport* report, void* workspace, cudaStream_t stream) {
  if (p.count <= 0 || p.group_count <= 0 || !p.groups || !p.lr || !p.updates || !aligned(p.parameters) ||
      !aligned(p.first_moment) || !aligned(p.second_moment) || !aligned(p.gradients) || !aligned(p.copy))
    return cudaErrorInvalidValue;
  const Workspace work(workspace);
  const cudaError_t cleared = cudaMemsetAsync(work.done, 0, sizeof(unsigned), stream);
  if (cleared != cudaSuccess) return cleared;
  norm_and_coefficients<<<kNormBlocks, kThreads, 0, stream>>>(p, report, work);
  const int64_t blocks = (p.count + 4 * kThreads - 1) / (4 * kThreads);
  const auto run = [&](auto kernel) {
    kernel<<<walking_blocks(kernel, blocks, 1 << 30), kThreads, 0, stream>>>(p, work);
    return cudaGetLastError();
  };
  return p.bf16_state ? run(update_all<true>) : run(update_all<false>);
}

}  // namespace sb::cuda
