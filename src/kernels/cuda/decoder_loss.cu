#include "kernels/cuda/decoder_loss.h"

#include <cublas_v2.h>

#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/sizes.h"

namespace sb::cuda {
namespace {

// For the rows of a group: replaces logits by their gradients, and writes one loss per row.
struct LogitRows {
  int64_t rows;
  int classes, ld;
  const float *logits, *bias;
  const int64_t* target;
  const double* normaliser;
  void* gradients;  // null: losses only
  float *losses, *parts;
};

template <int Lanes>
__device__ __forceinline__ float largest_of_row(float v) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
  if constexpr (Lanes > 32) {
    __shared__ float shared[kThreads / 32];  // read again only after the barrier of the sums
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    const int first = threadIdx.x / Lanes * (Lanes / 32);
#pragma unroll
    for (int w = 0; w < Lanes / 32; ++w) v = fmaxf(v, shared[first + w]);
  }
  return v;
}

template <class E, int Lanes, int Packs>
__global__ void __launch_bounds__(kThreads) cross_entropy(const __grid_constant__ LogitRows q) {
  const RowGroups<Lanes> groups(Lanes);
  const Columns<Access::vectors, Lanes> at{groups.lane, q.classes, q.ld};
  const int64_t step = static_cast<int64_t>(gridDim.x) * groups.groups;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * groups.groups, rounds = (q.rows - first + step - 1) / step;
  int64_t r = first + groups.group;
  const float share = static_cast<float>(1 / *q.normaliser);
  float bias[Packs][kPack], d_bias[Packs][kPack] = {};
  Raw<float> next[Packs];
#pragma unroll
  for (int i = 0; i < Packs; ++i) at.parameters(bias[i], q.bias, i, 0.f);
  const auto read = [&](int64_t row) {
    if (row >= q.rows) row = q.rows - 1;
#pragma unroll
    for (int i = 0; i < Packs; ++i) at.load(next[i], q.logits + row * q.ld, i);
  };
  read(r);
  for (int round = 0; round < rounds; ++round, r += step) {
    const int64_t target = q.target[r < q.rows ? r : q.rows - 1];
    float x[Packs][kPack], most = -INFINITY, sums[2] = {0, 0};  // of exponentials; the target's logit
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        x[i][j] = at.inside(i, j) ? next[i][j] + bias[i][j] : -INFINITY;
        most = fmaxf(most, x[i][j]);
      }
    }
    if (round + 1 < rounds) read(r + step);
    most = largest_of_row<Lanes>(most);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (at.column(i, j) == target) sums[1] = x[i][j] - most;
        x[i][j] = __expf(x[i][j] - most);
        sums[0] += x[i][j];
      }
    }
    sum_over_row<Lanes>(sums, round & 1);
    if (r >= q.rows) continue;
    const bool real = target >= 0;
    if (at.lane == 0) q.losses[r] = real ? logf(sums[0]) - sums[1] : 0.f;
    if (!q.gradients) continue;
    const float scale = real ? share / sums[0] : 0.f;
    E* const to = static_cast<E*>(q.gradients) + r * q.ld;
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        x[i][j] = real ? x[i][j] * scale - (at.column(i, j) == target ? share : 0.f) : 0.f;
        d_bias[i][j] += x[i][j];
      }
      at.store(to, i, x[i]);
    }
  }
  if (q.gradients && q.parts) store_part(d_bias, at, groups, q.parts + static_cast<int64_t>(blockIdx.x) * q.classes);
}

// One block: *out = sum of x in a fixed order, over *normaliser (null: 1)
template <class X, class F>
__device__ void total_of(const X* x, int64_t n, F value, double* out, const double* normaliser) {
  __shared__ double shared[1024];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += 1024) sum += value(x[i]);
  shared[threadIdx.x] = sum;
  for (int half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *out = shared[0] / (normaliser ? *normaliser : 1.0);
}
__global__ void __launch_bounds__(1024) add_losses(const float* x, int64_t n, const double* normaliser, double* out) {
  total_of(
      x, n, [](float v) { return static_cast<double>(v); }, out, normaliser);
}
__global__ void __launch_bounds__(1024) add_targets(const int64_t* x, int64_t n, double* out) {
  total_of(
      x, n, [](int64_t v) { return v >= 0 ? 1.0 : 0.0; }, out, nullptr);
}

constexpr int kGroupParts = 396;  // blocks over a group's rows, at most

struct Plan {
  int64_t group, groups;
  int ld;
  size_t logits, gradients, losses, parts, total;  // offsets in the scratch
  explicit Plan(const DecoderLoss& p) {
    ld = (std::max(p.classes, p.padded_classes) + 7) / 8 * 8;
    group =
        p.group > 0 ? p.group : std::max<int64_t>(128, std::min<int64_t>(6400, (int64_t{1} << 24) / ld / 128 * 128));
    group = std::min(group, std::max<int64_t>(p.rows, 1));
    groups = (p.rows + group - 1) / group;
    const auto take = [this](size_t bytes) {
      const size_t at = total;
      total += rounded(bytes);
      return at;
    };
    total = 0;
    logits = take(sizeof(float) * group * ld);
    gradients = p.element == Element::bf16 ? take(sizeof(bf16) * group * ld) : logits;
    losses = take(sizeof(float) * p.rows);
    parts = take(sizeof(float) * groups * kGroupParts * p.classes);
  }
};

