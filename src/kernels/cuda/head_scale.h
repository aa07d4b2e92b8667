// Rows of heads times one number each on CUDA, without torch: y = w x, the values that Mamba2 writes.
// x, y [tokens, heads, width]; w [tokens, heads] fp32. Where x is also read through a skip, D [heads] a factor each,
// with `read` the gradient of D x, backward is
//   dx = w dy + D read;  dw = dy . x;  d_skip = read . x, [tokens, heads], of which D's gradient is the sum over tokens
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

struct HeadScale {
  int64_t tokens = 0;
  int heads = 1, width = 0;  // width <= 256
  int padded = 0;            // columns of an output row from width to here are written as zeros
  Element element = Element::bf16;
  RowsIn x;
  TokenRows<const float> w;  // its head stride is 1
};

cudaError_t head_scale_forward(const HeadScale& p, const RowsOut& y, cudaStream_t stream);
struct HeadScaleGradients {
  RowsIn dy;
  RowsIn read;  // data null: no skip, and `skip` and `d_skip` are not used
  const float* skip = nullptr;
  RowsOut dx;
  TokenRows<float> dw, d_skip;  // their head stride is 1; data null: not wanted
};
cudaError_t head_scale_backward(const HeadScale& p, const HeadScaleGradients& d, cudaStream_t stream);

}  // namespace sb::cuda
