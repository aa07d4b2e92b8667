#pragma once
#include <cstdint>

namespace sb::cpu {

// Two tensors [rows, width] with a bias for each head, and pairs of channels (2j, 2j + 1), j < pairs, rotated by one
// angle for each row, head and pair. All tensors are contiguous.
template <class T>
struct Rotation {
  int64_t rows, heads, width, pairs;
  const T *cosine, *sine;  // [rows, heads, pairs]
};
template <class T>
struct RotatedKeys {
  const T *key, *query, *key_bias, *query_bias;  // [rows, width]; [heads, width]
  T *k, *q;                                      // [rows, heads, width]
};
template <class T>
void rotated_keys_forward(const Rotation<T>& r, const RotatedKeys<T>& p);

template <class T>
struct RotatedKeysGradients {
  const T *k, *q, *dk, *dq;  // of the forward pass, and their gradients
  T *d_key, *d_query, *d_key_bias, *d_query_bias;
  double* d_angle;
};
template <class T>
void rotated_keys_backward(const Rotation<T>& r, const RotatedKeysGradients<T>& grad);

}  // namespace sb::cpu
