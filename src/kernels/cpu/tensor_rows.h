// Rows of a tensor along its last axis, read in place where the strides allow it.
#pragma once
#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/shapes.h"

namespace sb::cpu {

// An autograd Function takes no undefined tensors: an absent one travels as an empty one.
inline at::Tensor or_empty(const at::Tensor& x, const at::Tensor& like) {
  return x.defined() ? x : at::empty({0}, like.options());
}
inline bool is_absent(const at::Tensor& x) {
  return x.dim() == 1 && x.size(0) == 0;
}

// Calls body(T{}) with T the element type of a tensor that has_cpu_kernel.
template <class Body>
auto with_type_of(const at::Tensor& x, const Body& body) {
  return x.scalar_type() == at::kFloat ? body(float{}) : body(double{});
}

// Row r starts at (r / inner) * outer_stride + (r % inner) * inner_stride.
template <class T>
class Rows {
 public:
  explicit Rows(const at::Tensor& x) : hold_(x) {
    if (!collapse(hold_)) {
      hold_ = x.contiguous();
      collapse(hold_);
    }
    data_ = hold_.data_ptr<T>();
  }
  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  const T* operator[](int64_t r) const {
    return inner_ >= count_ ? data_ + r * inner_stride_
                            : data_ + (r / inner_) * outer_stride_ + (r % inner_) * inner_stride_;
  }

 private:
  bool collapse(const at::Tensor& x) {
    width_ = x.dim() == 0 ? 1 : x.size(-1);
    count_ = width_ == 0 ? 0 : x.numel() / width_;
    if (width_ > 1 && x.stride(-1) != 1) return false;
    std::vector<std::pair<int64_t, int64_t>> axes;  // (size, stride), innermost first
    for (int64_t d = x.dim() - 2; d >= 0; --d) {
      if (x.size(d) == 1) continue;
      if (!axes.empty() && x.stride(d) == axes.back().first * axes.back().second)
        axes.back().first *= x.size(d);
      else
        axes.emplace_back(x.size(d), x.stride(d));
    }
    if (axes.size() > 2) return false;
    inner_ = axes.empty() ? 1 : axes[0].first;
    inner_stride_ = axes.empty() ? width_ : axes[0].second;
    outer_stride_ = axes.size() < 2 ? 0 : axes[1].second;
    return true;
  }

  at::Tensor hold_;
  const T* data_ = nullptr;
  int64_t count_ = 0, width_ = 0, inner_ = 1, inner_stride_ = 0, outer_stride_ = 0;
};

// A division of `items` into ranges that depends on sizes only, so that sums over ranges do not see the thread count.
struct Ranges {
  int64_t items, count;
  Ranges(int64_t number, int64_t elements_each, int64_t most = 32)
      : items(number), count(std::clamp<int64_t>(number * elements_each / 8192, 1, std::max<int64_t>(1, most))) {
    count = std::max<int64_t>(1, std::min(count, items));
  }
  int64_t begin(int64_t i) const { return items * i / count; }
  // body(range, first, last)
  template <class Body>
  void parallel(const Body& body) const {
    for_each_task(count, [&](int64_t i) { body(i, begin(i), begin(i + 1)); });
  }
};

// Sums parts [n, ...] over n, first to last.
inline at::Tensor sum_in_order(const at::Tensor& parts) {
  if (parts.size(0) == 1) return parts.select(0, 0);
  at::Tensor total = parts.select(0, 0).clone();
  for (int64_t i = 1; i < parts.size(0); ++i) total.add_(parts.select(0, i));
  return total;
}

}  // namespace sb::cpu
