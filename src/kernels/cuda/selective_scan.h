// Selective scan on a GPU, forward and backward, without torch:
//   h_t[c,n] = exp(-delta_t[c] e^{A_log[c,n]}) h_{t-1}[c,n] + w_t[c] B_t[n] x_t[c]
//   y_t[c] = sum_n C_t[n] h_t[c,n] + skip[c] x_t[c]
// x, delta, y [B,T,D]; A_log [D,N]; B, C [B,T,N]; skip [D]; state [B,D,N], N up to 256. w = delta, or `write` [B,T,D].
// The factor of h_{t-1} is at least a_min. States, delta, write, A_log, skip and their gradients are fp32.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

// [B,T,width], strides in elements; the width has stride 1.
template <class E>
struct ScanRows {
  E* data;
  int64_t batch, time;
};

struct SelectiveScan {
  int64_t batch, time, channels, states;
  bool bf16;  // type of x, B, C, y and their gradients: bf16, else fp32
  ScanRows<const void> x, B, C;
  ScanRows<const float> delta, write;  // write.data null: w = delta
  const float *A_log, *skip;
  const float* initial_state;  // null: zeros
  float a_min;
};

struct SelectiveScanGradients {
  ScanRows<const void> d_out;
  const float* d_final_state;  // null: zeros
  ScanRows<void> dx, dB, dC;
  ScanRows<float> d_delta, d_write;  // without `write`, d_delta includes the gradient of w, and d_write is not used
  float *d_A_log, *d_skip;
  float* d_initial_state;  // may be null
};

// Whether the kernels of both passes fit on the current device.
bool selective_scan_fits(const SelectiveScan& p);

// Few long sequences, which would leave most of the GPU idle, are divided into segments that are scanned in parallel
// (selective_scan_segments.cu). That depends on sizes and device only.

// Bytes of the states that the forward pass can keep for the backward pass, of the forward pass's scratch memory (0 if
// sequences are not divided), and of the backward pass's workspace, which is larger if that pass must recompute the
// states (has_kept = false).
size_t selective_scan_kept_bytes(const SelectiveScan& p);
size_t selective_scan_scratch_bytes(const SelectiveScan& p);
size_t selective_scan_workspace_bytes(const SelectiveScan& p, bool has_kept);

// kept and final_state may be null. Returns cudaErrorInvalidValue if sizes are out of range.
cudaError_t selective_scan_forward(const SelectiveScan& p, const ScanRows<void>& out, float* final_state, void* kept,
                                   void* scratch, cudaStream_t stream);
// If kept is null, the states are recomputed in the workspace. Deterministic.
cudaError_t selective_scan_backward(const SelectiveScan& p, const void* kept, const SelectiveScanGradients& d,
                                    void* workspace, cudaStream_t stream);

}  // namespace sb::cuda
