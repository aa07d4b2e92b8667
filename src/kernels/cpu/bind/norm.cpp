#include "kernels/cpu/norm.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

// A gated norm always has a gain.
Tensor gain_for(const op::RowNorm& op, const Tensor& gain, const Tensor& x) {
  if (gain.defined()) return gain.contiguous();
  return op.gate == NormGate::none ? gain : at::ones({x.size(-1)}, x.options());
}

// The tensors of a norm and its rows.
template <class T>
struct NormInput {
  Rows<T> x, gate;
  NormRows<T> rows;
  NormInput(const op::RowNorm& op, const Tensor& x_in, const Tensor& gain, const Tensor& gate_in)
      : x(x_in), gate(op.gate == NormGate::none ? x_in : gate_in), rows{op.norm,       op.gate,
                                                                        op.eps,        x.count(),
                                                                        x_in.size(-1), x.starts(),
                                                                        gate.starts(), data_or_null<T>(gain)} {}
};

}  // namespace

// x, gain?, gate?
Tensors row_norm(const op::RowNorm& op, const Tensors& in, Tensors* saved) {
  const Tensor &x = in[0], gain = gain_for(op, in[1], x);
  const int64_t n = x.size(-1);
  const Tensor y = fresh_like(x), scales = fresh({n == 0 ? 0 : x.numel() / n}, x.options());
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    norm_forward(NormInput<T>(op, x, gain, in[2]).rows, y.data_ptr<T>(), scales.data_ptr<T>());
  });
  if (saved) *saved = {x, in[1], in[2], scales};
  return {y};
}

Tensors row_norm_back(const op::RowNorm& op, const kernels::Back& back) {
  const Tensor &x = back.saved[0], &gain_in = back.saved[1], &gate = back.saved[2], &scales = back.saved[3];
  const bool gated = op.gate != NormGate::none;
  const Tensor gain = gain_for(op, gain_in, x), dx = row_gradient_of(back, 0, x),
               d_gate = gated ? row_gradient_of(back, 2, x) : dx;
  const Tensor d_gain = gain_in.defined() ? fresh({x.size(-1)}, x.options()) : Tensor();
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    const Rows<T> gy(back.d_out[0]), to_x(dx), to_gate(d_gate);
    norm_backward(NormInput<T>(op, x, gain, gate).rows, gy.starts(), scales.data_ptr<T>(), to_x.targets(),
                  to_gate.targets(), data_or_null<T>(d_gain));
  });
  return {dx, d_gain, gated ? d_gate : Tensor()};
}

}  // namespace sb::cpu
