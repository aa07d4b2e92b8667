#include "kernels/cuda/gates.h"

#include "kernels/cuda/bind/operations.h"
#include "kernels/cuda/bind/tensors.h"

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

bool takes_gate_silu(const op::GateSilu&, const Tensors& in) {
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
  const Tensor dy = fresh_like(y.x), dz = fresh_like(y.x);
  const OnDevice on(dy);
  on.check("gate_silu", gate_silu_backward(gate_rows(y), d_out.in(), y.in(), z.in(), by_rows(dy).out(),
                                           by_rows(dz).out(), on.stream()));
  return {dy, dz};
}

bool takes_gate_swish(const op::GateSwish&, const Tensors& in) {
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
  const Tensor &beta = back.saved[1], d_ab = fresh_like(ab.x);
  const Tensor d_beta = back.wanted[1] ? fresh_like(beta) : Tensor(),
               memory = scratch(gate_swish_scratch_bytes(), d_ab);
  const OnDevice on(d_ab);
  on.check("gate_swish",
           gate_swish_backward({ab.tokens, ab.width / 2, element_of(d_ab)}, d_out.in(), ab.in(), float_data(beta),
                               by_rows(d_ab).out(), float_data(d_beta), data(memory), on.stream()));
  return {d_ab, d_beta};
}

bool takes_softplus_bias(const op::SoftplusBias&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]);
}
// x, bias -> float32
Tensors softplus_bias(const op::SoftplusBias&, const Tensors& in, Tensors* saved) {
  const Held x = by_rows(in[0]);
  const Tensor bias = floats(in[1]), out = fresh(in[0].sizes(), in[0], at::kFloat);
  StepGates p;
  p.rows = gate_rows(x), p.x = x.in(), p.bias = float_data(bias);
  const OnDevice on(out);
  on.check("softplus_bias", step_gates_forward(p, by_rows(out).floats_out(), {}, on.stream()));
  if (saved) *saved = {x.x, bias};
  return {out};
}
Tensors softplus_bias_back(const op::SoftplusBias&, const Back& back) {
  const Held x = by_rows(back.saved[0]), d_out = by_rows(back.d_out[0]);
  const Tensor &bias = back.saved[1], dx = fresh_like(x.x), d_bias = fresh_like(bias);
  StepGates p;
  p.rows = gate_rows(x), p.x = x.in(), p.bias = float_data(bias);
  const Tensor memory = scratch(step_gates_scratch_bytes(p), dx);
  const OnDevice on(dx);
  on.check("softplus_bias", step_gates_backward(p, d_out.floats_in(), {}, by_rows(dx).out(), float_data(d_bias),
                                                nullptr, data(memory), on.stream()));
  return {dx, d_bias};
}

bool takes_softplus_decay(const op::SoftplusDecay&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable(in[2]);
}
// x, bias, A_log -> float32
Tensors softplus_decay(const op::SoftplusDecay&, const Tensors& in, Tensors* saved) {
  const Held x = by_rows(in[0]);
  const Tensor bias = floats(in[1]), A_log = floats(in[2]), out = fresh(in[0].sizes(), in[0], at::kFloat);
  StepGates p;
  p.rows = gate_rows(x), p.x = x.in(), p.bias = float_data(bias), p.A_log = float_data(A_log);
  const OnDevice on(out);
  on.check("softplus_decay", step_gates_forward(p, {}, by_rows(out).floats_out(), on.stream()));
  if (saved) *saved = {x.x, bias, A_log};
  return {out};
}
Tensors softplus_decay_back(const op::SoftplusDecay&, const Back& back) {
  const Held x = by_rows(back.saved[0]), d_out = by_rows(back.d_out[0]);
  const Tensor &bias = back.saved[1], &A_log = back.saved[2], dx = fresh_like(x.x), d_bias = fresh_like(bias);
  const Tensor d_A_log = fresh_like(A_log);
  StepGates p;
  p.rows = gate_rows(x), p.x = x.in(), p.bias = float_data(bias), p.A_log = float_data(A_log);
  const Tensor memory = scratch(step_gates_scratch_bytes(p), dx);
  const OnDevice on(dx);
  on.check("softplus_decay", step_gates_backward(p, {}, d_out.floats_in(), by_rows(dx).out(), float_data(d_bias),
                                                 float_data(d_A_log), data(memory), on.stream()));
  return {dx, d_bias, d_A_log};
}

bool takes_log_sigmoid(const op::LogSigmoid&, const Tensors& in) {
  return readable(in[0]);
}
// x -> float32
Tensors log_sigmoid(const op::LogSigmoid& op, const Tensors& in, Tensors* saved) {
  const Held x = by_rows(in[0]);
  const Tensor out = fresh(in[0].sizes(), in[0], at::kFloat);
  SigmoidGate p;
  p.rows = gate_rows(x), p.log = true, p.scale = static_cast<float>(op.scale), p.x = x.in();
  const OnDevice on(out);
  on.check("log_sigmoid", sigmoid_gate_forward(p, by_rows(out).floats_out(), on.stream()));
  if (saved) *saved = {x.x};
  return {out};
}
Tensors log_sigmoid_back(const op::LogSigmoid& op, const Back& back) {
  const Held x = by_rows(back.saved[0]), d_out = by_rows(back.d_out[0]);
  const Tensor dx = fresh_like(x.x);
  SigmoidGate p;
  p.rows = gate_rows(x), p.log = true, p.scale = static_cast<float>(op.scale), p.x = x.in();
  const OnDevice on(dx);
  on.check("log_sigmoid", sigmoid_gate_backward(p, d_out.floats_in(), by_rows(dx).out(), on.stream()));
  return {dx};
}

}  // namespace sb::cuda::bind
