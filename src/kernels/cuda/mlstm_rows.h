// mLSTM's read-out on CUDA, forward and backward, without torch. A row of a token and head holds o [V], n and unused
// columns; with u = o / max(|n|, e^-m):
//   y = gain (u - mean) / sqrt(variance + eps) sigma(gate),  means per row
// The norm of u hardly depends on the divisor: the gradient of its logarithm is -eps / (variance + eps) (dy . y).
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

inline constexpr int kMaxReadWidth = 256;

struct MlstmRead {
  int64_t tokens = 0;
  int heads = 1, width = 0, read_width = 0;  // V <= kMaxReadWidth; V + 1 or more columns
  Element element = Element::bf16;
  float eps = 0;
  RowsIn read, gate;            // gate: null data: none
  const float* m = nullptr;     // [tokens, heads]
  const float* gain = nullptr;  // [heads, V]
};
struct MlstmReadGradients {
  RowsIn dy;
  RowsOut d_read, d_gate;   // all columns of d_read are written
  float* d_gain = nullptr;  // [heads, V]
};
cudaError_t mlstm_read_forward(const MlstmRead& p, const RowsOut& y, cudaStream_t stream);
size_t mlstm_read_scratch_bytes(const MlstmRead& p);
// Deterministic.
cudaError_t mlstm_read_backward(const MlstmRead& p, const MlstmReadGradients& d, void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
