// Frames from symbol ids on CUDA, without torch: dense rows (one-hot plus noise), or the encoder's product with rows
// that are one-hot, which is a gather of its columns. symbol [B*T]: a class, -1 for a blank frame, -2 for padding.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

// out [B*T, vocab] without gaps: one-hot, zero on blanks and padding; real frames add noise * unit_float(w), w word
// t vocab + c of the Philox stream (seed, split, sample, noise) of random/philox.h; in fp32 the CPU's bits.
struct FrameRows {
  int batch = 0, time = 0, vocab = 0;
  Element element = Element::bf16;
  const int16_t* symbol = nullptr;
  float noise = 0;
  uint64_t seed = 0;
  uint32_t split = 0;
  const int64_t* samples = nullptr;  // [B] on the device; read where noise > 0
};
cudaError_t expand_frames(const FrameRows& p, void* out, cudaStream_t stream);

// h = W x + bias for one-hot rows x (no noise): W [width, vocab], bias [width]; h [rows, width].
struct SymbolEncoder {
  int64_t rows = 0;
  int width = 0, vocab = 0;  // vocab <= kMostEncoderVocab
  Element element = Element::bf16;
  const int16_t* symbol = nullptr;
  const float *weight = nullptr, *bias = nullptr;
};
inline constexpr int kMostEncoderVocab = 200;  // above, expand the frames and multiply

size_t symbol_encoder_scratch_bytes(const SymbolEncoder& p, bool backward);
// `low`: h once more in bf16; data null: not wanted.
cudaError_t symbol_encoder_forward(const SymbolEncoder& p, const RowsOut& h, const RowsOut& low, void* scratch,
                                   cudaStream_t stream);
// d_weight [width, vocab], d_bias [width]. dh of `element`; dh_low (bf16, data null: none) is added to it. The same
// bytes on every run.
cudaError_t symbol_encoder_backward(const SymbolEncoder& p, const RowsIn& dh, const RowsIn& dh_low, float* d_weight,
                                    float* d_bias, void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
