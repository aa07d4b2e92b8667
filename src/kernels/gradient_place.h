// Destinations of gradients. A backward pass can write a gradient directly to its destination, which saves a copy: the
// gradient of a slice into that of the whole tensor, the gradient of a parameter into the buffer that accumulates it.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace sb {

// Splits x along an axis into consecutive views. The gradient of x needs no copy if the backward pass has written every
// slice's gradient to its destination. Gradients elsewhere are copied; a slice without a gradient gets zeros.
std::vector<at::Tensor> slices(const at::Tensor& x, const std::vector<int64_t>& widths, int64_t axis = -1);

namespace kernels {

class WholeGradient;

// Interface of an autograd node that accumulates its gradient in an existing tensor.
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  virtual at::Tensor sum() const = 0;  // this tensor, with the shape of the node's output; undefined if there is none
};

// Destination of the gradient of one input of an operation. It saves copies, but never changes a value.
class GradientPlace {
 public:
  GradientPlace() = default;  // no destination
  explicit GradientPlace(const at::Tensor& input);
  // Call in a backward pass. Returns uninitialised memory with the input's sizes, strides and type, which the caller
  // fills and returns as the gradient. Undefined if there is none, if it is already taken, or if the graph is retained.
  at::Tensor take() const;
  // Call in a backward pass. Returns the tensor to which the caller may add the gradient instead of returning it.
  // Undefined if there is none, or if sums_into_leaves() is false.
  at::Tensor sum() const;

 private:
  std::shared_ptr<WholeGradient> whole_;
  size_t slice_ = 0;
  std::vector<int64_t> sizes_, strides_;
  at::Tensor leaf_;
  std::shared_ptr<GradientSum> sum_;
};

// Whether the current backward pass is a plain backward(): it accumulates the gradients of all leaves, and does not
// retain or create a graph.
bool sums_into_leaves();

}  // namespace kernels
}  // namespace sb
