// Heads whose width is no multiple of 8 lie at odd places in bfloat16, where nothing can be read 16 bytes at a time. A
// network whose products take bfloat16 copies of the weights computes such heads with zeros behind them: rows of the
// weights that make them, columns of those that read them. Parameters and their gradients know nothing of it.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace sb {

// Consecutive rows: `units` of `width`, each to be `padded` long.
struct PaddedRows {
  int64_t units = 0, width = 0, padded = 0;
  bool operator==(const PaddedRows&) const = default;
};

// Zeros behind the units of the first axis, or of the last of two.
class Padding {
 public:
  Padding() = default;  // none
  static Padding of_rows(std::vector<PaddedRows> rows) { return Padding(std::move(rows), false); }
  static Padding of_columns(const PaddedRows& columns) { return Padding({columns}, true); }

  bool needed() const { return needed_; }
  std::vector<int64_t> padded_shape(at::IntArrayRef shape) const;
  // Without a gradient; itself where nothing is needed.
  at::Tensor padded(const at::Tensor& x) const;
  // What belongs to x in the gradient of padded(x), as x; and the same times `scale` added to `sum`.
  at::Tensor unpadded(const at::Tensor& gradient) const;
  void add_unpadded(const at::Tensor& sum, const at::Tensor& gradient, double scale) const;

 private:
  Padding(std::vector<PaddedRows> rows, bool last);
  template <class Body>
  void for_units(at::IntArrayRef shape, const Body& body) const;

  std::vector<PaddedRows> rows_;
  bool last_ = false, needed_ = false;
};

// The width of a head as it is computed: the next multiple of 8 where the weight has a copy.
int64_t computed_width(int64_t width, const at::Tensor& copy);

}  // namespace sb
