#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/aten/chunks.h"
#include "kernels/operations.h"

namespace sb::aten {
namespace {

constexpr int64_t kMaxForgettingScores = int64_t{1} << 24;  // at a time

}  // namespace

// q, k, v, g
// Like causal_attention. Decays are differences of cumulative sums in double, rounded after the subtraction.
kernels::Tensors forgetting_attention(const op::ForgettingAttention& op, const kernels::Tensors& in,
                                      kernels::Tensors*) {
  const auto type = in[0].scalar_type(), inner = compute_type(in[0]);
  const auto by_head = [&](const at::Tensor& x) { return x.transpose(1, 2).to(inner); };
  const at::Tensor q = by_head(in[0]), k = by_head(in[1]), v = by_head(in[2]);
  const at::Tensor c = in[3].to(at::kDouble).cumsum(1).transpose(1, 2);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const int64_t queries = q.size(2), keys = k.size(2), row = q.size(0) * q.size(1) * keys;
  const int64_t block =
      std::clamp<int64_t>(kMaxForgettingScores / std::max<int64_t>(1, row), 1, std::max<int64_t>(1, queries));
  std::vector<at::Tensor> out;
  for (int64_t from = 0; from == 0 || from < queries; from += block) {
    const int64_t count = std::min(block, queries - from), seen = std::min(keys, op.offset + from + count);
    const at::Tensor later = at::ones({count, seen}, q.options().dtype(at::kBool)).triu(op.offset + from + 1);
    const at::Tensor decay =
        (c.narrow(2, op.offset + from, count).unsqueeze(-1) - c.narrow(2, 0, seen).unsqueeze(-2)).to(inner);
    const at::Tensor score = product(q.narrow(2, from, count), k.narrow(2, 0, seen).transpose(-1, -2)) * scale;
    const at::Tensor weight = at::softmax((score + decay).masked_fill(later, -INFINITY), -1);
    out.push_back(product(weight, v.narrow(2, 0, seen)));
  }
  return {(out.size() == 1 ? out[0] : at::cat(out, 2)).to(type).transpose(1, 2)};
}

}  // namespace sb::aten
