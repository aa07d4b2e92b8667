// Moving rows between tensors (any stride from row to row) and padded scratch, and the small row-wise work of the
// chunks.
#pragma once
#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/cpu/simd.h"

namespace sb::cpu {

// dst[i, :] = factor * src[i, :] for i < n; zeros in columns width..ld-1 and in rows n..rows-1
template <class T>
inline void take_rows(int64_t n, int64_t rows, int64_t width, int64_t ld, const T* src, int64_t stride, T* dst,
                      T factor = T(1)) {
  for (int64_t i = 0; i < n; ++i) {
    const T* s = src + i * stride;
    T* d = dst + i * ld;
    for (int64_t j = 0; j < width; ++j) d[j] = factor * s[j];
    std::fill(d + width, d + ld, T(0));
  }
  std::fill(dst + n * ld, dst + rows * ld, T(0));
}

// dst[i, :] = factor * src[i, :] for i < n
template <class T>
inline void give_rows(int64_t n, int64_t width, int64_t ld, const T* src, T* dst, int64_t stride, T factor = T(1)) {
  for (int64_t i = 0; i < n; ++i) {
    const T* s = src + i * ld;
    T* d = dst + i * stride;
    for (int64_t j = 0; j < width; ++j) d[j] = factor * s[j];
  }
}

template <class T>
inline void scale_row(int64_t n, T factor, T* row) {
  for (int64_t j = 0; j < n; ++j) row[j] *= factor;
}

// row[i, :] *= factor[i]
template <class T>
inline void scale_rows(int64_t rows, int64_t ld, const T* factor, T* x) {
  for (int64_t i = 0; i < rows; ++i) scale_row(ld, factor[i], x + i * ld);
}

// Tensor whose last axis is contiguous: itself, or a copy.
inline at::Tensor rows_of(const at::Tensor& t) {
  return !t.defined() || t.size(-1) == 1 || t.stride(-1) == 1 ? t : t.contiguous();
}

}  // namespace sb::cpu
