#include <ATen/ATen.h>

#include "kernels/aten/chunks.h"
#include "kernels/elementwise.h"
#include "kernels/operations.h"

namespace sb::aten {

using kernels::Tensors;

Tensors gate_silu(const op::GateSilu&, const Tensors& in, Tensors*) {
  return {in[0] * sb::silu(in[1])};
}
Tensors gate_swish(const op::GateSwish&, const Tensors& in, Tensors*) {
  const auto half = in[0].chunk(2, -1);
  return {(half[0] * sb::sigmoid(in[1] * half[0]) * half[1]).to(in[0].scalar_type())};
}
Tensors softplus_bias(const op::SoftplusBias&, const Tensors& in, Tensors*) {
  return {sb::softplus(in[0] + in[1])};
}
// The next functions call public functions, so that the device can use their kernels.
Tensors gate_sigmoid(const op::GateSigmoid& op, const Tensors& in, Tensors*) {
  return {(in[0] * sb::sigmoid_gate(in[1], op.scale)).to(in[0].scalar_type())};
}
Tensors sigmoid_norm(const op::SigmoidNorm& op, const Tensors& in, Tensors*) {
  return {sb::gate_sigmoid(sb::rms_norm(in[0], in[1], op.eps), in[2])};
}
Tensors hgrn2_keys(const op::Hgrn2Keys&, const Tensors& in, Tensors*) {
  const at::Tensor logits = in[1].to(compute_type(in[1]));
  // sigma(-x) is 1 - sigma(x) without cancellation
  return {sb::silu(in[0]), sb::sigmoid(-logits).to(in[1].scalar_type()), sb::log_sigmoid(logits, 1)};
}
Tensors softplus_decay(const op::SoftplusDecay&, const Tensors& in, Tensors*) {
  return {sb::softplus_bias(in[0], in[1]) * -in[2].exp()};
}
Tensors softplus_gates(const op::SoftplusGates&, const Tensors& in, Tensors*) {
  return {sb::softplus_bias(in[0], in[1]), sb::softplus_decay(in[0], in[1], in[2])};
}
Tensors scale_heads(const op::ScaleHeads&, const Tensors& in, Tensors*) {
  return {(in[0] * in[1].unsqueeze(-1)).to(in[0].scalar_type())};
}
Tensors delta_keys(const op::DeltaKeys&, const Tensors& in, Tensors*) {
  return {in[0], sb::scale_heads(in[0], in[1])};
}
Tensors skip_norm(const op::SkipNorm& op, const Tensors& in, Tensors*) {
  const at::Tensor y = (in[0] + in[2].unsqueeze(-1) * in[1]).to(in[1].scalar_type());
  return {gate_then_rms_norm(y.flatten(-2), in[3], in[4], op.eps)};
}
Tensors log_sigmoid(const op::LogSigmoid& op, const Tensors& in, Tensors*) {
  // On a GPU, log-decays are float32, as those of the CUDA kernels.
  const at::Tensor x = in[0].is_cuda() && in[0].scalar_type() == at::kBFloat16 ? in[0].to(at::kFloat) : in[0];
  return {at::log_sigmoid(x) * op.scale};
}
Tensors sigmoid_gate(const op::SigmoidGate& op, const Tensors& in, Tensors*) {
  const bool half = in[0].scalar_type() == at::kBFloat16 || in[0].scalar_type() == at::kHalf;
  const at::Tensor y = sb::sigmoid(half ? in[0].to(at::kFloat) : in[0]);
  return {op.scale == 1 ? y : y * op.scale};
}

}  // namespace sb::aten
