// Frames from symbol ids on CUDA, without torch: either dense rows (one-hot plus noise), or the product of the encoder
// with one-hot rows, which gathers columns of the weight. symbol [B*T]: a class, -1 for a blank frame, -2 for padding.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

// out [B*T, vocab], contiguous: one-hot for classes, zeros for blanks and padding. All frames but padding add
// noise * unit_float(w), where w is word t vocab + c of the Philox stream (seed, split, sample, noise),
// random/philox.h. In fp32 the bits are those of the CPU.
struct FrameRows {
  int batch = 0, time = 0, vocab = 0;
  Element element = Element::bf16;
  const int16_t* symbol = nullptr;
  float noise = 0;
  uint64_t seed = 0;
  uint32_t split = 0;
  const int64_t* samples = nullptr;  // [B] on the device; read only if noise > 0
};
cudaError_t expand_frames(const FrameRows& p, void* out, cudaStream_t stream);

// h = W x + bias for one-hot rows x (no noise): W [width, vocab], bias [width]; h [rows, width].
struct SymbolEncoder {
  int64_t rows = 0;
  int width = 0, vocab = 0;  // vocab <= kMaxEncoderVocab
  Element element = Element::bf16;
  const int16_t* symbol = nullptr;
  const float *weight = nullptr, *bias = nullptr;
};
inline constexpr int kMaxEncoderVocab = 200;  // for larger vocabularies, expand the frames and multiply

size_t symbol_encoder_scratch_bytes(const SymbolEncoder& p, bool backward);
// `low`: also receives h in bf16; its data may be null.
cudaError_t symbol_encoder_forward(const SymbolEncoder& p, const RowsOut& h, const RowsOut& low, void* scratch,
                                   cudaStream_t stream);
// d_weight [width, vocab], d_bias [width]. dh has type `element`; dh_low (bf16, its data may be null) is added to it.
// Deterministic.
cudaError_t symbol_encoder_backward(const SymbolEncoder& p, const RowsIn& dh, const RowsIn& dh_low, float* d_weight,
                                    float* d_bias, void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
