// Adam over one flat buffer of parameters: one pass over memory an update, the same bytes for any thread count.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sb {

struct AdamConfig {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // decoupled
  // Parameters, gradients and both moments are rounded to bfloat16 after every operation, as a model kept wholly in
  // bfloat16 does: the second moment cannot decay and parameters of size >= 1 do not move.
  bool bf16_state = false;
  double clip = 0;  // largest norm of the gradients; 0: no clipping
};

// A stretch of the flat buffer with its own rule (models/parameters.h, LearningGroup).
struct ParameterGroup {
  int64_t offset = 0;
  int64_t length = 0;
  double max_lr = 0;  // 0: no cap
  bool decay = true;
};

class Adam {
 public:
  // `parameters` is one-dimensional and contiguous, float or double; the groups cover it in order.
  Adam(at::Tensor parameters, std::vector<ParameterGroup> groups, const AdamConfig& config);

  // Clips, updates and counts, all of it where the parameters live: the host reads nothing, so it need not wait. `lr`
  // and `loss` are [1] float64. Returns [2] float64: the norm of the gradients as they came, and 1 where the update was
  // made. Where loss or norm is not finite, nothing is changed by this call or any later one: what was wrong can still
  // be looked for when the host learns of it.
  at::Tensor update(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss);
  // A copy of the parameters in bfloat16, laid out as they are, to be written by every update.
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
  at::Tensor sound_;  // [1] int64: 0 once something was not finite
  std::vector<ParameterGroup> groups_;
  AdamConfig config_;
  at::Tensor stretches_, clip_;  // of a CUDA kernel, where one runs
};

// L2 norm of a flat tensor of the CPU: block sums in double, added in order, so that threads do not change it.
double flat_norm(const at::Tensor& values);

}  // namespace sb
