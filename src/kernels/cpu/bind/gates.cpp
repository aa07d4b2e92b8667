#include "kernels/cpu/gates.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

Tensors gate_silu(const op::GateSilu&, const Tensors& in, Tensors* saved) {
  const Tensor out = fresh_like(in[0]);
  with_type_of(out, [&](auto type) {
    using T = decltype(type);
    const Rows<T> y(in[0]), z(in[1]);
    gate_silu_forward(y.count(), y.width(), y.starts(), z.starts(), out.data_ptr<T>());
  });
  if (saved) *saved = in;
  return {out};
}
Tensors gate_silu_back(const op::GateSilu&, const kernels::Back& back) {
  const Tensor dy = fresh_like(back.saved[0]), dz = fresh_like(dy);
  with_type_of(dy, [&](auto type) {
    using T = decltype(type);
    const Rows<T> g(back.d_out[0]), y(back.saved[0]), z(back.saved[1]);
    gate_silu_backward(y.count(), y.width(), g.starts(), y.starts(), z.starts(), dy.data_ptr<T>(), dz.data_ptr<T>());
  });
  return {dy, dz};
}

// y, z
Tensors gate_sigmoid(const op::GateSigmoid& op, const Tensors& in, Tensors* saved) {
  const Tensor out = fresh_like(in[0]);
  with_type_of(out, [&](auto type) {
    using T = decltype(type);
    const Rows<T> y(in[0]), z(in[1]);
    gate_sigmoid_forward(y.count(), y.width(), y.starts(), z.starts(), static_cast<T>(op.scale), out.data_ptr<T>());
  });
  if (saved) *saved = in;
  return {out};
}
Tensors gate_sigmoid_back(const op::GateSigmoid& op, const kernels::Back& back) {
  const Tensor dy = row_gradient_of(back, 0, back.saved[0]), dz = row_gradient_of(back, 1, back.saved[1]);
  with_type_of(dy, [&](auto type) {
    using T = decltype(type);
    const Rows<T> g(back.d_out[0]), y(back.saved[0]), z(back.saved[1]), to_y(dy), to_z(dz);
    gate_sigmoid_backward(y.count(), y.width(), g.starts(), y.starts(), z.starts(), static_cast<T>(op.scale),
                          to_y.targets(), to_z.targets());
  });
  return {dy, dz};
}

// ab, beta
Tensors gate_swish(const op::GateSwish&, const Tensors& in, Tensors* saved) {
  std::vector<int64_t> sizes = in[0].sizes().vec();
  sizes.back() /= 2;
  const Tensor out = fresh(sizes, in[0].options());
  with_type_of(out, [&](auto type) {
    using T = decltype(type);
    const Rows<T> ab(in[0]);
    gate_swish_forward(ab.count(), ab.width() / 2, ab.starts(), *in[1].data_ptr<T>(), out.data_ptr<T>());
  });
  if (saved) *saved = in;
  return {out};
}
Tensors gate_swish_back(const op::GateSwish&, const kernels::Back& back) {
  const Tensor &ab = back.saved[0], &beta = back.saved[1], d_ab = fresh_like(ab);
  const double d_beta = with_type_of(ab, [&](auto type) {
    using T = decltype(type);
    const Rows<T> g(back.d_out[0]), rows(ab);
    return gate_swish_backward(rows.count(), rows.width() / 2, g.starts(), rows.starts(), *beta.data_ptr<T>(),
                               d_ab.data_ptr<T>());
  });
  return {d_ab, at::full(beta.sizes(), d_beta, beta.options())};
}

// x, bias
Tensors softplus_bias(const op::SoftplusBias&, const Tensors& in, Tensors* saved) {
  const Tensor bias = in[1].contiguous(), out = fresh_like(in[0]);
  with_type_of(out, [&](auto type) {
    using T = decltype(type);
    const Rows<T> x(in[0]);
    softplus_bias_forward(x.count(), x.width(), x.starts(), bias.data_ptr<T>(), out.data_ptr<T>());
  });
  if (saved) *saved = {in[0], bias};
  return {out};
}
Tensors softplus_bias_back(const op::SoftplusBias&, const kernels::Back& back) {
  const Tensor &x_in = back.saved[0], &bias = back.saved[1], dx = fresh_like(x_in), d_bias = fresh_like(bias);
  with_type_of(dx, [&](auto type) {
    using T = decltype(type);
    const Rows<T> g(back.d_out[0]), x(x_in);
    softplus_bias_backward(x.count(), x.width(), g.starts(), x.starts(), bias.data_ptr<T>(), dx.data_ptr<T>(),
                           d_bias.data_ptr<T>());
  });
  return {dx, d_bias};
}

Tensors log_sigmoid(const op::LogSigmoid& op, const Tensors& in, Tensors* saved) {
  const Tensor out = fresh_like(in[0]);
  with_type_of(out, [&](auto type) {
    using T = decltype(type);
    const Rows<T> x(in[0]);
    log_sigmoid_forward(x.count(), x.width(), x.starts(), static_cast<T>(op.scale), out.data_ptr<T>());
  });
  if (saved) *saved = in;
  return {out};
}
Tensors log_sigmoid_back(const op::LogSigmoid& op, const kernels::Back& back) {
  const Tensor dx = fresh_like(back.saved[0]);
  with_type_of(dx, [&](auto type) {
    using T = decltype(type);
    const Rows<T> g(back.d_out[0]), x(back.saved[0]);
    log_sigmoid_backward(x.count(), x.width(), g.starts(), x.starts(), static_cast<T>(op.scale), dx.data_ptr<T>());
  });
  return {dx};
}

}  // namespace sb::cpu
