#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// input gates, weight, bias, first state
kernels::Tensors gru(const op::Gru& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &input_gates = in[0], &weight = in[1], &bias = in[2];
  at::Tensor h = in[3];
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < input_gates.size(1); ++t) {
    const auto gi = input_gates.select(1, t).chunk(3, -1), gh = at::linear(h, weight, bias).chunk(3, -1);
    const at::Tensor r = at::sigmoid(gi[0] + gh[0]), z = at::sigmoid(gi[1] + gh[1]).clamp_min(op.a_min);
    const at::Tensor n = at::tanh(gi[2] + r * gh[2]);
    h = n + z * (h - n);
    out.push_back(h);
  }
  return {at::stack(out, 1)};
}

}  // namespace sb::naive
