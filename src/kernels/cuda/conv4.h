// Causal depthwise convolution of width 4 on CUDA, forward and backward, without torch:
//   z_t[c] = bias[c] + sum_{i=0..3} weight[c,i] x_{t-3+i}[c];  y = silu(z), or z
// x, y [B,T,C]: strides in elements, channels contiguous (a slice of a wider tensor is fine); weight [C,4], bias [C].
// `tail` [B,3,C], contiguous, holds the three inputs before t = 0. The backward pass recomputes z from x.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

template <class Void>
struct Frames {
  Void* data = nullptr;
  int64_t batch = 0, time = 0;
};

struct Conv4 {
  int batch = 0, time = 0, channels = 0;
  Element element = Element::bf16;
  bool silu = true;
  Frames<const void> x;
  const float *weight = nullptr, *bias = nullptr;  // bias null: none
  const void* tail = nullptr;                      // of x's type; null: zeros
};

cudaError_t conv4_forward(const Conv4& p, const Frames<void>& y, cudaStream_t stream);

size_t conv4_scratch_bytes(const Conv4& p);
// d_bias and d_tail may be null. Deterministic.
cudaError_t conv4_backward(const Conv4& p, const Frames<const void>& gy, const Frames<void>& dx, float* d_weight,
                           float* d_bias, void* d_tail, void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
