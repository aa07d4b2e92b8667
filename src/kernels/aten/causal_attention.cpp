#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/operations.h"

namespace sb::aten {
namespace {

constexpr int64_t kMaxScores = int64_t{1} << 24;  // at a time

}  // namespace

// Processes queries in blocks, which bounds the memory for scores. For half-precision types, scores, weights and sums
// are in float.
kernels::Tensors causal_attention(const op::CausalAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const auto type = in[0].scalar_type(), inner = type == at::kBFloat16 || type == at::kHalf ? at::kFloat : type;
  const auto by_head = [&](const at::Tensor& x) { return x.transpose(1, 2).to(inner); };
  const at::Tensor q = by_head(in[0]), k = by_head(in[1]), v = by_head(in[2]);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const int64_t queries = q.size(2), keys = k.size(2), row = q.size(0) * q.size(1) * keys;
  const int64_t block = std::clamp<int64_t>(kMaxScores / std::max<int64_t>(1, row), 1, std::max<int64_t>(1, queries));
  std::vector<at::Tensor> out;
  for (int64_t from = 0; from == 0 || from < queries; from += block) {
    const int64_t count = std::min(block, queries - from), seen = std::min(keys, op.offset + from + count);
    const at::Tensor these = k.narrow(2, 0, seen);
    const at::Tensor later = at::ones({count, seen}, q.options().dtype(at::kBool)).triu(op.offset + from + 1);
    const at::Tensor score = at::matmul(q.narrow(2, from, count), these.transpose(-1, -2)) * scale;
    const at::Tensor weight = at::softmax(score.masked_fill(later, -INFINITY), -1);
    out.push_back(at::matmul(weight, v.narrow(2, 0, seen)));
  }
  return {(out.size() == 1 ? out[0] : at::cat(out, 2)).to(type).transpose(1, 2)};
}

}  // namespace sb::aten
