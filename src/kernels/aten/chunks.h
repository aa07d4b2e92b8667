// Helpers for the chunk algorithms in ATen operations. Half-precision types are computed in float32.
#pragma once
#include <ATen/ATen.h>

#include <limits>
#include <vector>

namespace sb::aten {

inline constexpr int64_t kChunk = 64;

inline at::ScalarType compute_type(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
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

// exp(x_i - x_j) for j <= i, else 0; x [..., n] holds cumulative log-decays in double.
inline at::Tensor decay_between(const at::Tensor& x, at::ScalarType type) {
  const int64_t n = x.size(-1);
  const at::Tensor above = at::ones({n, n}, x.options().dtype(at::kBool)).triu(1);
  return (x.unsqueeze(-1) - x.unsqueeze(-2))
      .masked_fill(above, -std::numeric_limits<double>::infinity())
      .to(type)
      .exp();
}

// Cumulative log-decay inside a chunk, along dim. Uses double, since differences of large sums must stay accurate.
// Clamps each log-decay at -800, where the factor is 0 in every type, to keep the sums finite.
inline at::Tensor cumulative(const at::Tensor& g, int64_t dim) {
  return g.to(at::kDouble).clamp_min(-800).cumsum(dim);
}

}  // namespace sb::aten
