#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {

using kernels::Tensors;

Tensors gate_silu(const op::GateSilu&, const Tensors& in, Tensors*) {
  return {in[0] * at::silu(in[1])};
}
Tensors gate_swish(const op::GateSwish&, const Tensors& in, Tensors*) {
  const auto half = in[0].chunk(2, -1);
  return {(half[0] * at::sigmoid(in[1] * half[0]) * half[1]).to(in[0].scalar_type())};
}
Tensors softplus_bias(const op::SoftplusBias&, const Tensors& in, Tensors*) {
  return {at::softplus(in[0] + in[1])};
}
Tensors log_sigmoid(const op::LogSigmoid& op, const Tensors& in, Tensors*) {
  // On a GPU log-decays are float32, as its kernels make them.
  const at::Tensor x = in[0].is_cuda() && in[0].scalar_type() == at::kBFloat16 ? in[0].to(at::kFloat) : in[0];
  return {at::log_sigmoid(x) * op.scale};
}

}  // namespace sb::aten
