#include "kernels/aten/chunks.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"

namespace sb::aten {
using at::Tensor;

// q, k, v, g?, state?
kernels::Tensors decayed_attention(const op::DecayedAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const Tensor &q_in = in[0], &k_in = in[1], &v_in = in[2], &g = in[3], &state = in[4];
  const auto type = compute_type(v_in);
  const int64_t T = v_in.size(1), H = v_in.size(2), per_group = H / q_in.size(2);
  const auto heads = [&](const Tensor& x) { return per_group == 1 ? x : x.repeat_interleave(per_group, 2); };
  const Tensor q = split_time(heads(q_in), kChunk, type) * op.scale;
  const Tensor k = split_time(heads(k_in), kChunk, type);
  const Tensor v = split_time(v_in, kChunk, type);

  Tensor P, reads = q, writes = k, total;
  if (!g.defined()) {
    P = at::matmul(q, k.transpose(-1, -2)).tril();
  } else if (g.dim() == 4) {
    const Tensor b = cumulative(split_time(g, kChunk, at::kDouble), 3);
    const Tensor end = b.narrow(3, kChunk - 1, 1);
    P = vector_pairs(q, b, k, b, 0, type);
    reads = q * b.to(type).exp();
    writes = k * (end - b).to(type).exp();
    total = end.to(type).exp().transpose(-1, -2);
  } else {
    // Time padding has g = 0, so the last chunk's state is that after the last real step.
    const Tensor steps = g.dim() == 1 ? g.view({1, 1, H}).expand({v_in.size(0), T, H}) : g;
    const Tensor b = cumulative(split_time(steps, kChunk, at::kDouble), 3);
    const Tensor end = b.narrow(3, kChunk - 1, 1);
    P = at::matmul(q, k.transpose(-1, -2)) * decay_between(b, type);
    reads = q * b.to(type).exp().unsqueeze(-1);
    writes = k * (end - b).to(type).exp().unsqueeze(-1);
    total = end.to(type).exp().unsqueeze(-1);
  }
  const Tensor added = at::matmul(writes.transpose(-1, -2), v);
  Tensor S = state.defined() ? state.to(type) : at::zeros({v.size(0), H, q.size(4), v.size(4)}, v.options());
  std::vector<Tensor> entering;
  for (int64_t c = 0; c < v.size(2); ++c) {
    entering.push_back(S);
    S = (total.defined() ? total.select(2, c) * S : S) + added.select(2, c);
  }
  if (entering.empty()) return {at::zeros_like(v_in), S};
  const Tensor out = at::matmul(P, v) + at::matmul(reads, at::stack(entering, 2));
  return {join_time(out, T, v_in.scalar_type()), S};
}

// Calls the public functions, so that the device can use their kernels.
kernels::Tensors written_attention(const op::WrittenAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const Tensor &x = in[2], &skip = in[5];
  const OutAndState read = sb::decayed_attention(in[0], in[1], sb::scale_heads(x, in[4]), in[3], op.scale, in[6]);
  return {(read.out + skip.unsqueeze(-1) * x).to(x.scalar_type()), read.state};
}

}  // namespace sb::aten
