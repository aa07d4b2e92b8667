// Global norm, clip and Adam over flat buffers on CUDA, without torch; train/adam.h's arithmetic in two passes.
// Learning rate, clip and count of updates are read on the device, so that a captured graph replays with new ones.
//   scale = min(1, clip / (norm + 1e-6)), or 1 where clip = 0;  t = count of updates, this one included
//   m += (g scale - m)(1 - beta1);  v = beta2 v + (1 - beta2) (g scale)^2
//   p = p (1 - rate decay) - rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
// A norm or loss that is not finite leaves everything as it was, in this call and, by `sound`, in all later ones.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

// Stretches of the flat buffer with their own rule; they cover it in order.
struct AdamGroup {
  int64_t offset = 0, length = 0;
  double max_lr = 0;  // 0: no cap
  int decay = 1;
};

// Where gradients and the bf16 copy of the weights lie when heads are padded: elements begin .. of the flat buffer, in
// units of `unit` that stand `padded` apart, from `to` on. Stretches cover the buffer in order; lengths below 2^31.
struct AdamStretch {
  int64_t begin = 0, to = 0;
  int unit = 1, padded = 1;
};

struct FlatAdam {
  int64_t count = 0;  // of parameters
  float *parameters = nullptr, *first_moment = nullptr, *second_moment = nullptr;
  int64_t gradient_count = 0;  // = count without stretches; what lies between units must be zero
  const float* gradients = nullptr;
  void* copy = nullptr;               // bf16, laid out as the gradients; null: none. Between units nothing is written.
  const AdamGroup* groups = nullptr;  // on the device
  const AdamStretch* stretches = nullptr;  // on the device
  int group_count = 0, stretch_count = 0;  // stretch_count 0: one to one
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool bf16_state = false;  // all results rounded to bf16, one by one
  const double* lr = nullptr;
  const double* clip = nullptr;
  const double* loss = nullptr;  // or null; counts as the norm does where it is not finite
  int64_t* updates = nullptr;    // done before; one more after an update that was made
  int64_t* sound = nullptr;      // or null; 0 once something was not finite, and then nothing is done any more
};

struct AdamReport {
  double norm;  // of the gradients as they came
  double made;  // 1 where the update was made, else 0
};

size_t adam_workspace_bytes(const FlatAdam& p);
// The same bytes on every run.
cudaError_t adam_update(const FlatAdam& p, AdamReport* report, void* workspace, cudaStream_t stream);

}  // namespace sb::cuda
