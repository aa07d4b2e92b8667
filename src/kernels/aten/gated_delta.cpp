#include "kernels/aten/chunks.h"
#include "kernels/operations.h"

namespace sb::aten {
using at::Tensor;

// q, k, v, beta, g?, state?
kernels::Tensors gated_delta(const op::GatedDelta& op, const kernels::Tensors& in, kernels::Tensors*) {
  const Tensor &q_in = in[0], &k_in = in[1], &v_in = in[2], &beta_in = in[3], &g = in[4], &state = in[5];
  const auto type = compute_type(v_in);
  const int64_t T = q_in.size(1), H = q_in.size(2), n = k_in.size(2);
  const int64_t tokens = std::max<int64_t>(1, kChunk / n), rows = tokens * n;
  // Rows of a chunk: its tokens, and the factors of each.
  const Tensor q = split_time(q_in, tokens, type) * op.scale;
  const Tensor k = split_time(k_in.flatten(1, 2), rows, type);
  const Tensor v = split_time(v_in.flatten(1, 2), rows, type);
  const Tensor beta = split_time(beta_in.flatten(1, 2), rows, type).unsqueeze(-1);

  const Tensor row_number = at::arange(rows, k.options().dtype(at::kLong));
  const Tensor last_row = at::arange(tokens, row_number.options()) * n + (n - 1);
  Tensor A = at::matmul(k, k.transpose(-1, -2));
  Tensor P = at::matmul(q, k.transpose(-1, -2)).masked_fill(row_number.unsqueeze(0) > last_row.unsqueeze(1), 0);
  Tensor reads = q, keys_read = k, keys_write = k, total;
  if (g.defined()) {
    const Tensor token_decay = cumulative(split_time(g, tokens, at::kDouble), 3);
    const Tensor b = n == 1 ? token_decay : token_decay.repeat_interleave(n, 3);
    const Tensor end = b.narrow(3, rows - 1, 1);
    const Tensor decay = decay_between(b, type);
    A = A * decay;
    P = P * (n == 1 ? decay : decay.index_select(3, last_row));
    reads = q * token_decay.to(type).exp().unsqueeze(-1);
    keys_read = k * b.to(type).exp().unsqueeze(-1);
    keys_write = k * (end - b).to(type).exp().unsqueeze(-1);
    total = end.to(type).exp().unsqueeze(-1);
  }
  // (I + A) [U W] = beta [V, decayed K]
  const Tensor solved =
      at::linalg_solve_triangular((beta * A).tril(-1) + at::eye(rows, k.options()),
                                  at::cat({beta * v, beta * keys_read}, -1), /*upper=*/false, /*left=*/true,
                                  /*unitriangular=*/true);
  const Tensor U = solved.narrow(-1, 0, v.size(4)), W = solved.narrow(-1, v.size(4), k.size(4));
  Tensor S = state.defined() ? state.to(type) : at::zeros({q.size(0), H, k.size(4), v.size(4)}, v.options());
  std::vector<Tensor> entering, corrected;
  for (int64_t c = 0; c < k.size(2); ++c) {
    entering.push_back(S);
    corrected.push_back(U.select(2, c) - at::matmul(W.select(2, c), S));
    S = (total.defined() ? total.select(2, c) * S : S) +
        at::matmul(keys_write.select(2, c).transpose(-1, -2), corrected.back());
  }
  if (entering.empty()) return {at::zeros({q.size(0), 0, H, v.size(4)}, v_in.options()), S};
  const Tensor out = at::matmul(reads, at::stack(entering, 2)) + at::matmul(P, at::stack(corrected, 2));
  return {join_time(out, T, v_in.scalar_type()), S};
}

}  // namespace sb::aten
