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
  // Applies `gradients * scale`; counts the update.
  void update(const at::Tensor& gradients, double scale, double lr);

  const at::Tensor& first_moment() const { return m_; }
  const at::Tensor& second_moment() const { return v_; }
  int64_t updates() const { return updates_; }
  void restore(const at::Tensor& first, const at::Tensor& second, int64_t updates);

 private:
  at::Tensor parameters_, m_, v_;
  std::vector<ParameterGroup> groups_;
  AdamConfig config_;
  int64_t updates_ = 0;
};

// L2 norm of a flat tensor: block sums in double, added in order, so that threads do not change it.
double flat_norm(const at::Tensor& values);

}  // namespace sb
