#include "kernels/aten/chunks.h"
#include "kernels/operations.h"

namespace sb::aten {
using at::Tensor;

// q, k, v, erase, write, g?, state?
// With b the cumulative log-decay up to a row, and r that of the state which the row erases from (b, or b of the row
// before), the erased values R of a chunk with initial state S solve
//   (I + A) R = (e^r erase) S + E V,   A_ij = erase_i . e^(r_i - b_j) write_j,   E_ij = erase_i . e^(r_i - b_j) k_j,
// both for j < i. All exponents are <= 0. Then, with P_ij = q_i . e^(b_i - b_j) k_j and Q the same of write, j <= i:
//   O = (e^b q) S + P V - Q R;   S+ = e^b_end S + (e^(b_end - b) k)^T V - (e^(b_end - b) write)^T R
kernels::Tensors general_delta(const op::GeneralDelta& op, const kernels::Tensors& in, kernels::Tensors*) {
  const Tensor &v_in = in[2], &g = in[5], &state = in[6];
  const auto type = compute_type(v_in);
  const int64_t T = v_in.size(1), H = v_in.size(2);
  const auto chunks = [&](const Tensor& x) { return split_time(x, kChunk, type); };
  const Tensor q = chunks(in[0]) * op.scale, k = chunks(in[1]), v = chunks(v_in);
  const Tensor erase = chunks(in[3]), write = chunks(in[4]);
  const auto products = [](const Tensor& x, const Tensor& y) { return at::matmul(x, y.transpose(-1, -2)); };

  Tensor A, E, P, Q, reads = q, erase_reads = erase, k_left = k, write_left = write, total;
  if (!g.defined()) {
    A = products(erase, write).tril(-1);
    E = products(erase, k).tril(-1);
    P = products(q, k).tril();
    Q = products(q, write).tril();
  } else {
    const Tensor steps = split_time(g.dim() == 4 ? g : g.unsqueeze(-1), kChunk, at::kDouble);
    const Tensor b = cumulative(steps, 3), end = b.narrow(3, kChunk - 1, 1);
    // Shifted, not b - g: a difference would not be exactly b of the row before.
    const Tensor r = op.erase_first ? at::cat({at::zeros_like(end), b.narrow(3, 0, kChunk - 1)}, 3) : b;
    if (g.dim() == 4) {
      A = vector_pairs(erase, r, write, b, 1, type);
      E = vector_pairs(erase, r, k, b, 1, type);
      P = vector_pairs(q, b, k, b, 0, type);
      Q = vector_pairs(q, b, write, b, 0, type);
    } else {
      const Tensor before = decay_from(r.squeeze(-1), b.squeeze(-1), 1, type);
      const Tensor between = decay_from(b.squeeze(-1), b.squeeze(-1), 0, type);
      A = products(erase, write) * before;
      E = products(erase, k) * before;
      P = products(q, k) * between;
      Q = products(q, write) * between;
    }
    const Tensor left = (end - b).to(type).exp();
    reads = q * b.to(type).exp();
    erase_reads = erase * r.to(type).exp();
    k_left = k * left;
    write_left = write * left;
    total = end.to(type).exp().transpose(-1, -2);  // [..., K or 1, 1]
  }
  // R = U + W S
  const Tensor solved = at::linalg_solve_triangular(
      A + at::eye(kChunk, k.options()), at::cat({at::matmul(E, v), erase_reads}, -1), /*upper=*/false, /*left=*/true,
      /*unitriangular=*/true);
  const Tensor U = solved.narrow(-1, 0, v.size(4)), W = solved.narrow(-1, v.size(4), k.size(4));
  const Tensor added = at::matmul(k_left.transpose(-1, -2), v);
  Tensor S = state.defined() ? state.to(type) : at::zeros({v.size(0), H, k.size(4), v.size(4)}, v.options());
  std::vector<Tensor> entering, erased;
  for (int64_t c = 0; c < v.size(2); ++c) {
    entering.push_back(S);
    erased.push_back(U.select(2, c) + at::matmul(W.select(2, c), S));
    S = (total.defined() ? total.select(2, c) * S : S) + added.select(2, c) -
        at::matmul(write_left.select(2, c).transpose(-1, -2), erased.back());
  }
  if (entering.empty()) return {at::zeros_like(v_in), S};
  const Tensor out = at::matmul(reads, at::stack(entering, 2)) + at::matmul(P, v) - at::matmul(Q, at::stack(erased, 2));
  return {join_time(out, T, v_in.scalar_type()), S};
}

}  // namespace sb::aten
