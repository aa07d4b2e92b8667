#include "kernels/cuda/log_linear_attention_kernels.cuh"
#include "kernels/least_log_decay.h"

namespace sb::cuda {
namespace log_linear {
namespace {

constexpr int64_t kMaxTime = 4096;
constexpr size_t kMaxWorkspace = size_t{4} << 30;

// Decays and weights of one sequence's head
__global__ void __launch_bounds__(kThreads) factors_kernel(const __grid_constant__ Arguments a) {
  __shared__ double totals[kMaxTime / kTile];
  const Place at;
  const Sizes& z = a.z;
  const int64_t head = blockIdx.x, b = head / z.H, h = head % z.H;
  const auto row = [&](int t) { return (b * z.T + t) * z.H + h; };
  for (int tile = at.warp; tile < z.tiles; tile += kWarps) {
    double x[2], all;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = tile * kTile + 2 * at.lane + i;
      x[i] = t < z.T ? kLog2E * at_least(a.p.g[row(t)], kLeastLogDecayFloat) : 0.;
    }
    double sum = sum_before(x[0] + x[1], at.lane, &all);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum += x[i];
      const int64_t to = head * z.padded + tile * kTile + 2 * at.lane + i;
      const auto high = static_cast<float>(sum);
      a.w.sums[to] = make_float2(high, static_cast<float>(sum - high));
      a.w.since[to] = exp2f(high);
      a.w.until[to] = exp2f(at_most(static_cast<float>(all - sum), 0));
    }
    if (at.lane == 0) totals[tile] = all;
  }
  for (int i = at.thread; i < z.levels * z.padded; i += kThreads) {
    const int level = i / z.padded, t = i % z.padded;
    a.w.weights[head * z.levels * z.padded + i] = t < z.T ? a.p.weights[row(t) * z.L + level] : 0.f;
  }
  __syncthreads();
  if (at.thread > 0) return;
  double sum = 0, *const starts = a.w.starts + head * (z.tiles + 1);
  for (int tile = 0; tile < z.tiles; ++tile) {
    starts[tile] = sum;
    sum += totals[tile];
  }
  starts[z.tiles] = sum;
}

template <Product P>
__global__ void __launch_bounds__(kThreads) scores_kernel(const __grid_constant__ Arguments a) {
  using E = Operand<P>;
  constexpr int slice = 64, ld = leading<E>(slice);
  __shared__ __align__(16) E q[kTile * ld], k[kTile * ld];
  const Place at;
  const Sizes& z = a.z;
  const int pair = static_cast<int>(blockIdx.x) % z.pairs, group = static_cast<int>(blockIdx.x) / z.pairs;
  int I = 0;
  while (pair_of(I + 1, 0) <= pair) ++I;
  const int J = pair - pair_of(I, 0);
  const HeadRows<const E> queries(a.p.q, group / z.G, I * kTile, group % z.G, z.K);
  const HeadRows<const E> keys(a.p.k, group / z.G, J * kTile, group % z.G, z.K);
  float sums[1][kTile / 8][4];
  clear(sums);
  for (int first = 0; first < z.K; first += slice) {
    copy_rows<slice>(q, queries, first, min(kTile, z.T - I * kTile), z.K, at);
    copy_rows<slice>(k, keys, first, min(kTile, z.T - J * kTile), z.K, at);
    finish_copies();
    __syncthreads();
    multiply<P, Depth::fast, Depth::fast, slice>(sums, q + at.strip * 16 * ld, ld, k, ld, at.lane);
    __syncthreads();
  }
  float* const to = a.w.scores + static_cast<int64_t>(blockIdx.x) * kPairs + at.strip * 16 * kTile;
  for_pairs(sums, at, [&](int r, int c, float x, float y) { store_pair(to + r * kTile + c, x, y); });
}

// Gradients of the weights and log-decays of one sequence's head, from the sums of rows and columns
__global__ void __launch_bounds__(kThreads)
    gates_kernel(const __grid_constant__ Arguments a, const __grid_constant__ LogLinearGradients d) {
  extern __shared__ float of_sums[];  // [padded]: gradient of every frame's sum of log-decays
  const Place at;
  const Sizes& z = a.z;
  const int64_t head = blockIdx.x, b = head / z.H, h = head % z.H;
  const float* const of_rows = a.w.of_rows + head * z.pairs * kTile;
  const float* const of_columns = a.w.of_columns + head * z.pairs * kTile;
  const float* const of_levels = a.w.of_levels + head * z.tiles * kInnerLevels * kTile;
  const float* const weights = a.w.weights + head * z.levels * z.padded;
  for (int t = at.thread; t < z.padded; t += kThreads) {
    const int I = t / kTile, row = t % kTile;
    float sum = 0;
    for (int level = 0; level < z.L; ++level) {
      float gradient = level < kInnerLevels ? of_levels[(I * kInnerLevels + level) * kTile + row] : 0.f;
      // Blocks of 2^bit tiles; the last level has all larger ones too
      for (int bit = level - kInnerLevels; bit >= 0 && (I >> bit) > 0; ++bit) {
        const int first = ((I >> bit) ^ 1) << bit;
        for (int J = first; (I >> bit & 1) != 0 && J < first + (1 << bit); ++J)
          gradient += of_rows[pair_of(I, J) * kTile + row];
        if (level < z.L - 1) break;
      }
      if (t < z.T) d.d_weights[((b * z.T + t) * z.H + h) * z.L + level] = gradient;
      if (level > 0 && level < z.levels) sum = fmaf(weights[level * z.padded + t], gradient, sum);
    }
    for (int i = I; i < z.tiles; ++i) sum -= of_columns[pair_of(i, I) * kTile + row];
    of_sums[t] = sum;
  }
  __syncthreads();
  if (at.warp > 0) return;
  double behind = 0;  // the suffix sum, from the last frame on
  for (int last = z.padded - 1; last >= 0; last -= 32) {
    const int t = last - at.lane;
    double all;
    const double x = of_sums[t], sum = behind + sum_before(x, at.lane, &all) + x;
    behind += all;
    if (t >= z.T) continue;
    const int64_t to = (b * z.T + t) * z.H + h;
    d.dg[to] = a.p.g[to] < kLeastLogDecayFloat ? 0.f : static_cast<float>(sum);
  }
}

unsigned count(int x, int y, int z = 1) {
  return static_cast<unsigned>(x) * static_cast<unsigned>(y) * static_cast<unsigned>(z);
}

cudaError_t prepare(const Arguments& a, Target to) {
  const cudaError_t status = launch(factors_kernel, count(a.z.B, a.z.H), kThreads, 0, to, a);
  if (status != cudaSuccess) return status;
  const auto run = [&](auto kernel) { return launch(kernel, count(a.z.B, a.z.G, a.z.pairs), kThreads, 0, to, a); };
  return a.p.precision == Precision::bf16   ? run(scores_kernel<Product::bf16>)
         : a.p.precision == Precision::tf32 ? run(scores_kernel<Product::tf32>)
                                            : run(scores_kernel<Product::fp32>);
}

cudaError_t forward(const Arguments& a, const Rows& out, Target to) {
  const cudaError_t status = prepare(a, to);
  return status == cudaSuccess ? read_values(a, out, to) : status;
}

cudaError_t backward(const Arguments& a, const LogLinearGradients& d, Target to) {
  cudaError_t status = prepare(a, to);
  if (status == cudaSuccess) status = value_gradients(a, d, to);
  if (status == cudaSuccess) status = pair_gradients(a, d, to);
  if (status == cudaSuccess) status = query_and_key_gradients(a, d, to);
  if (status != cudaSuccess) return status;
  return launch(gates_kernel, count(a.z.B, a.z.H), kThreads, static_cast<size_t>(a.z.padded) * sizeof(float), to, a, d);
}

bool valid(const LogLinearAttention& p) {
  return within(p.batch, 1 << 20) && within(p.time, kMaxTime) && within(p.heads, 1 << 16) &&
         within(p.groups, p.heads) && p.heads % p.groups == 0 && within(p.key_width, 256) &&
         within(p.value_width, 256) && p.levels > kInnerLevels && p.levels <= 64 &&
         log_linear_attention_workspace_bytes(p, true) <= kMaxWorkspace;
}

Arguments arguments(const LogLinearAttention& p, void* workspace, bool backward) {
  const Sizes z(p);
  return {p, z, Workspace(workspace, z, backward)};
}

}  // namespace
}  // namespace log_linear

using namespace log_linear;

bool log_linear_attention_fits(const LogLinearAttention& p) {
  const Arguments a = arguments(p, nullptr, true);
  const Target nowhere = Target::nowhere();
  return valid(p) && forward(a, {}, nowhere) == cudaSuccess && backward(a, {}, nowhere) == cudaSuccess;
}

size_t log_linear_attention_workspace_bytes(const LogLinearAttention& p, bool backward) {
  return arguments(p, nullptr, backward).w.bytes;
}

cudaError_t log_linear_attention_forward(const LogLinearAttention& p, const Rows& out, void* workspace,
                                         cudaStream_t stream) {
  return valid(p) ? forward(arguments(p, workspace, false), out, stream) : cudaErrorInvalidValue;
}

cudaError_t log_linear_attention_backward(const LogLinearAttention& p, const LogLinearGradients& d, void* workspace,
                                          cudaStream_t stream) {
  return valid(p) ? backward(arguments(p, workspace, true), d, stream) : cudaErrorInvalidValue;
}

}  // namespace sb::cuda
