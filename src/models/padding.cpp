#include "models/padding.h"

#include "base/torch_pch.h"

namespace sb {

int64_t computed_width(int64_t width, const at::Tensor& copy) {
  return copy.defined() ? (width + 7) / 8 * 8 : width;
}

at::Tensor with_padded_rows(const at::Tensor& x, const std::vector<PaddedRows>& rows) {
  const bool any =
      std::any_of(rows.begin(), rows.end(), [](const auto& r) { return r.units > 0 && r.padded > r.width; });
  if (!x.defined() || !any) return x;
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (const auto& [units, width, padded] : rows) {
    if (units == 0) continue;
    const auto part = x.narrow(0, begin, units * width);
    begin += units * width;
    if (padded == width) {
      parts.push_back(part);
      continue;
    }
    auto shape = part.sizes().vec();
    shape[0] = units * padded;
    parts.push_back(at::constant_pad_nd(part.reshape({units, width, -1}), {0, 0, 0, padded - width}).reshape(shape));
  }
  return at::cat(parts);
}

at::Tensor with_padded_columns(const at::Tensor& x, const PaddedRows& columns) {
  const auto [units, width, padded] = columns;
  if (!x.defined() || padded == width) return x;
  return at::constant_pad_nd(x.reshape({-1, units, width}), {0, padded - width}).reshape({-1, units * padded});
}

PaddedNorm::PaddedNorm(const at::Tensor& real_gain, const PaddedRows& row, double real_eps)
    : gain(real_gain), eps(real_eps) {
  if (row.padded == row.width) return;
  const double share = static_cast<double>(row.width) / static_cast<double>(row.padded);
  gain = with_padded_rows(real_gain, {row}) * std::sqrt(share);
  eps = real_eps * share;
}

}  // namespace sb
