#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"
#include "kernels/step.h"

namespace sb {

using at::Tensor;

namespace {

void check_general_delta(const DeltaOperands& x, const Tensor& state) {
  const char* where = "general_delta_rule";
  kernels::check_shape(where, "q", x.q, {-1, -1, -1, -1});
  const int64_t B = x.q.size(0), T = x.q.size(1), H = x.q.size(2), K = x.q.size(3);
  kernels::check_shape(where, "k", x.k, {B, T, H, K});
  kernels::check_shape(where, "v", x.v, {B, T, H, -1});
  kernels::check_shape(where, "erase", x.erase, {B, T, H, K});
  kernels::check_shape(where, "write", x.write, {B, T, H, K});
  if (x.g.defined() && x.g.dim() == 3) kernels::check_shape(where, "g", x.g, {B, T, H});
  if (x.g.defined() && x.g.dim() != 3) kernels::check_shape(where, "g", x.g, {B, T, H, K});
  if (state.defined()) kernels::check_shape(where, "state", state, {B, H, K, x.v.size(3)});
  kernels::check_alike(where, x.v, {x.q, x.k, x.erase, x.write});
  kernels::check_alike(where, x.v, {x.g, state}, /*float32_too=*/true);
}

}  // namespace

OutAndState general_delta_rule(const DeltaOperands& x, double scale, EraseFrom from, const Tensor& state) {
  check_general_delta(x, state);
  const auto out = kernels::run(op::GeneralDelta{scale, from == EraseFrom::before_decay, x.write.is_same(x.k)},
                                {x.q, x.k, x.v, x.erase, x.write, x.g, state});
  return {out[0], out[1]};
}

Tensor general_delta_rule_step(const DeltaOperands& x, double scale, EraseFrom from, Tensor& state) {
  const auto frame = [](const Tensor& t) { return t.defined() ? t.unsqueeze(1) : t; };
  check_general_delta({frame(x.q), frame(x.k), frame(x.v), frame(x.erase), frame(x.write), frame(x.g)}, state);
  const at::NoGradGuard no_gradients;
  return kernels::run(op::GeneralDeltaStep{scale, from == EraseFrom::before_decay},
                      {x.q, x.k, x.v, x.erase, x.write, x.g, state})[0];
}

}  // namespace sb
