// Zero padding of heads. In bfloat16, a head whose width is not a multiple of 8 is not aligned to 16 bytes, so kernels
// cannot load 16 bytes at a time. A network that multiplies with bfloat16 copies of its weights therefore appends zeros
// to such heads: as rows of the weights that produce a head, as columns of the weights that consume it. Parameters and
// their gradients are not padded.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace sb {

// `units` consecutive groups of `width` rows each; padding makes each group `padded` rows long.
struct PaddedRows {
  int64_t units = 0, width = 0, padded = 0;
  bool operator==(const PaddedRows&) const = default;
};

// Appends zeros to each unit of the first axis, or of the last axis of a matrix.
class Padding {
 public:
  Padding() = default;  // none
  static Padding of_rows(std::vector<PaddedRows> rows) { return Padding(std::move(rows), false); }
  static Padding of_columns(const PaddedRows& columns) { return Padding({columns}, true); }

  bool needed() const { return needed_; }
  std::vector<int64_t> padded_shape(at::IntArrayRef shape) const;
  // Returns x with its padding, not differentiable; x itself if no padding is needed.
  at::Tensor padded(const at::Tensor& x) const;
  // Removes the padding from the gradient of padded(x): the gradient of x. add_unpadded() adds `scale` times this
  // gradient to `sum` instead.
  at::Tensor unpadded(const at::Tensor& gradient) const;
  void add_unpadded(const at::Tensor& sum, const at::Tensor& gradient, double scale) const;

 private:
  Padding(std::vector<PaddedRows> rows, bool last);
  template <class Body>
  void for_units(at::IntArrayRef shape, const Body& body) const;

  std::vector<PaddedRows> rows_;
  bool last_ = false, needed_ = false;
};

// Returns the padded width of a head: the next multiple of 8 if `copy` (Parameter::copy) is defined, else `width`.
int64_t computed_width(int64_t width, const at::Tensor& copy);

}  // namespace sb
