#include "kernels/cuda/selective_scan_tiles.cuh"

namespace sb::cuda {
namespace scan {
namespace {

bool valid(const SelectiveScan& p) {
  return p.batch >= 1 && p.batch < 65536 && p.time >= 1 && p.time < (1 << 24) && p.channels >= 1 &&
         p.channels < (1 << 20) && p.states >= 1 && p.states <= 256 && p.a_min >= 0 && p.a_min < 1;
}

// The number of states that the kernels work with: more than p.states if a wider shape needs less shared memory, which
// the current device does not have. 0: no shape fits.
int padded_states(const SelectiveScan& p) {
  const Target nowhere = Target::nowhere();
  for (const int padded : kPaddedStates) {
    if (p.states <= padded && forward({p}, padded, nowhere) == cudaSuccess &&
        backward({p}, padded, nowhere) == cudaSuccess)
      return padded;
  }
  return 0;
}

Sizes sizes(const SelectiveScan& p, int padded) {
  return with_shape(p, padded, [&](auto shape) { return sizes_of(p, shape); });
}

size_t rounded(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

struct Workspace {
  size_t dB, dC, d_A_log, d_skip, kept, bytes;
  Workspace(const SelectiveScan& p, const Sizes& z, bool has_kept) {
    const size_t rows = rounded(static_cast<size_t>(z.groups) * static_cast<size_t>(p.batch * p.time * p.states) * 4);
    dB = 0;
    dC = dB + rows;
    d_A_log = dC + rows;
    d_skip = d_A_log + rounded(static_cast<size_t>(p.batch * p.channels * p.states) * 4);
    kept = d_skip + rounded(static_cast<size_t>(p.batch * p.channels) * 4);
    bytes = kept + (has_kept ? 0 : selective_scan_kept_bytes(p));
  }
};

// to[row, n] = sum over the parts in their order; rows of `width`, batch and time strides
template <class E>
__global__ void __launch_bounds__(kThreads)
    sum_parts(const float* parts, int count, int64_t rows, int width, int time, ScanRows<void> to) {
  const int64_t size = rows * width;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < size;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < count; ++part) sum += parts[part * size + i];
    const int64_t row = i / width, column = i % width;
    static_cast<E*>(to.data)[row / time * to.batch + row % time * to.time + column] = from_float<E>(sum);
  }
}

}  // namespace
}  // namespace scan

bool selective_scan_fits(const SelectiveScan& p) {
  return scan::padded_states(p) > 0;
}

size_t selective_scan_kept_bytes(const SelectiveScan& p) {
  return scan::with_shape(p, scan::padded_states(p), [&](auto shape) {
    using S = decltype(shape);
    const scan::Sizes z = scan::sizes_of(p, shape);
    return static_cast<size_t>(z.batch) * static_cast<size_t>(z.groups) * static_cast<size_t>(z.chunks) * S::parts *
           scan::kThreads * sizeof(uint4);
  });
}

size_t selective_scan_workspace_bytes(const SelectiveScan& p, bool has_kept) {
  return scan::Workspace(p, scan::sizes(p, scan::padded_states(p)), has_kept).bytes;
}

cudaError_t selective_scan_forward(const SelectiveScan& p, const ScanRows<void>& out, float* final_state, void* kept,
                                   cudaStream_t stream) {
  if (!scan::valid(p)) return cudaErrorInvalidValue;
  const int padded = scan::padded_states(p);
  if (padded == 0) return cudaErrorInvalidConfiguration;
  return scan::forward({p, scan::sizes(p, padded), out, final_state, kept}, padded, stream);
}

cudaError_t selective_scan_backward(const SelectiveScan& p, const void* kept, const SelectiveScanGradients& d,
                                    void* workspace, cudaStream_t stream) {
  if (!scan::valid(p)) return cudaErrorInvalidValue;
  const int padded = scan::padded_states(p);
  if (padded == 0) return cudaErrorInvalidConfiguration;
  const scan::Sizes z = scan::sizes(p, padded);
  const scan::Workspace w(p, z, kept != nullptr);
  unsigned char* memory = static_cast<unsigned char*>(workspace);
  const auto floats = [&](size_t at) { return reinterpret_cast<float*>(memory + at); };
  cudaError_t status = cudaSuccess;
  if (!kept) {
    status = scan::forward({p, z, {}, nullptr, memory + w.kept}, padded, stream);
    kept = memory + w.kept;
  }
  if (status != cudaSuccess) return status;
  status =
      scan::backward({p, z, d, kept, floats(w.dB), floats(w.dC), floats(w.d_A_log), floats(w.d_skip)}, padded, stream);
  if (status != cudaSuccess) return status;
  const unsigned blocks = static_cast<unsigned>(multiprocessors()) * 8;
  const int64_t rows = p.batch * p.time;
  const auto sum_rows = p.bf16 ? scan::sum_parts<__nv_bfloat16> : scan::sum_parts<float>;
  sum_rows<<<blocks, scan::kThreads, 0, stream>>>(floats(w.dB), z.groups, rows, z.states, z.time, d.dB);
  sum_rows<<<blocks, scan::kThreads, 0, stream>>>(floats(w.dC), z.groups, rows, z.states, z.time, d.dC);
  scan::sum_parts<float><<<blocks, scan::kThreads, 0, stream>>>(floats(w.d_A_log), z.batch, z.channels, z.states,
                                                                z.channels, {d.d_A_log, 0, z.states});
  scan::sum_parts<float>
      <<<blocks, scan::kThreads, 0, stream>>>(floats(w.d_skip), z.batch, 1, z.channels, 1, {d.d_skip, 0, z.channels});
  return cudaGetLastError();
}

}  // namespace sb::cuda
