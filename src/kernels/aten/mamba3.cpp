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
  const auto rotated = [&](size_t i) {
    const at::Tensor x = sb::rms_norm(in[i], in[i + 2], 1e-5).unsqueeze(2) + in[i + 4];
    return rotate_pairs(x, theta).to(in[i].scalar_type());
  };
  const at::Tensor k = rotated(0), q = rotated(1);
  return {k, q, last};
}

}  // namespace sb::aten
