// Dense frames from symbol ids on a CUDA device. Only in builds with CUDA kernels (backend.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sb::kernels {

// The stream of a batch's noise: sample b is number samples[b] of this split.
struct FrameNoise {
  float size = 0;  // 0: none, and the rest is not read
  uint64_t seed = 0;
  uint32_t split = 0;
  at::Tensor samples;  // [B] int64, on the device
};
// symbol [B,T] int16: a class, -1 for a blank frame, -2 for padding. Returns [B,T,channels] of `type`, float32 (the
// CPU's bits, tasks/batch.h) or bfloat16: one-hot, zero on blanks and padding, real frames plus noise.
at::Tensor frame_rows(const at::Tensor& symbol, int64_t channels, at::ScalarType type, const FrameNoise& noise = {});

}  // namespace sb::kernels
