#include "base/torch_pch.h"
#include "kernels/operation.h"
#include "kernels/step.h"
#include "models/ops.h"

namespace sb {
namespace {

// A copy of the carried state for an update in place; other owners of the old state keep it.
at::Tensor state_to_update(const Context& context, at::IntArrayRef shape, const at::Tensor& like) {
  const auto state = context.carried("state");
  return state.defined() ? state.contiguous().clone() : at::zeros(shape, like.options().dtype(wide_type(like)));
}

at::Tensor frame(const at::Tensor& x) {
  return x.defined() ? x.select(1, 0) : x;
}

}  // namespace

at::Tensor carried_selective_scan(const Context& context, const at::Tensor& x, const at::Tensor& delta,
                                  const at::Tensor& A_log, const at::Tensor& B, const at::Tensor& C,
                                  const at::Tensor& skip, const at::Tensor& write, double a_min) {
  const auto state = context.carried("state");
  if (context.state && x.size(1) == 1 && !kernels::records_gradient({x, delta, A_log, B, C, skip, write, state})) {
    const auto scan =
        selective_scan_step(frame(x), frame(delta), A_log, frame(B), frame(C), skip, state, frame(write), a_min);
    context.carry("state", scan.state);
    return scan.out.unsqueeze(1);
  }
  const auto scan = selective_scan(x, delta, A_log, B, C, skip, state, write, a_min);
  context.carry("state", scan.state);
  return scan.out;
}

at::Tensor carried_attention(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& g, double scale) {
  const auto state = context.carried("state");
  if (context.state && q.size(1) == 1 && !kernels::records_gradient({q, k, v, g, state})) {
    auto next = state_to_update(context, {v.size(0), v.size(2), q.size(3), v.size(3)}, v);
    const auto out =
        decayed_attention_step(frame(q), frame(k), frame(v), g.defined() && g.dim() > 1 ? frame(g) : g, scale, next);
    context.carry("state", next);
    return out.unsqueeze(1);
  }
  const auto scan = decayed_attention(q, k, v, g, scale, state);
  context.carry("state", scan.state);
  return scan.out;
}

at::Tensor carried_delta_rule(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& beta, const at::Tensor& g, double scale) {
  const auto state = context.carried("state");
  if (context.state && q.size(1) == 1 && !kernels::records_gradient({q, k, v, beta, g, state})) {
    auto next = state_to_update(context, {q.size(0), q.size(2), q.size(3), v.size(4)}, v);
    const auto out = gated_delta_rule_step(frame(q), frame(k), frame(v), frame(beta), frame(g), scale, next);
    context.carry("state", next);
    return out.unsqueeze(1);
  }
  const auto scan = gated_delta_rule(q, k, v, beta, g, scale, state);
  context.carry("state", scan.state);
  return scan.out;
}

// Slot "state" holds the state of level 1, slot "state.levels" the others.
at::Tensor carried_log_linear(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& g, const at::Tensor& weights) {
  const auto first = context.carried("state"), rest = context.carried("state.levels");
  at::Tensor state;
  if (first.defined()) {
    auto sizes = first.unsqueeze(2).sizes().vec();
    sizes[2] = weights.size(3) - 2;
    state = at::cat({first.unsqueeze(2), rest.defined() ? rest : at::zeros(sizes, first.options())}, 2);
  }
  const bool one_step = context.state && q.size(1) == 1 && !kernels::records_gradient({q, k, v, g, weights, state});
  const auto scan = one_step ? log_linear_attention_step(q, k, v, g, weights, context.position(), state)
                             : log_linear_attention(q, k, v, g, weights, context.position(), state,
                                                    /*final_state=*/context.state != nullptr);
  if (!context.state) return scan.out;
  context.carry("state", scan.state.select(2, 0));
  context.carry("state.levels", scan.state.narrow(2, 1, scan.state.size(2) - 1));
  return scan.out;
}

at::Tensor carried_general_delta(const Context& context, const DeltaOperands& x, double scale, EraseFrom from) {
  const auto state = context.carried("state");
  if (context.state && x.q.size(1) == 1 && !kernels::records_gradient({x.q, x.k, x.v, x.erase, x.write, x.g, state})) {
    auto next = state_to_update(context, {x.q.size(0), x.q.size(2), x.q.size(3), x.v.size(3)}, x.v);
    const auto out = general_delta_rule_step(
        {frame(x.q), frame(x.k), frame(x.v), frame(x.erase), frame(x.write), frame(x.g)}, scale, from, next);
    context.carry("state", next);
    return out.unsqueeze(1);
  }
  const auto scan = general_delta_rule(x, scale, from, state);
  context.carry("state", scan.state);
  return scan.out;
}

}  // namespace sb
