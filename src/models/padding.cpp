#include "models/padding.h"

#include "base/torch_pch.h"

namespace sb {
namespace {

// [outer, units, width, inner] of one stretch of the padded axis
struct Stretch {
  int64_t outer, begin, units, width, inner;
  at::Tensor of(const at::Tensor& x) const {
    return x.view({outer, -1, inner}).narrow(1, begin, units * width).view({outer, units, width, inner});
  }
};

}  // namespace

int64_t computed_width(int64_t width, const at::Tensor& copy) {
  return copy.defined() ? (width + 7) / 8 * 8 : width;
}

// Merges adjacent entries of equal width.
Padding::Padding(std::vector<PaddedRows> rows, bool last) : last_(last) {
  for (PaddedRows next : rows) {
    if (next.units == 0) continue;
    if (next.padded == next.width) next = {next.units * next.width, 1, 1};
    needed_ = needed_ || next.padded > next.width;
    if (!rows_.empty() && rows_.back().width == next.width && rows_.back().padded == next.padded)
      rows_.back().units += next.units;
    else
      rows_.push_back(next);
  }
}

// body(real, padded) for every stretch of a tensor of this shape
template <class Body>
void Padding::for_units(at::IntArrayRef shape, const Body& body) const {
  const int64_t outer = last_ ? shape[0] : 1;
  int64_t inner = 1, from = 0, to = 0;
  for (size_t d = 1; !last_ && d < shape.size(); ++d) inner *= shape[d];
  for (const auto& [units, width, padded] : rows_) {
    body(Stretch{outer, from, units, width, inner}, Stretch{outer, to, units, padded, inner});
    from += units * width;
    to += units * padded;
  }
}

std::vector<int64_t> Padding::padded_shape(at::IntArrayRef shape) const {
  auto out = shape.vec();
  if (needed_) {
    int64_t& extent = last_ ? out.back() : out.front();
    extent = 0;
    for (const auto& row : rows_) extent += row.units * row.padded;
  }
  return out;
}

at::Tensor Padding::padded(const at::Tensor& x) const {
  if (!x.defined() || !needed_) return x;
  const at::NoGradGuard no_gradients;
  const at::Tensor from = x.contiguous(), out = at::zeros(padded_shape(x.sizes()), x.options());
  for_units(x.sizes(), [&](const Stretch& real, const Stretch& wide) {
    wide.of(out).narrow(2, 0, real.width).copy_(real.of(from));
  });
  return out;
}

at::Tensor Padding::unpadded(const at::Tensor& gradient) const {
  if (!needed_) return gradient;
  int64_t extent = 0;
  for (const auto& row : rows_) extent += row.units * row.width;
  auto shape = gradient.sizes().vec();
  (last_ ? shape.back() : shape.front()) = extent;
  const at::Tensor from = gradient.contiguous();
  std::vector<at::Tensor> parts;
  for_units(shape, [&](const Stretch& real, const Stretch& wide) {
    parts.push_back(wide.of(from).narrow(2, 0, real.width).reshape({real.outer, real.units * real.width, real.inner}));
  });
  return at::cat(parts, 1).view(shape);
}

void Padding::add_unpadded(const at::Tensor& sum, const at::Tensor& gradient, double scale) const {
  if (!needed_) {
    sum.add_(gradient, scale);
    return;
  }
  const at::Tensor from = gradient.contiguous();
  for_units(sum.sizes(), [&](const Stretch& real, const Stretch& wide) {
    real.of(sum).add_(wide.of(from).narrow(2, 0, real.width), scale);
  });
}

}  // namespace sb
