#include "base/error.h"
#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"
#include "kernels/step.h"

namespace sb {

using at::Tensor;

namespace {

void check_levels(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& weights,
                  const Tensor& state) {
  const char* where = "log_linear_attention";
  kernels::check_shape(where, "v", v, {-1, -1, -1, -1});
  const int64_t B = v.size(0), T = v.size(1), H = v.size(2);
  kernels::check_shape(where, "q", q, {B, T, -1, -1});
  if (q.size(2) < 1 || H % q.size(2) != 0)
    throw bad_input(where,
                    "heads of q, expected a divisor of " + std::to_string(H) + ", got " + std::to_string(q.size(2)));
  kernels::check_shape(where, "k", k, {B, T, q.size(2), q.size(3)});
  kernels::check_shape(where, "g", g, {B, T, H});
  kernels::check_shape(where, "weights", weights, {B, T, H, -1});
  const int64_t levels = weights.size(3);
  if (levels < 8) throw bad_input(where, "levels, expected at least 8, got " + std::to_string(levels));
  if (state.defined()) kernels::check_shape(where, "state", state, {B, H, levels - 1, q.size(3), v.size(3)});
  kernels::check_alike(where, v, {q, k});
  kernels::check_alike(where, v, {g, weights, state}, /*float32_too=*/true);
}

}  // namespace

OutAndState log_linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                                 const Tensor& weights, int64_t position, const Tensor& state, bool final_state) {
  check_levels(q, k, v, g, weights, state);
  const auto out = kernels::run(op::LogLinearAttention{position, final_state}, {q, k, v, g, weights, state});
  return {out[0], final_state ? out[1] : Tensor()};
}

OutAndState log_linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                                      const Tensor& weights, int64_t position, const Tensor& state) {
  check_levels(q, k, v, g, weights, state);
  // The loop computes in the types it is given.
  const auto type = v.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto wide = [&](const Tensor& x) { return x.defined() ? x.to(type) : x; };
  const auto out = naive::log_linear_attention(
      {position, true}, {wide(q), wide(k), wide(v), wide(g), wide(weights), wide(state)}, nullptr);
  return {out[0].to(v.scalar_type()), out[1]};
}

}  // namespace sb
