#include <ATen/ATen.h>

#include "kernels/aten/chunks.h"
#include "kernels/elementwise.h"
#include "kernels/operations.h"

namespace sb::aten {

// dt, rate, trap, bias -> step, decay, here, before. Calls a public function, so that the device can use its kernel.
kernels::Tensors mamba3_gates(const op::Mamba3Gates&, const kernels::Tensors& in, kernels::Tensors*) {
  const auto inner = compute_type(in[0]);
  const at::Tensor step = sb::softplus_bias(in[0].to(inner), in[3].to(inner));
  const at::Tensor rate = in[1].to(inner);
  // 1 / (1 - u) has no pole where it is used, u < 0.
  const at::Tensor f = at::where(rate >= 0, 1 + rate, 1 / (1 - rate.clamp_max(0)));
  const at::Tensor decay = -f.clamp_min(1e-4) * step;
  const at::Tensor here = sb::sigmoid(in[2].to(inner)) * step, before = step - here;
  return {step, decay, here, before};
}

// key, query, key_gain, query_gain, key_bias, query_bias, turn, step, angle? -> k, q, angle
// Angles are summed in double: they grow with the sequence.
kernels::Tensors mamba3_keys(const op::Mamba3Keys&, const kernels::Tensors& in, kernels::Tensors*) {
  constexpr double pi = 0x1.921fb54442d18p+1;
  const auto turn = in[6].to(compute_type(in[6]));
  const at::Tensor steps = pi * at::tanh(turn).unsqueeze(2) * in[7].unsqueeze(-1);
  at::Tensor theta = steps.to(at::kDouble).cumsum(1);
  if (in[8].defined()) theta = theta + in[8].unsqueeze(1);
  const at::Tensor last = theta.select(1, theta.size(1) - 1);
  const auto normed = [&](size_t i) { return sb::rms_norm(in[i], in[i + 2], 1e-5); };
  const auto [k, q] = sb::rotated_keys(normed(0), normed(1), in[4], in[5], theta);
  return {k.to(in[0].scalar_type()), q.to(in[1].scalar_type()), last};
}

// read, q, k, v, here, skip?
kernels::Tensors own_write(const op::OwnWrite& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &v = in[3], &skip = in[5];
  const auto type = v.scalar_type();
  const at::Tensor own = (in[1] * in[2]).sum(-1, true) * in[4].unsqueeze(-1) * op.scale;
  const at::Tensor out = (in[0] + own * v).to(type);
  return {skip.defined() ? (out + skip.unsqueeze(-1) * v).to(type) : out};
}

// key, query, key_bias, query_bias, angle -> k, q
kernels::Tensors rotated_keys(const op::RotatedKeys&, const kernels::Tensors& in, kernels::Tensors*) {
  return {rotate_pairs(in[0].unsqueeze(2) + in[2], in[4]), rotate_pairs(in[1].unsqueeze(2) + in[3], in[4])};
}

}  // namespace sb::aten
