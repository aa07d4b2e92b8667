#pragma once
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/rows.h"

namespace sb::cpu {

template <class T>
struct ResidualNormInput {
  DropoutMask drop;  // p = 0: no dropout
  int64_t rows, width;
  RowStarts<T> z, residual;
  const T *gain, *bias;
};
// Writes the result to y. For the backward pass, also writes the normalised rows to x [rows, width] and their scales to
// scales [rows]; x may be null.
template <class T>
void residual_norm_forward(const ResidualNormInput<T>& p, T* y, T* x, T* scales);

template <class T>
struct ResidualNormGradients {
  DropoutMask drop;
  int64_t rows, width;
  RowStarts<T> gy;
  const T *x, *gain, *scales;
  T *dz, *d_residual;  // d_residual may be x; dz is written only if there is dropout
};
template <class T>
void residual_norm_backward(const ResidualNormGradients<T>& p, T* d_gain, T* d_bias);

template <class T>
void dropout_rows(const DropoutMask& drop, int64_t rows, const RowStarts<T>& x, T* y);
// Writes only the factors of the mask.
template <class T>
void dropout_scales(const DropoutMask& drop, int64_t rows, T* scales);

}  // namespace sb::cpu
