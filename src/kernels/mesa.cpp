#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"

namespace sb {

using at::Tensor;

OutAndState mesa_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                           const Tensor& ridge, int64_t steps, const Tensor& state) {
  const char* where = "mesa_attention";
  kernels::check_shape(where, "q", q, {-1, -1, -1, -1});
  const int64_t B = q.size(0), T = q.size(1), H = q.size(2), K = q.size(3);
  kernels::check_shape(where, "k", k, {B, T, H, K});
  kernels::check_shape(where, "v", v, {B, T, H, -1});
  kernels::check_shape(where, "beta", beta, {B, T, H});
  kernels::check_shape(where, "g", g, {B, T, H});
  kernels::check_shape(where, "ridge", ridge, {H, K});
  if (state.defined()) kernels::check_shape(where, "state", state, {B, H, K, K + v.size(3)});
  kernels::check_alike(where, v, {q, k, beta, g, ridge, state}, /*float32_too=*/true);
  const auto out = kernels::run(op::Mesa{steps}, {q, k, v, beta, g, ridge, state});
  return {out[0], out[1]};
}

}  // namespace sb
