#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"

namespace sb {

using at::Tensor;

OutAndState trapezoid_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& here,
                                const Tensor& before, const Tensor& skip, double scale, const TrapezoidStart& first) {
  const char* where = "trapezoid_attention";
  kernels::check_shape(where, "q", q, {-1, -1, -1, -1});
  const int64_t B = q.size(0), T = q.size(1), H = q.size(2), K = q.size(3);
  kernels::check_shape(where, "k", k, {B, T, H, K});
  kernels::check_shape(where, "v", v, {B, T, H, -1});
  kernels::check_shape(where, "g", g, {B, T, H});
  kernels::check_shape(where, "here", here, {B, T, H});
  kernels::check_shape(where, "before", before, {B, T, H});
  if (skip.defined()) kernels::check_shape(where, "skip", skip, {H});
  if (first.state.defined()) kernels::check_shape(where, "state", first.state, {B, H, K, v.size(3)});
  if (first.k.defined()) kernels::check_shape(where, "last k", first.k, {B, H, K});
  if (first.k.defined()) kernels::check_shape(where, "last v", first.v, {B, H, v.size(3)});
  kernels::check_alike(where, v, {q, k, first.k, first.v});
  kernels::check_alike(where, v, {g, here, before, skip, first.state}, /*float32_too=*/true);
  const auto out =
      kernels::run(op::TrapezoidAttention{scale}, {q, k, v, g, here, before, skip, first.state, first.k, first.v});
  return {out[0], out[1]};
}

}  // namespace sb
