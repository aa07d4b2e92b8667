// Global norm, clip and Adam over flat buffers on a CUDA device: train/adam.h's arithmetic, nothing read on the host,
// so that a captured graph replays it with new learning rates and counts. Only in builds with CUDA kernels (backend.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sb::kernels {

// A stretch of the flat buffer with its own rule.
struct AdamStretch {
  int64_t offset = 0, length = 0;
  double max_lr = 0;  // 0: no cap
  bool decay = true;
};
// The stretches, which cover the buffer in order, as adam_update reads them.
at::Tensor adam_stretches(const std::vector<AdamStretch>& stretches, const at::Device& device);

// All on one device.
struct FlatAdam {
  at::Tensor parameters, first_moment, second_moment;  // [n] float32
  at::Tensor copy;                                     // [n] bfloat16, rewritten with the parameters; undefined: none
  at::Tensor stretches;                                // adam_stretches()
  at::Tensor lr, clip;                                 // [1] float64; clip 0: no clipping
  at::Tensor updates;                                  // [1] int64: made so far; one more after each
  at::Tensor sound;                                    // [1] int64, 1 at first: 0 once loss or norm was not finite
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool bf16_state = false;  // every result rounded to bfloat16
};
// gradients [n] float32, loss [1] float64. Returns [2] float64: the norm of the gradients as they came, and 1 where the
// update was made. Once something was not finite, nothing is changed by this call or any later one. The same bytes on
// every run.
at::Tensor adam_update(const FlatAdam& adam, const at::Tensor& gradients, const at::Tensor& loss);

}  // namespace sb::kernels
