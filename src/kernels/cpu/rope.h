#pragma once
#include "kernels/cpu/rows.h"

namespace sb::cpu {

// Radians per position for pair j: 1 / base^{j/half}. Each operation is rounded to float, as in other implementations,
// so that weights trained there get the same angles.
double rope_rate(double base, int64_t j, int64_t half);

template <class T>
struct RopeInput {
  int64_t batch, time, heads, half;
  double base;
  int64_t offset;
  RowStarts<T> x;  // rows (batch, time, head) of 2 half elements
};
// Rotates x. The backward pass is the rotation with the opposite sense.
template <class T>
void rope_turn(const RopeInput<T>& p, int sense, T* y);

}  // namespace sb::cpu
