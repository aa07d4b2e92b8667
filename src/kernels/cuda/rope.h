// Rotary embedding by halves on CUDA, without torch:
//   y1 = x1 cos + sense x2 sin,  y2 = x2 cos - sense x1 sin     of x = [x1, x2], [B*T, heads, width], width even
// The angle of pair j at position p is p / base^{j / half}. The rate 1 / base^{j / half} is rounded to float, as in
// other implementations; the angle is computed in double. The backward pass is the same with the opposite sense.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

// Fills table [time][2][half] with the cosines, then sines, for positions offset..offset + time - 1
cudaError_t rope_table(float* table, int time, int half, double base, int64_t offset, cudaStream_t stream);

struct Rope {
  int64_t tokens = 0;  // B * time
  int time = 1, heads = 1, width = 0;
  Element element = Element::bf16;
  int sense = 1;
  const float* table = nullptr;
  RowsIn x;
};
cudaError_t rope(const Rope& p, const RowsOut& y, cudaStream_t stream);

}  // namespace sb::cuda
