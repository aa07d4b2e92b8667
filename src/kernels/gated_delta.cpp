#include "base/error.h"
#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"
#include "kernels/step.h"

namespace sb {

using at::Tensor;

namespace {

void check_delta(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                 const Tensor& state) {
  const char* where = "gated_delta_rule";
  kernels::check_shape(where, "q", q, {-1, -1, -1, -1});
  const int64_t B = q.size(0), T = q.size(1), H = q.size(2), K = q.size(3);
  kernels::check_shape(where, "k", k, {B, T, -1, H, K});
  const int64_t n = k.size(2);
  constexpr int64_t most = 256;
  if (n < 1 || n > most) {
    throw bad_input(where, "factors, expected 1 to " + std::to_string(most) + ", got " + std::to_string(n));
  }
  kernels::check_shape(where, "v", v, {B, T, n, H, -1});
  kernels::check_shape(where, "beta", beta, {B, T, n, H});
  if (g.defined()) kernels::check_shape(where, "g", g, {B, T, H});
  if (state.defined()) kernels::check_shape(where, "state", state, {B, H, K, v.size(4)});
  kernels::check_alike(where, v, {q, k});
  kernels::check_alike(where, v, {beta, g, state}, /*float32_too=*/true);
}

}  // namespace

OutAndState gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                             double scale, const Tensor& state) {
  check_delta(q, k, v, beta, g, state);
  const auto out = kernels::run(op::GatedDelta{scale}, {q, k, v, beta, g, state});
  return {out[0], out[1]};
}

Tensor gated_delta_rule_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                             double scale, Tensor& state) {
  check_delta(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), beta.unsqueeze(1), g.defined() ? g.unsqueeze(1) : g,
              state);
  const at::NoGradGuard no_gradients;
  return kernels::run(op::GatedDeltaStep{scale}, {q, k, v, beta, g, state})[0];
}

}  // namespace sb
