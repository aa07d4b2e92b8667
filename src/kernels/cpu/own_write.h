#pragma once
#include "kernels/cpu/rows.h"

namespace sb::cpu {

// Adds to the reading of each frame and head what this frame itself writes: to = read + (scale here (q . k) + skip) v.
template <class T>
struct OwnWrite {
  int64_t rows, heads, keys, values;  // a row for each frame and head
  T scale;
  RowStarts<T> q, k, v;
  const T *here, *skip;  // [rows]; [heads] or null
};
template <class T>
void own_write_forward(const OwnWrite<T>& p, const RowStarts<T>& read, T* to);

template <class T>
struct OwnWriteGradients {
  RowStarts<T> d_to;
  RowTargets<T> dq, dk, dv;
  T *d_here, *d_skip;  // d_skip may be null
};
template <class T>
void own_write_backward(const OwnWrite<T>& p, const OwnWriteGradients<T>& grad);

}  // namespace sb::cpu
