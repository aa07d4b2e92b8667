#include "kernels/cuda/gates.h"

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

GateRows gate_rows(const Held& x) {
  return {x.tokens, x.width, element_of(x.x)};
}

}  // namespace

Tensor sum_of_rows(const Tensor& x) {
  const Held rows = by_rows(x);
  const GateRows p{rows.tokens, rows.width, element_of(x)};
  const Tensor sums = fresh({x.size(-1)}, x, at::kFloat), memory = scratch(column_sums_scratch_bytes(p), x);
  const OnDevice on(x);
  on.check("sum_of_rows", column_sums(p, rows.in(), float_data(sums), data(memory), on.stream()));
  return sums;
}

bool supports_gate_silu(const op::GateSilu&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && same_type(in[0], in[1]);
}
Tensors gate_silu(const op::GateSilu&, const Tensors& in, Tensors* saved) {
  const Held y = by_rows(in[0]), z = by_rows(in[1]);
  const Tensor out = fresh_like(in[0]);
  const OnDevice on(out);
  on.check("gate_silu", gate_silu_forward(gate_rows(y), y.in(), z.in(), by_rows(out).out(), on.stream()));
  if (saved) *saved = {y.x, z.x};
  return {out};
}
Tensors gate_silu_back(const op::GateSilu&, const Back& back) {
  const Held y = by_rows(back.saved[0]), z = by_rows(back.saved[1]), d_out = by_rows(back.d_out[0]);
  const Tensor dy = gradient_by_rows(back, 0, y.x), dz = gradient_by_rows(back, 1, y.x);
  const OnDevice on(dy);
  on.check("gate_silu", gate_silu_backward(gate_rows(y), d_out.in(), y.in(), z.in(), by_rows(dy).out(),
                                           by_rows(dz).out(), on.stream()));
  return {dy, dz};
}

bool supports_gate_sigmoid(const op::GateSigmoid&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && same_type(in[0], in[1]);
}
Tensors gate_sigmoid(const op::GateSigmoid& op, const Tensors& in, Tensors* saved) {
  const Held y = by_rows(in[0]), z = by_rows(in[1]);
  const Tensor out = fresh(in[0].sizes(), in[0]);
  const OnDevice on(out);
  on.check("gate_sigmoid", gate_sigmoid_forward(gate_rows(y), static_cast<float>(op.scale), y.in(), z.in(),
                                                by_rows(out).out(), on.stream()));
  if (saved) *saved = {y.x, z.x};
  return {out};
}
Tensors gate_sigmoid_back(const op::GateSigmoid& op, const Back& back) {
  const Held y = by_rows(back.saved[0]), z = by_rows(back.saved[1]), d_out = by_rows(back.d_out[0]);
  const Tensor dy = gradient_by_rows(back, 0, y.x), dz = gradient_by_rows(back, 1, y.x);
  const OnDevice on(dy);
  on.check("gate_sigmoid", gate_sigmoid_backward(gate_rows(y), static_cast<float>(op.scale), d_out.in(), y.in(), z.in(),
                                                 by_rows(dy).out(), by_rows(dz).out(), on.stream()));
  return {dy, dz};
}

bool supports_gate_swish(const op::GateSwish&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]);
}
// ab, beta
Tensors gate_swish(const op::GateSwish&, const Tensors& in, Tensors* saved) {
  const Held ab = by_rows(in[0]);
  const Tensor beta = floats(in[1]);
  std::vector<int64_t> sizes = in[0].sizes().vec();
  sizes.back() /= 2;
  const Tensor out = fresh(sizes, in[0]);
  const OnDevice on(out);
  on.check("gate_swish", gate_swish_forward({ab.tokens, ab.width / 2, element_of(out)}, ab.in(), float_data(beta),
                                            by_rows(out).out(), on.stream()));
  if (saved) *saved = {ab.x, beta};
  return {out};
}
Tensors gate_swish_back(const op::GateSwish&, const Back& back) {
  const Held ab = by_rows(back.saved[0]), d_out = by_rows(back.d_out[0]);
  const Tensor &beta = back.saved[1], d_ab = gradient_by_rows(back, 0, ab.x);
  const Tensor d_beta = back.wanted[1] ? fresh_like(beta) : Tensor(),
               memory = scratch(gate_swish_scratch_bytes(), d_ab);
  const OnDevice on(d_ab);
  on.check("gate_swish",
           gate_swish_backward({ab.tokens, ab.width / 2, element_of(d_ab)}, d_out.in(), ab.in(), float_data(beta),
                               by_rows(d_ab).out(), float_data(d_beta), data(memory), on.stream()));
  return {d_ab, d_beta};
}

