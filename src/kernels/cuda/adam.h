// Gradient norm, clipping and Adam over flat buffers on CUDA, without torch. Same arithmetic as train/adam.h, in two
// passes. Learning rate, clip and update count are read on the device, so that a captured graph can be replayed with
// new values.
//   scale = min(1, clip / (norm + 1e-6)), or 1 if clip = 0;  t = number of updates, including this one
//   m += (g scale - m)(1 - beta1);  v = beta2 v + (1 - beta2) (g scale)^2
//   p = p (1 - rate decay) - rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
// If the norm or loss is not finite, this call changes nothing, and neither do later ones (see `sound`).
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

// A range of the flat buffer with its own settings. The groups cover the buffer in order.
struct AdamGroup {
  int64_t offset = 0, length = 0;
  double max_lr = 0;  // upper bound of the learning rate; 0: no bound
  int decay = 1;
};

struct FlatAdam {
  int64_t count = 0;  // number of parameters
  float *parameters = nullptr, *first_moment = nullptr, *second_moment = nullptr;
  const float* gradients = nullptr;
  void* copy = nullptr;               // of the parameters in bf16; null: none
  const AdamGroup* groups = nullptr;  // on the device
  int group_count = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool bf16_state = false;  // round the result of every operation to bf16
  const double* lr = nullptr;
  const double* clip = nullptr;
  const double* loss = nullptr;  // may be null; no update is made if it is not finite
  int64_t* updates = nullptr;    // number of updates made, incremented by each
  int64_t* sound = nullptr;      // may be null; set to 0 once norm or loss is not finite; while 0, nothing is done
};

struct AdamReport {
  double norm;  // of the gradients before clipping
  double made;  // 1 if the update was made, else 0
};

size_t adam_workspace_bytes(const FlatAdam& p);
// Deterministic. `report` is on the device; it may be null.
cudaError_t adam_update(const FlatAdam& p, AdamReport* report, void* workspace, cudaStream_t stream);

}  // namespace sb::cuda
