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

OutAndState written_attention(const Tensor& q, const Tensor& k, const Tensor& x, const Tensor& g, const Tensor& write,
                              const Tensor& skip, double scale, const Tensor& state) {
  const char* where = "written_attention";
  check_attention(q, k, x, g, state);
  kernels::check_shape(where, "g", g, {x.size(0), x.size(1), x.size(2)});
  kernels::check_shape(where, "write", write, {x.size(0), x.size(1), x.size(2)});
  kernels::check_shape(where, "skip", skip, {x.size(2)});
  kernels::check_alike(where, x, {write, skip}, /*float32_too=*/true);
  const auto out = kernels::run(op::WrittenAttention{scale}, {q, k, x, g, write, skip, state});
  return {out[0], out[1]};
}

bool attention_writes(const Tensor& q, const Tensor& k, const Tensor& x, const Tensor& g, const Tensor& write,
                      const Tensor& skip, const Tensor& state) {
  return kernels::has_kernel(op::WrittenAttention{1}, {q, k, x, g, write, skip, state});
}

Tensor decayed_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                              Tensor& state) {
  check_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), g.defined() && g.dim() > 1 ? g.unsqueeze(1) : g,
                  state);
  const at::NoGradGuard no_gradients;
  return kernels::run(op::DecayedAttentionStep{scale}, {q, k, v, g, state})[0];
}

}  // namespace sb