namespace {

// Steps and log-decays, either or both: x, bias, A_log? -> float32
StepGates steps_of(const Held& x, const Tensor& bias, const Tensor& A_log) {
  StepGates p;
  p.rows = gate_rows(x), p.x = x.in(), p.bias = float_data(bias), p.A_log = float_data(A_log);
  return p;
}
TokenRows<float> to_rows(const Tensor& x) {
  return x.defined() ? by_rows(x).floats_out() : TokenRows<float>{};
}
void make_steps(const char* where, const Tensors& in, const Tensor& step, const Tensor& decay, Tensors* saved) {
  const Held x = by_rows(in[0]);
  const Tensor bias = floats(in[1]), A_log = in.size() > 2 ? floats(in[2]) : Tensor();
  const OnDevice on(x.x);
  on.check(where, step_gates_forward(steps_of(x, bias, A_log), to_rows(step), to_rows(decay), on.stream()));
  if (saved) *saved = {x.x, bias, A_log};
}
// Gradients of x, bias, A_log
Tensors steps_back(const char* where, const Back& back, const Tensor& d_step, const Tensor& d_decay) {
  const Held x = by_rows(back.saved[0]);
  const Tensor &bias = back.saved[1], &A_log = back.saved[2], dx = gradient_by_rows(back, 0, x.x);
  const Tensor d_bias = fresh_like(bias), d_A_log = A_log.defined() ? fresh_like(A_log) : Tensor();
  const Held by_step = d_step.defined() ? by_rows(d_step) : Held(),
             by_decay = d_decay.defined() ? by_rows(d_decay) : Held();
  const StepGates p = steps_of(x, bias, A_log);
  const Tensor memory = scratch(step_gates_scratch_bytes(p), dx);
  const OnDevice on(dx);
  on.check(where, step_gates_backward(p, by_step.floats_in(), by_decay.floats_in(), by_rows(dx).out(),
                                      float_data(d_bias), float_data(d_A_log), data(memory), on.stream()));
  return {dx, d_bias, d_A_log};
}
Tensor fresh_floats(const Tensor& like) {
  return fresh(like.sizes(), like, at::kFloat);
}

}  // namespace

bool supports_softplus_bias(const op::SoftplusBias&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]);
}
Tensors softplus_bias(const op::SoftplusBias&, const Tensors& in, Tensors* saved) {
  const Tensor step = fresh_floats(in[0]);
  make_steps("softplus_bias", in, step, {}, saved);
  return {step};
}
Tensors softplus_bias_back(const op::SoftplusBias&, const Back& back) {
  Tensors out = steps_back("softplus_bias", back, back.d_out[0], {});
  out.pop_back();
  return out;
}

bool supports_softplus_decay(const op::SoftplusDecay&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable(in[2]);
}
Tensors softplus_decay(const op::SoftplusDecay&, const Tensors& in, Tensors* saved) {
  const Tensor decay = fresh_floats(in[0]);
  make_steps("softplus_decay", in, {}, decay, saved);
  return {decay};
}
Tensors softplus_decay_back(const op::SoftplusDecay&, const Back& back) {
  return steps_back("softplus_decay", back, {}, back.d_out[0]);
}

bool supports_softplus_gates(const op::SoftplusGates&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable(in[2]);
}
Tensors softplus_gates(const op::SoftplusGates&, const Tensors& in, Tensors* saved) {
  const Tensor step = fresh_floats(in[0]), decay = fresh_floats(in[0]);
  make_steps("softplus_gates", in, step, decay, saved);
  return {step, decay};
}
Tensors softplus_gates_back(const op::SoftplusGates&, const Back& back) {
  return steps_back("softplus_gates", back, back.d_out[0], back.d_out[1]);
}

