#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/norms.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

// A norm's rows and the tensors that hold them
struct NormInput {
  Held x, gate;
  RowNorm p;
  NormInput(NormKind kind, NormGate gate_kind, double eps, const Tensor& x_in, const Tensor& gain,
            const Tensor& gate_in)
      : x(by_heads(x_in)) {
    p.tokens = x.tokens, p.heads = x.heads, p.width = x.width;
    p.element = element_of(x_in);
    p.kind = kind, p.gate = gate_kind;
    p.eps = static_cast<float>(eps);
    p.gain = float_data(gain);
    p.x = x.in();
    if (gate_kind != NormGate::none) {
      gate = by_heads(gate_in);
      p.z = gate.in();
    }
  }
};

NormInput norm_input(const op::RowNorm& op, const Tensor& x, const Tensor& gain, const Tensor& gate) {
  const NormKind kind = op.norm == Norm::rms         ? NormKind::rms
                        : op.norm == Norm::outer_eps ? NormKind::outer_eps
                                                     : NormKind::l2;
  const NormGate gate_kind = op.gate == sb::NormGate::none    ? NormGate::none
                             : op.gate == sb::NormGate::after ? NormGate::after
                                                              : NormGate::before;
  return {kind, gate_kind, op.eps, x, gain, gate};
}
NormInput norm_input(const op::SigmoidNorm& op, const Tensor& x, const Tensor& gain, const Tensor& gate) {
  return {NormKind::rms, NormGate::sigmoid, op.eps, x, gain, gate};
}

// Gradients of x, gain and gate
Tensors norm_gradients(const char* where, const NormInput& rows, const Back& back) {
  const Tensor &x = back.saved[0], &gain = back.saved[1], &gate = back.saved[2];
  const Held gy = by_heads(back.d_out[0]);
  const Tensor dx = gradient_by_heads(back, 0, x), dz = gate.defined() ? gradient_by_heads(back, 2, x) : Tensor();
  const Tensor d_gain = gain.defined() ? fresh_like(gain) : Tensor();
  const Tensor memory = scratch(row_norm_scratch_bytes(rows.p), x);
  const OnDevice on(x);
  on.check(where, row_norm_backward(rows.p, gy.in(), by_heads(dx).out(), dz.defined() ? by_heads(dz).out() : RowsOut{},
                                    float_data(d_gain), data(memory), on.stream()));
  return {dx, d_gain, dz};
}

}  // namespace

bool supports_row_norm(const op::RowNorm&, const Tensors& in) {
  return readable(in[0]) && in[0].size(-1) <= kMaxNormWidth && readable_or_absent(in[1]) &&
         (!in[2].defined() || (readable(in[2]) && same_type(in[2], in[0])));
}

// x, gain?, gate?
Tensors row_norm(const op::RowNorm& op, const Tensors& in, Tensors* saved) {
  const Tensor &x = in[0], gain = floats(in[1]), y = fresh_like(x);
  NormInput rows = norm_input(op, x, gain, in[2]);
  // For a plain l2 norm, saves the result instead of x. The next operation keeps the result anyway, so x can be freed.
  const bool unit = saved && op.norm == Norm::l2 && op.gate == sb::NormGate::none && !gain.defined();
  const Tensor scales = unit ? fresh({rows.p.tokens, rows.p.heads}, x, at::kFloat) : Tensor();
  rows.p.scales = float_data(scales);
  const OnDevice on(x);
  on.check("row_norm", row_norm_forward(rows.p, by_heads(y).out(), on.stream()));
  if (saved) *saved = {unit ? y : rows.x.x, gain, rows.gate.x, scales};
  return {y};
}

Tensors row_norm_back(const op::RowNorm& op, const Back& back) {
  NormInput rows = norm_input(op, back.saved[0], back.saved[1], back.saved[2]);
  rows.p.scales = float_data(back.saved[3]);
  return norm_gradients("row_norm", rows, back);
}

// x, gain, gate
bool supports_sigmoid_norm(const op::SigmoidNorm&, const Tensors& in) {
  return readable(in[0]) && in[0].size(-1) <= kMaxNormWidth && readable(in[1]) && readable(in[2]) &&
         same_type(in[2], in[0]);
}
Tensors sigmoid_norm(const op::SigmoidNorm& op, const Tensors& in, Tensors* saved) {
  const Tensor gain = floats(in[1]), y = fresh_like(in[0]);
  const NormInput rows = norm_input(op, in[0], gain, in[2]);
  const OnDevice on(y);
  on.check("rms_norm_then_sigmoid", row_norm_forward(rows.p, by_heads(y).out(), on.stream()));
  if (saved) *saved = {rows.x.x, gain, rows.gate.x};
  return {y};
}
Tensors sigmoid_norm_back(const op::SigmoidNorm& op, const Back& back) {
  return norm_gradients("rms_norm_then_sigmoid", norm_input(op, back.saved[0], back.saved[1], back.saved[2]), back);
}

}  // namespace sb::cuda::bind
