#pragma once
#include "kernels/cpu/rows.h"
#include "kernels/norm_kinds.h"

namespace sb::cpu {

// Rows of u, or of u silu(gate): y = s u gain (silu(gate)).
template <class T>
struct NormRows {
  Norm norm;
  NormGate kind;
  double eps;
  int64_t rows, width;
  RowStarts<T> x, gate;  // without a gate: x again
  const T* gain;         // null only where there is no gate
};
template <class T>
void norm_forward(const NormRows<T>& p, T* y, T* scales);  // scales [rows]
// d_gate without a gate: dx again; d_gain null: not wanted.
template <class T>
void norm_backward(const NormRows<T>& p, const RowStarts<T>& gy, const T* scales, const RowTargets<T>& dx,
                   const RowTargets<T>& d_gate, T* d_gain);

}  // namespace sb::cpu
