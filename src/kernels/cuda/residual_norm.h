// y = LayerNorm(dropout(z) + residual) on CUDA, and dropout alone, without torch.
// Rows are (sample, frame): row r is frame r % time of sequence r / time. eps 1e-5.
//
// Dropout masks as defined in kernels/dropout_stream.h: Philox4x32-10 with key = the seed's low and high word and
// counter = {frame << 12 | channel / 8, low word of the sample index, low word of the update, place << 8 | 5}. Element
// (sample, frame, channel) is kept iff half word channel % 8 of this block (low half of a word first) is >= dropped =
// round(p 2^16). Kept elements are scaled by 2^16 / (2^16 - dropped). Sample indices and update are read on the device,
// so that a captured graph can be replayed with new values.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

struct DropoutPlace {
  double p = 0;  // 0: no dropout; the other members are not read
  uint64_t seed = 0;
  uint32_t place = 0;                // < 2^24
  const int64_t* samples = nullptr;  // [B]
  const int64_t* update = nullptr;   // [1]
  bool tied_over_time = false;       // every frame uses the mask of frame 0
};

struct ResidualNorm {
  int64_t rows = 0;  // B * time
  int time = 1;
  int width = 0;                    // <= kMaxResidualWidth
  Element element = Element::bf16;  // of z and dz
  Element stream = Element::bf16;   // of residual, y and their gradients; must be fp32 if `element` is fp32
  const float *gain = nullptr, *bias = nullptr;
  DropoutPlace dropout;
  RowsIn z, residual;
};
inline constexpr int kMaxResidualWidth = 4096;

// `stats` [rows][2]: for backward, or null.
cudaError_t residual_norm_forward(const ResidualNorm& p, const RowsOut& y, float* stats, cudaStream_t stream);

struct ResidualNormGradients {
  RowsIn gy;  // of type `stream`
  RowsOut d_residual;
  RowsOut dz;  // data may be null; without dropout dz equals d_residual
  float *d_gain = nullptr, *d_bias = nullptr;
};
size_t residual_norm_scratch_bytes(const ResidualNorm& p);
// Deterministic.
cudaError_t residual_norm_backward(const ResidualNorm& p, const float* stats, const ResidualNormGradients& d,
                                   void* scratch, cudaStream_t stream);

// y = dropout(x). The backward pass is the same function of dy instead of x.
struct Dropout {
  int64_t rows = 0;
  int time = 1, width = 0;
  Element element = Element::bf16;
  DropoutPlace dropout;
  RowsIn x;
};
cudaError_t dropout_forward(const Dropout& p, const RowsOut& y, cudaStream_t stream);

}  // namespace sb::cuda
