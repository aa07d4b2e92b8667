// Mamba-3's rotation of keys and queries, one pass over memory in either direction.
#include "kernels/cpu/rotated_keys.h"

#include <vector>

#include "kernels/cpu/parallel.h"

namespace sb::cpu {
namespace {

template <class T>
void rotate(const RotatedKeys<T>& p, const T* __restrict x, const T* __restrict bias, const T* __restrict c,
            const T* __restrict s, T* __restrict to) {
  for (int64_t j = 0; j < p.pairs; ++j) {
    const T a = x[2 * j] + bias[2 * j], b = x[2 * j + 1] + bias[2 * j + 1];
    to[2 * j] = a * c[j] - b * s[j];
    to[2 * j + 1] = a * s[j] + b * c[j];
  }
  for (int64_t i = 2 * p.pairs; i < p.width; ++i) to[i] = x[i] + bias[i];
}

// Adds the gradients of one row and head. That of an angle needs only the rotated pair: d(y0, y1) = (-y1, y0).
template <class T>
void rotate_back(const RotatedKeys<T>& p, const T* __restrict y, const T* __restrict dy, const T* __restrict c,
                 const T* __restrict s, T* __restrict dx, T* __restrict d_bias, double* __restrict d_angle) {
  for (int64_t j = 0; j < p.pairs; ++j) {
    const T g = dy[2 * j], h = dy[2 * j + 1];
    d_angle[j] += static_cast<double>(h * y[2 * j] - g * y[2 * j + 1]);
    const T u = g * c[j] + h * s[j], v = h * c[j] - g * s[j];
    dx[2 * j] += u, dx[2 * j + 1] += v;
    d_bias[2 * j] += u, d_bias[2 * j + 1] += v;
  }
  for (int64_t i = 2 * p.pairs; i < p.width; ++i) dx[i] += dy[i], d_bias[i] += dy[i];
}

}  // namespace

template <class T>
void rotated_keys_forward(const RotatedKeys<T>& p, T* k, T* q) {
  Ranges(p.rows, p.heads * 2 * p.width).split([&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t h = 0; h < p.heads; ++h) {
        const int64_t at = row * p.heads + h;
        const T *c = p.cosine + at * p.pairs, *s = p.sine + at * p.pairs;
        rotate(p, p.key + row * p.width, p.key_bias + h * p.width, c, s, k + at * p.width);
        rotate(p, p.query + row * p.width, p.query_bias + h * p.width, c, s, q + at * p.width);
      }
  });
}

template <class T>
void rotated_keys_backward(const RotatedKeys<T>& p, const RotatedKeysGradients<T>& grad) {
  const int64_t biases = p.heads * p.width;
  const Ranges ranges(p.rows, p.heads * 2 * p.width);
  std::vector<T> sums(static_cast<size_t>(ranges.count * 2 * biases));  // of the biases, by range
  ranges.parallel([&](int64_t range, int64_t begin, int64_t end) {
    T *const key_bias = sums.data() + range * 2 * biases, *const query_bias = key_bias + biases;
    for (int64_t row = begin; row < end; ++row) {
      T *const d_key = grad.d_key + row * p.width, *const d_query = grad.d_query + row * p.width;
      std::fill_n(d_key, p.width, T(0));
      std::fill_n(d_query, p.width, T(0));
      for (int64_t h = 0; h < p.heads; ++h) {
        const int64_t at = row * p.heads + h;
        const T *c = p.cosine + at * p.pairs, *s = p.sine + at * p.pairs;
        double* const d_angle = grad.d_angle + at * p.pairs;
        std::fill_n(d_angle, p.pairs, 0.0);
        rotate_back(p, grad.k + at * p.width, grad.dk + at * p.width, c, s, d_key, key_bias + h * p.width, d_angle);
        rotate_back(p, grad.q + at * p.width, grad.dq + at * p.width, c, s, d_query, query_bias + h * p.width, d_angle);
      }
    }
  });
  std::copy_n(sums.data(), biases, grad.d_key_bias);
  std::copy_n(sums.data() + biases, biases, grad.d_query_bias);
  for (int64_t range = 1; range < ranges.count; ++range) {
    const T* const own = sums.data() + range * 2 * biases;
    for (int64_t i = 0; i < biases; ++i) {
      grad.d_key_bias[i] += own[i];
      grad.d_query_bias[i] += own[biases + i];
    }
  }
}

#define SB_INSTANTIATE(T)                                            \
  template void rotated_keys_forward(const RotatedKeys<T>&, T*, T*); \
  template void rotated_keys_backward(const RotatedKeys<T>&, const RotatedKeysGradients<T>&);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
