// Where a gradient belongs, so that a backward pass writes it there and nobody copies it afterwards: the gradient of a
// slice lies in that of the whole tensor, the gradient of a parameter in the buffer that sums it.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace sb {

// Consecutive slices of an axis, as views. Where every gradient comes back in its place the gradient of x is theirs
// without a copy; others are copied into theirs, and what gets none is zero.
std::vector<at::Tensor> slices(const at::Tensor& x, const std::vector<int64_t>& widths, int64_t axis = -1);

namespace kernels {

class WholeGradient;

// A node of the graph whose gradient may be added to tensors that are there already.
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  virtual at::Tensor sum() const = 0;  // as the node's output; undefined: there is none
};

// Of an input of an operation. Whether a place is there or not changes no value, only who copies.
class GradientPlace {
 public:
  GradientPlace() = default;  // nowhere
  explicit GradientPlace(const at::Tensor& input);
  // In a backward pass: memory with the input's sizes, strides and type, to be written and returned; undefined where
  // there is none, somebody has it, or the graph is kept for another pass.
  at::Tensor take() const;
  // In a backward pass that sums into leaves: what the gradient may be added to instead of being returned.
  at::Tensor sum() const;

 private:
  std::shared_ptr<WholeGradient> whole_;
  size_t slice_ = 0;
  std::vector<int64_t> sizes_, strides_;
  at::Tensor leaf_;
  std::shared_ptr<GradientSum> sum_;
};

// Whether the backward pass of now adds the gradients of all leaves to what they have, once.
bool sums_into_leaves();

}  // namespace kernels
}  // namespace sb
