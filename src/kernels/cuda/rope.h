// Rotary embedding by halves on CUDA, without torch:
//   y1 = x1 cos + sense x2 sin,  y2 = x2 cos - sense x1 sin     of x = [x1, x2], [B*T, heads, width], width even
// The angle of pair j at position p is p / base^{j / half} (the rate rounded to float as peers' tables are, the angle
// in double). The backward pass is the same with the other sense.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

// table [time][2][half]: cosines then sines of positions offset .. offset + time - 1
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