template <class E>
cudaError_t launch_rows(const LogitRows& q, int& blocks, cudaStream_t stream) {
  const auto run = [&](auto kernel, int rows_of_block) {
    blocks = walking_blocks(kernel, (q.rows + rows_of_block - 1) / rows_of_block, kGroupParts);
    kernel<<<blocks, kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  };
  if (q.classes <= 32 * kPack) return run(cross_entropy<E, 32, 1>, kThreads / 32);
  if (q.classes <= 256 * kPack) return run(cross_entropy<E, 128, 2>, kThreads / 128);
  return run(cross_entropy<E, 256, 4>, 1);
}

cudaError_t status_of(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

}  // namespace

cudaError_t count_targets(const int64_t* target, int64_t rows, double* count, cudaStream_t stream) {
  add_targets<<<1, 1024, 0, stream>>>(target, rows, count);
  return cudaGetLastError();
}

size_t decoder_loss_scratch_bytes(const DecoderLoss& p) {
  return Plan(p).total;
}

cudaError_t decoder_loss(const DecoderLoss& p, double* loss, const DecoderLossGradients& d, void* scratch,
                         cublasContext* handle, cudaStream_t stream) {
  if (p.rows <= 0 || p.width <= 0 || p.classes <= 0 || p.classes > kMaxClasses || !p.normaliser || !p.target || !handle)
    return cudaErrorInvalidValue;
  const Plan plan(p);
  char* const memory = static_cast<char*>(scratch);
  const bool low = p.element == Element::bf16;
  const size_t size = low ? 2 : 4;
  const cudaDataType type = low ? CUDA_R_16BF : CUDA_R_32F;
  const cublasComputeType_t compute = p.tf32 && !low ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const float one = 1, zero = 0;
  const int width = p.width, ld = plan.ld;
  const int classes = p.classes, present = std::max(p.classes, p.padded_classes);  // columns of the products
  float* const logits = reinterpret_cast<float*>(memory + plan.logits);
  void* const gradients = memory + plan.gradients;
  float *const losses = reinterpret_cast<float*>(memory + plan.losses), *const parts = reinterpret_cast<float*>(
                                                                            memory + plan.parts);
  // Setting a stream would reset the handle's workspace, which its owner may have set.
  cudaStream_t now = nullptr;
  cudaError_t status = status_of(cublasGetStream(handle, &now));
  if (status == cudaSuccess && now != stream) status = status_of(cublasSetStream(handle, stream));
  int parts_done = 0;
  for (int64_t first = 0; first < p.rows && status == cudaSuccess; first += plan.group) {
    const int rows = static_cast<int>(std::min(plan.group, p.rows - first));
    const void* const h = static_cast<const char*>(p.h) + first * width * size;
    // row-major products as column-major ones of the transposes
    status = status_of(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, present, rows, width, &one, p.weight, type, width,
                                    h, type, width, &zero, logits, CUDA_R_32F, ld, compute, CUBLAS_GEMM_DEFAULT));
    if (status != cudaSuccess) break;
    const LogitRows q{rows,
                      classes,
                      ld,
                      logits,
                      p.bias,
                      p.target + first,
                      p.normaliser,
                      d.dh ? gradients : nullptr,
                      losses + first,
                      d.d_bias ? parts + static_cast<int64_t>(parts_done) * classes : nullptr};
    int blocks = 0;
    status = low ? launch_rows<bf16>(q, blocks, stream) : launch_rows<float>(q, blocks, stream);
    parts_done += blocks;
    if (status != cudaSuccess || !d.dh) continue;
    status = status_of(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, width, rows, present, &one, p.weight, type, width,
                                    gradients, type, ld, &zero, static_cast<char*>(d.dh) + first * width * size, type,
                                    width, compute, CUBLAS_GEMM_DEFAULT));
    if (status != cudaSuccess || !d.d_weight) continue;
    status = status_of(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, width, present, rows, &one, h, type, width,
                                    gradients, type, ld, first == 0 ? &zero : &one, d.d_weight, CUDA_R_32F, width,
                                    compute, CUBLAS_GEMM_DEFAULT));
  }
  if (status == cudaSuccess && d.dh && d.d_bias)
    status = sum_parts(parts, parts_done, classes, d.d_bias, classes, nullptr, stream);
  if (status != cudaSuccess) return status;
  add_losses<<<1, 1024, 0, stream>>>(losses, p.rows, p.normaliser, loss);
  return cudaGetLastError();
}

}  // namespace sb::cuda
