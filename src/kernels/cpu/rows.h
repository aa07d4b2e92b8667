// Rows of matrices: addresses, copies to and from padded scratch memory, loops in blocks, and sums in fixed order.
#pragma once
#include <algorithm>

#include "kernels/cpu/parallel.h"

namespace sb::cpu {

// Addresses of rows: row r starts at data + (r / inner) * outer_stride + (r % inner) * inner_stride. Loops over rows
// should use a local copy, which stays in registers; a member of a shared object would be read again after every store.
template <class T>
struct RowStarts {
  const T* data;
  bool one_stride;
  int64_t inner, outer_stride, inner_stride;
  const T* operator[](int64_t r) const {
    return one_stride ? data + r * inner_stride : data + (r / inner) * outer_stride + (r % inner) * inner_stride;
  }
};

// The same for rows that are written to.
template <class T>
struct RowTargets : RowStarts<T> {
  T* operator[](int64_t r) const { return const_cast<T*>(RowStarts<T>::operator[](r)); }
};

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

// Place of (i, j), j <= i, in a lower triangle stored row by row.
constexpr int64_t pair_index(int64_t i, int64_t j) {
  return i * (i + 1) / 2 + j;
}

// Loop in blocks of rows, for algorithms that pass over each row twice: a sum first, then a result that needs the sum.
// body(first, last) makes the first pass for all rows of its block, then the second. This hides the latency between the
// passes, and the second pass finds its rows in the cache. A block has at most `rows` <= kBlockRows rows.
inline constexpr int64_t kBlockRows = 64;
template <class Body>
[[gnu::always_inline]] inline void for_row_blocks(int64_t begin, int64_t end, int64_t rows, const Body& body) {
  for (int64_t first = begin; first < end; first += rows) body(first, std::min(first + rows, end));
}
// Number of rows of `width` elements that together have about `elements` elements, in 1..kBlockRows.
inline int64_t rows_of_block(int64_t elements, int64_t width) {
  return std::clamp<int64_t>(elements / std::max<int64_t>(1, width), 1, kBlockRows);
}

// out[c] = sum over r of x[r * stride + c], in blocks of 64 rows from first to last, independent of the number of
// threads. For float and double.
template <class T>
void sum_rows(const T* x, int64_t rows, int64_t stride, int64_t columns, T* out);

// `width` sums that each part (a range of rows) computes separately; total() adds the parts in order.
template <class T>
class PartSums {
 public:
  PartSums(int64_t parts, int64_t width)
      : parts_(parts), width_(width), arena_(Arena<T>::rounded(parts * width)), sums_(arena_.take(parts * width)) {}
  // Returns the sums of a part, set to zero.
  T* start(int64_t part) const {
    T* const sums = sums_ + part * width_;
    std::fill_n(sums, width_, T(0));
    return sums;
  }
  // Writes the totals of sums first..first + count - 1 to out.
  void total(int64_t first, int64_t count, T* out) const { sum_rows(sums_ + first, parts_, width_, count, out); }

 private:
  int64_t parts_, width_;
  Arena<T> arena_;
  T* sums_;
};

}  // namespace sb::cpu
