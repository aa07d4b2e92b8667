#pragma once
#include "kernels/cpu/rows.h"

namespace sb::cpu {

// Radians a position of pair j: 1 / base^{j/half}, each operation rounded to float as peers' tables are, so that their
// weights meet the angles they were trained with.
double rope_rate(double base, int64_t j, int64_t half);

template <class T>
struct RopeInput {
  int64_t batch, time, heads, half;
  double base;
  int64_t offset;
  RowStarts<T> x;  // rows (batch, time, head) of 2 half elements
};
// The backward pass turns the other way.
template <class T>
void rope_turn(const RopeInput<T>& p, int sense, T* y);

}  // namespace sb::cpu
