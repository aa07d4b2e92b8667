#include "kernels/cuda/conv4.h"

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

template <class Void>
Frames<Void> frames(const Tensor& x) {
  return {data(x), x.stride(0), x.stride(1)};
}

Conv4 problem(const op::Conv4& op, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& tail) {
  Conv4 p;
  p.batch = static_cast<int>(x.size(0)), p.time = static_cast<int>(x.size(1)), p.channels = static_cast<int>(x.size(2));
  p.element = element_of(x), p.silu = op.silu, p.x = frames<const void>(x);
  p.weight = float_data(weight), p.bias = float_data(bias), p.tail = data(tail);
  return p;
}

}  // namespace

bool supports_conv4(const op::Conv4&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable_or_absent(in[2]) &&
         (!in[3].defined() || (readable(in[3]) && same_type(in[3], in[0])));
}

// x, weight, bias?, tail?
Tensors conv4(const op::Conv4& op, const Tensors& in, Tensors* saved) {
  const Tensor x = packed_last(in[0]), weight = floats(in[1]), bias = floats(in[2]), tail = contiguous(in[3]);
  const Tensor y = fresh(x.sizes(), x);
  const OnDevice on(x);
  on.check("conv4", conv4_forward(problem(op, x, weight, bias, tail), frames<void>(y), on.stream()));
  if (saved) *saved = {x, weight, bias, tail};
  return {y};
}

Tensors conv4_back(const op::Conv4& op, const Back& back) {
  const Tensor &x = back.saved[0], &weight = back.saved[1], &bias = back.saved[2], &tail = back.saved[3];
  const Tensor gy = packed_last(back.d_out[0]), dx = gradient_of(back, 0, x), d_weight = fresh_like(weight);
  const Tensor d_bias = bias.defined() ? fresh_like(bias) : Tensor();
  const Tensor d_tail = tail.defined() ? fresh_like(tail) : Tensor();
  const Conv4 p = problem(op, x, weight, bias, tail);
  const Tensor memory = scratch(conv4_scratch_bytes(p), x);
  const OnDevice on(x);
  on.check("conv4", conv4_backward(p, frames<const void>(gy), frames<void>(dx), float_data(d_weight),
                                   float_data(d_bias), data(d_tail), data(memory), on.stream()));
  return {dx, d_weight, d_bias, d_tail};
}

}  // namespace sb::cuda::bind
