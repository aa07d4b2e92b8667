// Copies of rows of heads [B,T,H,width] in bf16 on CUDA, without torch, for up to three tensors at once. Columns
// width..padded-1 of the destination become zero.
#pragma once
#include <cuda_runtime_api.h>

#include "kernels/cuda/row_strides.h"

namespace sb::cuda {

inline constexpr int kMaxHeadCopies = 3;

struct HeadCopies {
  int64_t batch = 0, time = 0, heads = 0, width = 0, padded = 0;
  int count = 0;
  ConstRows from[kMaxHeadCopies] = {};
  Rows to[kMaxHeadCopies] = {};
};
cudaError_t copy_heads(const HeadCopies& p, cudaStream_t stream);

}  // namespace sb::cuda
