#pragma once
#include "kernels/cpu/rows.h"
#include "kernels/norm_kinds.h"

namespace sb::cpu {

// Normalises rows: y = s u gain, with u = x, or u = x silu(gate) for NormGate::before. For NormGate::after, y is
// multiplied by silu(gate). s is the scale of the row's norm (norm_kinds.h).
template <class T>
struct NormRows {
  Norm norm;
  NormGate kind;
  double eps;
  int64_t rows, width;
  RowStarts<T> x, gate;  // without a gate, pass x as gate
  const T* gain;         // may be null only without a gate
};
template <class T>
void norm_forward(const NormRows<T>& p, T* y, T* scales);  // scales [rows]
// Without a gate, pass dx as d_gate. d_gain may be null.
template <class T>
void norm_backward(const NormRows<T>& p, const RowStarts<T>& gy, const T* scales, const RowTargets<T>& dx,
                   const RowTargets<T>& d_gate, T* d_gain);

}  // namespace sb::cpu
