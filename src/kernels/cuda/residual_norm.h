// y = LayerNorm(dropout(z) + residual) on CUDA, and dropout alone; without torch.
// Rows are (sample, frame): row r is frame r % time of sequence r / time. eps 1e-5.
//
// Dropout: Philox4x32-10, key = the seed's low and high word, counter = {frame << 12 | channel / 8, low word of the
// sample's number, low word of the update, place << 8 | 5}; element (sample, frame, channel) is kept iff half word
// channel % 8 of that block (low half of a word first) >= round(p 2^16), and is then scaled by 2^16 / (2^16 - dropped).
// Numbers of samples and update are read on the device, so that a captured graph replays with new ones.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

struct DropoutPlace {
  double p = 0;  // 0: keeps everything, and nothing else is read
  uint64_t seed = 0;
  uint32_t place = 0;                // < 2^24
  const int64_t* samples = nullptr;  // [B]
  const int64_t* update = nullptr;   // [1]
  bool tied_over_time = false;       // every frame takes frame 0's mask
};

struct ResidualNorm {
  int64_t rows = 0;  // B * time
  int time = 1;
  int width = 0;                    // <= kMostResidualWidth
  Element element = Element::bf16;  // of z and dz
  Element stream = Element::bf16;   // of residual, y and their gradients: bf16 or fp32 with z in bf16, or both fp32
  const float *gain = nullptr, *bias = nullptr;
  DropoutPlace dropout;
  RowsIn z, residual;
};
inline constexpr int kMostResidualWidth = 4096;

// `low`: y once more in bf16, for the next products; data null: not wanted. `stats` [rows][2] is left for backward,
// null: not wanted.
cudaError_t residual_norm_forward(const ResidualNorm& p, const RowsOut& y, const RowsOut& low, float* stats,
                                  cudaStream_t stream);

struct ResidualNormGradients {
  RowsIn gy;      // of the stream's type; data null: zeros
  RowsIn gy_low;  // of z's type, added to it; data null: zeros
  RowsOut d_residual;
  RowsOut dz;  // data null: not written; without dropout it is d_residual
  float *d_gain = nullptr, *d_bias = nullptr;
};
size_t residual_norm_scratch_bytes(const ResidualNorm& p);
// The same bytes on every run.
cudaError_t residual_norm_backward(const ResidualNorm& p, const float* stats, const ResidualNormGradients& d,
                                   void* scratch, cudaStream_t stream);

// y = dropout(x) + add (data null: nothing added); with dy in place of x its own backward pass.
struct Dropout {
  int64_t rows = 0;
  int time = 1, width = 0;
  Element element = Element::bf16;
  DropoutPlace dropout;
  RowsIn x, add;
};
cudaError_t dropout_forward(const Dropout& p, const RowsOut& y, cudaStream_t stream);

}  // namespace sb::cuda
