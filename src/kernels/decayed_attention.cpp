#include "base/error.h"
#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"
#include "kernels/step.h"

namespace sb {

using at::Tensor;

namespace {

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& state) {
  const char* where = "decayed_attention";
  kernels::check_shape(where, "v", v, {-1, -1, -1, -1});
  const int64_t B = v.size(0), T = v.size(1), H = v.size(2);
  kernels::check_shape(where, "q", q, {B, T, -1, -1});
  const int64_t G = q.size(2), K = q.size(3);
  if (G < 1 || H % G != 0) {
    throw bad_input(where, "heads of q, expected a divisor of " + std::to_string(H) + ", got " + std::to_string(G));
  }
  kernels::check_shape(where, "k", k, {B, T, G, K});
  if (g.defined()) {
    if (g.dim() == 1) {
      kernels::check_shape(where, "g", g, {H});
    } else if (g.dim() == 3) {
      kernels::check_shape(where, "g", g, {B, T, H});
    } else {
      kernels::check_shape(where, "g", g, {B, T, H, K});
    }
  }
  if (state.defined()) kernels::check_shape(where, "state", state, {B, H, K, v.size(3)});
  kernels::check_alike(where, v, {q, k});
  kernels::check_alike(where, v, {g, state}, /*float32_too=*/true);
}

}  // namespace

OutAndState decayed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                              const Tensor& state) {
  check_attention(q, k, v, g, state);
  const auto out = kernels::run(op::DecayedAttention{scale}, {q, k, v, g, state});
  return {out[0], out[1]};
}

Tensor decayed_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                              Tensor& state) {
  check_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), g.defined() && g.dim() > 1 ? g.unsqueeze(1) : g,
                  state);
  const at::NoGradGuard no_gradients;
  return kernels::run(op::DecayedAttentionStep{scale}, {q, k, v, g, state})[0];
}

}  // namespace sb
