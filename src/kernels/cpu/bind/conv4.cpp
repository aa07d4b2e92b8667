#include "kernels/cpu/conv4.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

// weight [C,1,4] as four rows of C; bias as a fifth (zeros if absent)
Tensor rows_of_weight(const Tensor& weight, const Tensor& bias) {
  const Tensor w = at::zeros({5, weight.size(0)}, weight.options());
  w.narrow(0, 0, 4).copy_(weight.reshape({-1, 4}).t());
  if (bias.defined()) w.select(0, 4).copy_(bias);
  return w;
}

template <class T>
Conv4Input<T> conv4_input(const op::Conv4& op, const Tensor& x, const Tensor& tail, const Tensor& w) {
  return {x.size(0),       x.size(1), x.size(2), x.data_ptr<T>(), x.stride(0), x.stride(1), data_or_null<T>(tail),
          w.data_ptr<T>(), op.silu};
}

}  // namespace

// x, weight, bias?, tail?
Tensors conv4(const op::Conv4& op, const Tensors& in, Tensors* saved) {
  const Tensor x = in[0].stride(2) == 1 ? in[0] : in[0].contiguous(), tail = contiguous(in[3]);
  const Tensor w = rows_of_weight(in[1], in[2]), y = fresh_like(x);
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    conv4_forward(conv4_input<T>(op, x, tail, w), y.data_ptr<T>());
  });
  if (saved) *saved = {x, in[1], in[2], tail};
  return {y};
}

Tensors conv4_back(const op::Conv4& op, const kernels::Back& back) {
  const Tensor &x = back.saved[0], &weight = back.saved[1], &bias = back.saved[2], &tail = back.saved[3];
  const Tensor gy = back.d_out[0].contiguous(), w = rows_of_weight(weight, bias), dx = gradient_of(back, 0, x);
  const Tensor d_tail = tail.defined() ? fresh_like(tail) : Tensor();
  const Tensor parts = fresh({conv4_slots(x.size(0)), 5, x.size(2)}, x.options());
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    conv4_backward(conv4_input<T>(op, x, tail, w), gy.data_ptr<T>(), {dx.data_ptr<T>(), dx.stride(0), dx.stride(1)},
                   data_or_null<T>(d_tail), parts.data_ptr<T>());
  });
  const Tensor dw = sum_in_order(parts);
  return {dx, dw.narrow(0, 0, 4).t().reshape(weight.sizes()), bias.defined() ? dw.select(0, 4) : Tensor(), d_tail};
}

}  // namespace sb::cpu
