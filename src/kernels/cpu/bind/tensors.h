// Adapts tensors to the kernels of cpu/: reads rows in place if the strides allow it, allocates results, pads states.
#pragma once
#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "kernels/cpu/rows.h"
#include "kernels/operation.h"

namespace sb::cpu {

// Returns an uninitialised tensor; the caller must write every element.
at::Tensor fresh(at::IntArrayRef sizes, const at::TensorOptions& options);
inline at::Tensor fresh_like(const at::Tensor& x) {
  return fresh(x.sizes(), x.options());
}

// Returns memory for an input's gradient, with a contiguous last axis: its destination (Back::place) or a new tensor.
at::Tensor gradient_of(const kernels::Back& back, size_t input, at::IntArrayRef sizes,
                       const at::TensorOptions& options);
inline at::Tensor gradient_of(const kernels::Back& back, size_t input, const at::Tensor& like) {
  return gradient_of(back, input, like.sizes(), like.options());
}

// Calls body(T{}) with T the element type, float or double.
template <class Body>
auto with_type_of(const at::Tensor& x, const Body& body) {
  return x.scalar_type() == at::kFloat ? body(float{}) : body(double{});
}

// The data pointer of a tensor, or null if the tensor is undefined.
template <class T>
T* data_or_null(const at::Tensor& x) {
  return x.defined() ? x.data_ptr<T>() : nullptr;
}

inline at::Tensor contiguous(const at::Tensor& x) {
  return x.defined() ? x.contiguous() : x;
}
// Returns x if its last axis is contiguous, else a contiguous copy.
inline at::Tensor rows_of(const at::Tensor& x) {
  return !x.defined() || x.size(-1) == 1 || x.stride(-1) == 1 ? x : x.contiguous();
}

// All rows of a tensor along its last axis. Copies the tensor if more than two strides are needed to locate the rows.
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
  // The rows for writing. Use only if the rows are not a copy.
  RowTargets<T> targets() const { return {starts()}; }
  bool is_copy_of(const at::Tensor& x) const { return !hold_.is_same(x); }

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

// Returns memory for an input's gradient to which Rows can write.
at::Tensor row_gradient_of(const kernels::Back& back, size_t input, const at::Tensor& like);

at::Tensor sum_in_order(const at::Tensor& parts);  // over the first axis

// Returns [B H, slots, padded K, padded V] with `state` [B,H,K,V] (undefined: zeros), padded by zeros, in slot 0.
at::Tensor start_states(const at::Tensor& state, int64_t B, int64_t H, int64_t K, int64_t V, int64_t slots,
                        const at::TensorOptions& options);
// Copies one slot of such a tensor into a new tensor [B,H,K,V].
at::Tensor unpadded_state(const at::Tensor& states, int64_t slot, int64_t B, int64_t H, int64_t K, int64_t V);

// out = a b + bias, or out += a b + bias if `add`. out [M,N] has contiguous rows; bias [N] may be undefined.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {},
              bool add = false);
inline at::Tensor multiplied(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {}) {
  const at::Tensor out = fresh({a.size(0), b.size(1)}, a.options());
  multiply(out, a, b, bias);
  return out;
}

}  // namespace sb::cpu