namespace {

SigmoidGate sigmoid_of(const Held& x, bool log, double scale) {
  SigmoidGate p;
  p.rows = gate_rows(x), p.log = log, p.scale = static_cast<float>(scale), p.x = x.in();
  return p;
}
Tensors sigmoid_forward(const char* where, bool log, double scale, const Tensors& in, Tensors* saved) {
  const Held x = by_rows(in[0]);
  const Tensor out = fresh_floats(in[0]);
  const OnDevice on(out);
  on.check(where, sigmoid_gate_forward(sigmoid_of(x, log, scale), by_rows(out).floats_out(), on.stream()));
  if (saved) *saved = {x.x};
  return {out};
}
Tensors sigmoid_backward(const char* where, bool log, double scale, const Back& back) {
  const Held x = by_rows(back.saved[0]), d_out = by_rows(back.d_out[0]);
  const Tensor dx = gradient_by_rows(back, 0, x.x);
  const OnDevice on(dx);
  on.check(where, sigmoid_gate_backward(sigmoid_of(x, log, scale), d_out.floats_in(), by_rows(dx).out(), on.stream()));
  return {dx};
}

}  // namespace

// x -> float32
bool supports_log_sigmoid(const op::LogSigmoid&, const Tensors& in) {
  return readable(in[0]);
}
Tensors log_sigmoid(const op::LogSigmoid& op, const Tensors& in, Tensors* saved) {
  return sigmoid_forward("log_sigmoid", true, op.scale, in, saved);
}
Tensors log_sigmoid_back(const op::LogSigmoid& op, const Back& back) {
  return sigmoid_backward("log_sigmoid", true, op.scale, back);
}
bool supports_sigmoid_gate(const op::SigmoidGate&, const Tensors& in) {
  return readable(in[0]);
}
Tensors sigmoid_gate(const op::SigmoidGate& op, const Tensors& in, Tensors* saved) {
  return sigmoid_forward("sigmoid_gate", false, op.scale, in, saved);
}
Tensors sigmoid_gate_back(const op::SigmoidGate& op, const Back& back) {
  return sigmoid_backward("sigmoid_gate", false, op.scale, back);
}

// query, forget -> q, k, g (float32)
bool supports_hgrn2_keys(const op::Hgrn2Keys&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && same_type(in[0], in[1]);
}
Tensors hgrn2_keys(const op::Hgrn2Keys&, const Tensors& in, Tensors* saved) {
  const Held query = by_rows(in[0]), forget = by_rows(in[1]);
  const Tensor q = fresh(in[0].sizes(), in[0]), k = fresh(in[0].sizes(), in[0]), g = fresh_floats(in[0]);
  const OnDevice on(q);
  on.check("hgrn2_keys", hgrn2_keys_forward({gate_rows(query), query.in(), forget.in()}, by_rows(q).out(),
                                            by_rows(k).out(), by_rows(g).floats_out(), on.stream()));
  if (saved) *saved = {query.x, forget.x};
  return {q, k, g};
}
Tensors hgrn2_keys_back(const op::Hgrn2Keys&, const Back& back) {
  const Held query = by_rows(back.saved[0]), forget = by_rows(back.saved[1]);
  const auto given = [&](size_t i, at::ScalarType type) {
    return by_rows(back.d_out[i].defined() ? back.d_out[i] : at::zeros(query.x.sizes(), query.x.options().dtype(type)));
  };
  const auto type = query.x.scalar_type();
  const Held dq = given(0, type), dk = given(1, type), dg = given(2, at::kFloat);
  const Tensor d_query = gradient_by_rows(back, 0, query.x), d_forget = gradient_by_rows(back, 1, forget.x);
  const OnDevice on(d_query);
  on.check("hgrn2_keys",
           hgrn2_keys_backward({gate_rows(query), query.in(), forget.in()}, dq.in(), dk.in(), dg.floats_in(),
                               by_rows(d_query).out(), by_rows(d_forget).out(), on.stream()));
  return {d_query, d_forget};
}

}  // namespace sb::cuda::bind
