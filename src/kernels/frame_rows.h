// Makes dense frames from symbol ids on a CUDA device. Only in builds with CUDA kernels (backend.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sb::kernels {

// Noise of a batch. Row b is sample number samples[b] of the split.
struct FrameNoise {
  float size = 0;  // 0: no noise; the other members are not read
  uint64_t seed = 0;
  uint32_t split = 0;
  at::Tensor samples;  // [B] int64, on the device
};
// symbol [B,T] int16: a class, -1 for a blank frame, -2 for padding. Returns [B,T,channels] of `type`, float32 or
// bfloat16: one-hot for classes, zeros for blanks and padding, plus noise on all frames but padding. float32 has the
// same bits as on the CPU (tasks/batch.h).
at::Tensor frame_rows(const at::Tensor& symbol, int64_t channels, at::ScalarType type, const FrameNoise& noise = {});

}  // namespace sb::kernels
