// Multiplies each head's row by a number on CUDA, without torch: y = w x, the values that Mamba2 writes.
// x, y [tokens, heads, width]; w [tokens, heads] fp32. dx = w dy;  dw = dy . x
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

struct HeadScale {
  int64_t tokens = 0;
  int heads = 1, width = 0;  // width <= 256
  Element element = Element::bf16;
  RowsIn x;
  TokenRows<const float> w;  // head stride 1
};

cudaError_t head_scale_forward(const HeadScale& p, const RowsOut& y, cudaStream_t stream);
struct HeadScaleGradients {
  RowsIn dy;
  RowsOut dx;
  TokenRows<float> dw;  // head stride 1
  RowsIn more = {};  // if given, a gradient of x that does not come through y: dx = more + w dy
};
cudaError_t head_scale_backward(const HeadScale& p, const HeadScaleGradients& d, cudaStream_t stream);

}  // namespace sb::cuda
