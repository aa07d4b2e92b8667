// Adam over one flat buffer of parameters, in one pass over memory. The thread count does not change the result.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sb {

struct AdamConfig {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // decoupled
  // Rounds parameters, gradients and both moments to bfloat16 after every operation, as in a model kept entirely in
  // bfloat16. As a consequence, the second moment cannot decay and parameters of magnitude >= 1 do not move.
  bool bf16_state = false;
  double clip = 0;  // maximum norm of the gradients; 0: no clipping
};

// A range of the flat buffer with its own settings (LearningGroup in models/parameters.h).
struct ParameterGroup {
  int64_t offset = 0;
  int64_t length = 0;
  double max_lr = 0;  // 0: no bound
  bool decay = true;
};

class Adam {
 public:
  // `parameters`: one-dimensional, contiguous, float or double; updated in place. The groups cover it in order.
  Adam(at::Tensor parameters, std::vector<ParameterGroup> groups, const AdamConfig& config);

  // Clips the gradients, updates the parameters and counts the update, all on the device of the parameters. The host
  // reads no value, so it does not wait. `lr` and `loss` are [1] float64. Returns [2] float64: the norm of the
  // gradients before clipping, and 1 if the update was made, else 0. Once loss or norm is not finite, this call and all
  // later ones change nothing, so the host can still locate the cause when it learns of it.
  at::Tensor update(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss);
  // Every update also writes the parameters to `copy`: bfloat16, in the same layout.
  void also_write(at::Tensor copy) { copy_ = std::move(copy); }

  const at::Tensor& first_moment() const { return m_; }
  const at::Tensor& second_moment() const { return v_; }
  void restore(const at::Tensor& first, const at::Tensor& second, int64_t updates);

 private:
  at::Tensor update_by_kernel(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss);
  at::Tensor update_here(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss);
  at::Tensor update_anywhere(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss);

  at::Tensor parameters_, m_, v_, copy_;
  at::Tensor count_;  // [1] int64: updates made
  at::Tensor sound_;  // [1] int64: 0 once a loss or norm was not finite
  std::vector<ParameterGroup> groups_;
  AdamConfig config_;
  at::Tensor stretches_, clip_;  // inputs of the CUDA kernel, if it is used
};

// L2 norm of a flat CPU tensor. Sums blocks in double and adds them in order, so the number of threads does not matter.
double flat_norm(const at::Tensor& values);

}  // namespace sb
