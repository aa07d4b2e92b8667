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

// Where rows start: row r at (r / inner) * outer_stride + (r % inner) * inner_stride. A loop over rows takes a copy,
// which stays in registers; a member of something that it shares would be read again after every store.
template <class T>
struct RowStarts {
  const T* data;
  bool one_stride;
  int64_t inner, outer_stride, inner_stride;
  const T* operator[](int64_t r) const {
    return one_stride ? data + r * inner_stride : data + (r / inner) * outer_stride + (r % inner) * inner_stride;
  }
};
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
  RowStarts<T> starts() const { return {data_, inner_ >= count_, inner_, outer_stride_, inner_stride_}; }
  const T* operator[](int64_t r) const { return starts()[r]; }

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
  Ranges(int64_t number, int64_t elements_each, int64_t most = 16)
      : items(number), count(std::clamp<int64_t>(number * elements_each / 8192, 1, std::max<int64_t>(1, most))) {
    count = std::max<int64_t>(1, std::min(count, items));
  }
  int64_t begin(int64_t i) const { return items * i / count; }
  // body(range, first, last) for every range
  template <class Body>
  void parallel(const Body& body) const {
    for_each_task(count, [&](int64_t i) { body(i, begin(i), begin(i + 1)); });
  }
  // body(first, last), once a thread: for work that makes no sums over items
  template <class Body>
  void split(const Body& body) const {
    at::parallel_for(0, count, 1, [&](int64_t first, int64_t last) { body(begin(first), begin(last)); });
  }
};

// Two walks over a row with a number in between that only the whole row gives: all first walks of a block of rows, then
// all second ones, so that the way from sum to scale of one row hides behind the others and the second walk finds its
// rows in a near cache. body(first, last), at most `rows` <= kBlockRows rows.
inline constexpr int64_t kBlockRows = 64;
template <class Body>
[[gnu::always_inline]] inline void for_row_blocks(int64_t begin, int64_t end, int64_t rows, const Body& body) {
  for (int64_t first = begin; first < end; first += rows) body(first, std::min(first + rows, end));
}
// Rows of `width` that make `elements` together.
inline int64_t rows_of_block(int64_t elements, int64_t width) {
  return std::clamp<int64_t>(elements / std::max<int64_t>(1, width), 1, kBlockRows);
}

// out[c] = sum over r of x[r * stride + c], first to last in blocks of 64, the same for any number of threads. For
// float and double.
template <class T>
void sum_rows(const T* x, int64_t rows, int64_t stride, int64_t columns, T* out);
at::Tensor sum_in_order(const at::Tensor& parts);  // over the first axis

// `width` sums that every range of rows makes on its own, added in the order of the ranges.
template <class T>
class PartSums {
 public:
  PartSums(int64_t parts, int64_t width)
      : parts_(parts), width_(width), arena_(Arena<T>::rounded(parts * width)), sums_(arena_.take(parts * width)) {}
  // The sums of a part, zero at first.
  T* start(int64_t part) const {
    T* const sums = sums_ + part * width_;
    std::fill_n(sums, width_, T(0));
    return sums;
  }
  // `count` totals from number `first` on.
  at::Tensor total(int64_t first, int64_t count, const at::TensorOptions& options) const {
    const at::Tensor out = kernels::fresh({count}, options);
    sum_rows(sums_ + first, parts_, width_, count, out.data_ptr<T>());
    return out;
  }
  at::Tensor total(const at::TensorOptions& options) const { return total(0, width_, options); }

 private:
  int64_t parts_, width_;
  Arena<T> arena_;
  T* sums_;
};

}  // namespace sb::cpu
