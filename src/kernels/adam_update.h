// Gradient norm, clipping and Adam over flat buffers on a CUDA device, with the arithmetic of train/adam.h. The host
// reads no value, so a captured graph can be replayed with new learning rates and counts. Only in builds with CUDA
// kernels (backend.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sb::kernels {

// A range of the flat buffer with its own settings.
struct AdamStretch {
  int64_t offset = 0, length = 0;
  double max_lr = 0;  // upper bound of the learning rate; 0: no bound
  bool decay = true;
};
// Encodes the stretches for FlatAdam::stretches. They must cover the buffer in order.
at::Tensor adam_stretches(const std::vector<AdamStretch>& stretches, const at::Device& device);

// State and settings of Adam. All tensors are on one device.
struct FlatAdam {
  at::Tensor parameters, first_moment, second_moment;  // [n] float32
  at::Tensor copy;                                     // [n] bfloat16 copy of the parameters; undefined: none
  at::Tensor stretches;                                // adam_stretches()
  at::Tensor lr, clip;                                 // [1] float64; clip 0: no clipping
  at::Tensor updates;                                  // [1] int64: number of updates made, incremented by each
  at::Tensor sound;                                    // [1] int64: initially 1; 0 once a loss or norm was not finite
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool bf16_state = false;  // round every result to bfloat16
};
// Makes one update in place. gradients [n] float32, loss [1] float64. Returns [2] float64: the norm of the gradients
// before clipping, and 1 if the update was made, else 0. Once loss or norm is not finite, this call and all later ones
// change nothing. Deterministic.
at::Tensor adam_update(const FlatAdam& adam, const at::Tensor& gradients, const at::Tensor& loss);

}  // namespace sb::kernels
