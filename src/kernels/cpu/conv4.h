#pragma once
#include <cstdint>

namespace sb::cpu {

template <class T>
struct Conv4Input {
  int64_t batch, time, channels;
  const T* x;  // [batch, time, channels], strides x_batch, x_time, 1
  int64_t x_batch, x_time;
  const T* tail;  // [batch, 3, channels] or null: zeros
  const T* w;     // [5, channels]: four taps, oldest first, then the bias
  bool silu;
};
template <class T>
struct Conv4Gradient {
  T* data;  // [batch, time, channels], strides `batch`, `time`, 1
  int64_t batch, time;
};
template <class T>
void conv4_forward(const Conv4Input<T>& p, T* y);
// dw: partial sums [conv4_slots, 5, channels], which the caller adds in order. d_tail is written only with a tail.
template <class T>
void conv4_backward(const Conv4Input<T>& p, const T* gy, const Conv4Gradient<T>& dx, T* d_tail, T* dw);
int64_t conv4_slots(int64_t batch);

}  // namespace sb::cpu
