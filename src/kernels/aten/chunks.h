// Helpers for the chunk algorithms in ATen operations. Half-precision types are computed in float32.
#pragma once
#include <ATen/ATen.h>

#include <limits>
#include <vector>

#include "kernels/least_log_decay.h"
#include "kernels/matmul.h"

namespace sb::aten {

inline constexpr int64_t kChunk = 64;

inline at::ScalarType compute_type(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// a [...,M,K] b [...,K,N] with equal leading sizes. For ATen forms that also run on a CPU: at::matmul's sums
// depend on the number of threads there.
inline at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (!a.device().is_cpu()) return at::matmul(a, b);
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(-1);
  const auto matrices = [](const at::Tensor& x) { return x.flatten(0, -3); };
  return sb::batched_product(matrices(a), matrices(b)).view(sizes);
}

// [B,T,H,...] to [B,H,chunks,length,...], with the time axis padded by zeros
inline at::Tensor split_time(const at::Tensor& x, int64_t length, at::ScalarType type) {
  const int64_t T = x.size(1), chunks = (T + length - 1) / length;
  at::Tensor y = x.to(type).transpose(1, 2);
  if (chunks * length != T) {
    std::vector<int64_t> rest = y.sizes().vec();
    rest[2] = chunks * length - T;
    y = at::cat({y, at::zeros(rest, y.options())}, 2);
  }
  std::vector<int64_t> sizes = {y.size(0), y.size(1), chunks, length};
  for (int64_t axis = 3; axis < y.dim(); ++axis) sizes.push_back(y.size(axis));
  return y.reshape(sizes);
}

// Inverse of split_time, without the padding: [B,H,chunks,length,V] to [B,T,H,V]
inline at::Tensor join_time(const at::Tensor& x, int64_t T, at::ScalarType type) {
  return x.flatten(2, 3).narrow(2, 0, T).transpose(1, 2).to(type);
}

// exp(x_i - y_j) for j <= i - gap, else 0; x, y [..., n] hold cumulative log-decays in double.
inline at::Tensor decay_from(const at::Tensor& x, const at::Tensor& y, int64_t gap, at::ScalarType type) {
  const int64_t n = x.size(-1);
  const at::Tensor outside = at::ones({n, n}, x.options().dtype(at::kBool)).triu(1 - gap);
  return (x.unsqueeze(-1) - y.unsqueeze(-2))
      .masked_fill(outside, -std::numeric_limits<double>::infinity())
      .to(type)
      .exp();
}
inline at::Tensor decay_between(const at::Tensor& x, at::ScalarType type) {
  return decay_from(x, x, 0, type);
}

// Cumulative log-decay inside a chunk, along dim. Uses double, since differences of large sums must stay accurate.
inline at::Tensor cumulative(const at::Tensor& g, int64_t dim) {
  return g.to(at::kDouble).clamp_min(kLeastLogDecay).cumsum(dim);
}

// left_i . exp(from_i - to_j) right_j for j <= i - gap, else 0, if every key channel has its own cumulative log-decays
// [B,H,chunks,64,K], in blocks of 16 rows. `from` is `to`, or `to` one row later and zeros in the first row (gap 1).
// For a block of rows I and all earlier rows, both exponents, relative to the row before I, are <= 0. Diagonal blocks
// are computed directly.
inline at::Tensor vector_pairs(const at::Tensor& left, const at::Tensor& from, const at::Tensor& right,
                               const at::Tensor& to, int64_t gap, at::ScalarType type) {
  constexpr int64_t kRows = 16;
  const int64_t C = left.size(3);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < C; i += kRows) {
    const at::Tensor li = left.narrow(3, i, kRows), fi = from.narrow(3, i, kRows);
    std::vector<at::Tensor> blocks;
    if (i > 0) {
      const at::Tensor reference = to.narrow(3, i - 1, 1);
      const at::Tensor l = li * (fi - reference).to(type).exp();
      const at::Tensor r = right.narrow(3, 0, i) * (reference - to.narrow(3, 0, i)).to(type).exp();
      blocks.push_back(at::matmul(l, r.transpose(-1, -2)));
    }
    const at::Tensor decay =
        decay_from(fi.transpose(-1, -2), to.narrow(3, i, kRows).transpose(-1, -2), gap, type);  // [..., K, 16, 16]
    const at::Tensor products =
        li.transpose(-1, -2).unsqueeze(-1) * right.narrow(3, i, kRows).transpose(-1, -2).unsqueeze(-2);
    blocks.push_back((products * decay).sum(-3));
    if (i + kRows < C) {
      std::vector<int64_t> rest = blocks.back().sizes().vec();
      rest.back() = C - i - kRows;
      blocks.push_back(at::zeros(rest, blocks.back().options()));
    }
    rows.push_back(at::cat(blocks, -1));
  }
  return at::cat(rows, -2);
}

}  // namespace sb::aten
