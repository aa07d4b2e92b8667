// Inputs mixed with the frame before on CUDA, forward and backward, without torch:
//   y_c,t = x_t + mu_c (x_{t-1} - x_t),  c = 0..5
// x [B,T,C]: strides in elements, channels contiguous. y_c [B,T,C], contiguous; mu [6,C]. `last` [B,C], contiguous, is
// the frame before t = 0.
#pragma once
#include "kernels/cuda/conv4.h"

namespace sb::cuda {

inline constexpr int kShifts = 6;

struct TokenShift {
  int batch = 0, time = 0, channels = 0;
  Element element = Element::bf16;
  Frames<const void> x;
  const float* mu = nullptr;
  const void* last = nullptr;  // of x's type; null: zeros
};

cudaError_t token_shift_forward(const TokenShift& p, void* const (&y)[kShifts], cudaStream_t stream);

size_t token_shift_scratch_bytes(const TokenShift& p);
// d_last may be null. Deterministic.
cudaError_t token_shift_backward(const TokenShift& p, const void* const (&dy)[kShifts], const Frames<void>& dx,
                                 float* d_mu, void* d_last, void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
