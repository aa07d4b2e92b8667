// Multiplies each head's row by a number on CUDA, without torch: y = w x, the values that Mamba2 writes.
// x, y [tokens, heads, width]; w [tokens, heads] fp32. The backward pass can include a skip connection D x, with one
// factor D [heads] per head. With `read` the gradient of D x:
//   dx = w dy + D read;  dw = dy . x;  d_skip = read . x, [tokens, heads]; D's gradient is the sum of d_skip over
//   tokens
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

struct HeadScale {
  int64_t tokens = 0;
  int heads = 1, width = 0;  // width <= 256
  int padded = 0;            // columns width..padded - 1 of an output row are set to zero
  Element element = Element::bf16;
  RowsIn x;
  TokenRows<const float> w;  // head stride 1
};

cudaError_t head_scale_forward(const HeadScale& p, const RowsOut& y, cudaStream_t stream);
struct HeadScaleGradients {
  RowsIn dy;
  RowsIn read;  // null data: no skip; `skip` and `d_skip` are then not used
  const float* skip = nullptr;
  RowsOut dx;
  TokenRows<float> dw, d_skip;  // head stride 1; data may be null
};
cudaError_t head_scale_backward(const HeadScale& p, const HeadScaleGradients& d, cudaStream_t stream);

}  // namespace sb::cuda
