#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// q, k, v, g, levels, state?
kernels::Tensors log_linear_attention(const op::LogLinearAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &v = in[2], &g = in[3], &levels = in[4];
  const int64_t H = v.size(2), K = in[0].size(3), blocks = levels.size(3) - 1;
  const at::Tensor q = in[0].repeat_interleave(H / in[0].size(2), 2), k = in[1].repeat_interleave(H / in[1].size(2), 2);
  std::vector<at::Tensor> S(static_cast<size_t>(blocks)), out;
  for (int64_t m = 0; m < blocks; ++m)
    S[static_cast<size_t>(m)] =
        in[5].defined() ? in[5].select(2, m) : at::zeros({v.size(0), H, K, v.size(3)}, v.options());
  for (int64_t t = 0; t < v.size(1); ++t) {
    const at::Tensor query = q.select(1, t).unsqueeze(-2), decay = g.select(1, t).exp().unsqueeze(-1).unsqueeze(-1);
    at::Tensor block = k.select(1, t).unsqueeze(-1) * v.select(1, t).unsqueeze(-2);
    const auto weight = [&](int64_t level) { return levels.select(1, t).select(-1, level).unsqueeze(-1); };
    at::Tensor read = weight(0) * at::matmul(query, block).squeeze(-2);
    for (int64_t m = 0; m < blocks; ++m) {
      at::Tensor& state = S[static_cast<size_t>(m)];
      state = state * decay;
      read = read + weight(m + 1) * at::matmul(query, state).squeeze(-2);
    }
    out.push_back(read);
    // The frame and all smaller full blocks join the block that the next position completes, as a carry in binary.
    const int64_t next = op.position + t + 1;
    int64_t m = 0;
    for (; m + 1 < blocks && next % (int64_t{2} << m) == 0; ++m) {
      block = block + S[static_cast<size_t>(m)];
      S[static_cast<size_t>(m)] = at::zeros_like(block);
    }
    S[static_cast<size_t>(m)] = S[static_cast<size_t>(m)] + block;
  }
  kernels::Tensors results = {out.empty() ? at::zeros_like(v) : at::stack(out, 1)};
  if (op.final_state) results.push_back(at::stack(S, 2));
  return results;
}

}  // namespace sb::naive
