// Uses libtorch's fused GRU cell for each frame. Forward: one product and one kernel per frame. Backward: one addition,
// one kernel and one product per frame; the gradients of weight and bias are one product and one sum over all frames.
// cuDNN's GRU for whole sequences is not suitable: it includes the product with the input weights, does not support a
// float32 state with bfloat16 gates, and its order of sums depends on cuBLAS's workspace.
#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {

// The cell does not support a lower bound of z.
bool supports_gru(const op::Gru& op, const Tensors& in) {
  return op.a_min <= 0 && readable(in[0]) && readable(in[1]) && !is_low(in[1]) && same_type(in[1], in[2]) &&
         same_type(in[1], in[3]);
}

// input gates, weight, bias, first state; all but the first are float32, and so is what comes out
Tensors gru(const op::Gru&, const Tensors& in, Tensors* saved) {
  const Tensor gates = in[0].transpose(0, 1).to(at::kFloat).contiguous();  // [T,B,3d]
  const Tensor weight = in[1].contiguous(), turned = weight.t(), bias = in[2];
  const int64_t time = gates.size(0);
  std::vector<Tensor> states = {in[3].contiguous()}, kept;
  for (int64_t t = 0; t < time; ++t) {
    const Tensor hidden = at::addmm(bias, states.back(), turned);
    auto [h, workspace] = at::_thnn_fused_gru_cell(gates.select(0, t), hidden, states.back());
    states.push_back(h);
    if (saved) kept.push_back(workspace);
  }
  if (saved) *saved = {at::stack(states), at::stack(kept), weight, in[0].new_empty({0})};
  states.erase(states.begin());
  return {at::stack(states, 1)};
}

Tensors gru_back(const op::Gru&, const Back& back) {
  const Tensor &states = back.saved[0], &kept = back.saved[1], &weight = back.saved[2];  // [T+1,B,d], [T,B,5d], [3d,d]
  const int64_t time = kept.size(0), batch = kept.size(1), d = weight.size(1);
  const Tensor d_out = back.d_out[0].transpose(0, 1).to(at::kFloat).contiguous();
  std::vector<Tensor> of_input(static_cast<size_t>(time)), of_hidden(static_cast<size_t>(time));
  Tensor d_state;  // of the state before frame t
  for (int64_t t = time - 1; t >= 0; --t) {
    const Tensor d_h = d_state.defined() ? d_out.select(0, t) + d_state : d_out.select(0, t);
    const auto found = at::_thnn_fused_gru_cell_backward(d_h, kept.select(0, t), /*has_bias=*/false);
    of_input[static_cast<size_t>(t)] = std::get<0>(found);
    of_hidden[static_cast<size_t>(t)] = std::get<1>(found);
    d_state = at::addmm(std::get<2>(found), std::get<1>(found), weight);
  }
  const Tensor rows = at::cat(of_hidden), before = states.narrow(0, 0, time).reshape({time * batch, d});
  const Tensor d_gates = at::stack(of_input, 1).to(back.saved[3].scalar_type());
  return {d_gates, at::mm(rows.t(), before), sum_of_rows(rows), d_state};
}

}  // namespace sb::cuda::bind
