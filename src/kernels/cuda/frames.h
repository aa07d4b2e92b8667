// Frames from symbol ids on CUDA, without torch: dense rows, one-hot plus noise. symbol [B*T]: a class, -1 for a blank
// frame, -2 for padding.
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

}  // namespace sb::cuda
