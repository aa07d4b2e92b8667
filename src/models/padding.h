// Heads whose width is no multiple of 8 lie at odd places in bfloat16, where nothing can be read 16 bytes at a time. A
// network whose products take bfloat16 copies of the weights computes such heads with zeros behind them: rows of the
// weights that make them, columns of those that read them. Parameters and their gradients know nothing of it.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/parameters.h"

namespace sb {

// Consecutive rows: `units` of `width`, each to be `padded` long.
struct PaddedRows {
  int64_t units = 0, width = 0, padded = 0;
};

// The width of a head as it is computed: the next multiple of 8 where the weight has a copy.
int64_t computed_width(int64_t width, const at::Tensor& copy);

// Zeros behind the units of the first axis, or of the last. Undefined stays so; what needs none is not copied.
at::Tensor with_padded_rows(const at::Tensor& x, const std::vector<PaddedRows>& rows);
at::Tensor with_padded_columns(const at::Tensor& x, const PaddedRows& columns);

// Gain and eps with which rms_norm over padded rows gives what it gives over the real ones: zeros add nothing to the
// sum of squares, only its mean is taken over more.
struct PaddedNorm {
  PaddedNorm(const at::Tensor& real_gain, const PaddedRows& row, double real_eps);
  at::Tensor gain;
  double eps;
};

}  // namespace sb
