// Mamba-3's rotation of keys and queries, one pass over memory in either direction.
#include "kernels/cpu/rotated_keys.h"

#include "kernels/cpu/rows.h"

namespace sb::cpu {
namespace {

template <class T>
void rotate(const Rotation<T>& r, const T* __restrict x, const T* __restrict bias, const T* __restrict c,
            const T* __restrict s, T* __restrict to) {
  for (int64_t j = 0; j < r.pairs; ++j) {
    const T a = x[2 * j] + bias[2 * j], b = x[2 * j + 1] + bias[2 * j + 1];
    to[2 * j] = a * c[j] - b * s[j];
    to[2 * j + 1] = a * s[j] + b * c[j];
  }
  for (int64_t i = 2 * r.pairs; i < r.width; ++i) to[i] = x[i] + bias[i];
}

// Adds the gradients of one row and head. That of an angle needs only the rotated pair: d(y0, y1) = (-y1, y0).
template <class T>
void rotate_back(const Rotation<T>& r, const T* __restrict y, const T* __restrict dy, const T* __restrict c,
                 const T* __restrict s, T* __restrict dx, T* __restrict d_bias, double* __restrict d_angle) {
  for (int64_t j = 0; j < r.pairs; ++j) {
    const T g = dy[2 * j], h = dy[2 * j + 1];
    d_angle[j] += static_cast<double>(h * y[2 * j] - g * y[2 * j + 1]);
    const T u = g * c[j] + h * s[j], v = h * c[j] - g * s[j];
    dx[2 * j] += u, dx[2 * j + 1] += v;
    d_bias[2 * j] += u, d_bias[2 * j + 1] += v;
  }
  for (int64_t i = 2 * r.pairs; i < r.width; ++i) dx[i] += dy[i], d_bias[i] += dy[i];
}

}  // namespace

template <class T>
void rotated_keys_forward(const Rotation<T>& r, const RotatedKeys<T>& p) {
  Ranges(r.rows, r.heads * 2 * r.width).split([&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t h = 0; h < r.heads; ++h) {
        const int64_t at = row * r.heads + h;
        const T *c = r.cosine + at * r.pairs, *s = r.sine + at * r.pairs;
        rotate(r, p.key + row * r.width, p.key_bias + h * r.width, c, s, p.k + at * r.width);
        rotate(r, p.query + row * r.width, p.query_bias + h * r.width, c, s, p.q + at * r.width);
      }
  });
}

template <class T>
void rotated_keys_backward(const Rotation<T>& r, const RotatedKeysGradients<T>& grad) {
  const Ranges ranges(r.rows, r.heads * 2 * r.width);
  const PartSums<T> biases(ranges.count, 2 * r.heads * r.width);
  ranges.parallel([&](int64_t range, int64_t begin, int64_t end) {
    T *const key_bias = biases.start(range), *const query_bias = key_bias + r.heads * r.width;
    for (int64_t row = begin; row < end; ++row) {
      T *const d_key = grad.d_key + row * r.width, *const d_query = grad.d_query + row * r.width;
      std::fill_n(d_key, r.width, T(0));
      std::fill_n(d_query, r.width, T(0));
      for (int64_t h = 0; h < r.heads; ++h) {
        const int64_t at = row * r.heads + h;
        const T *c = r.cosine + at * r.pairs, *s = r.sine + at * r.pairs;
        double* const d_angle = grad.d_angle + at * r.pairs;
        std::fill_n(d_angle, r.pairs, 0.0);
        rotate_back(r, grad.k + at * r.width, grad.dk + at * r.width, c, s, d_key, key_bias + h * r.width, d_angle);
        rotate_back(r, grad.q + at * r.width, grad.dq + at * r.width, c, s, d_query, query_bias + h * r.width, d_angle);
      }
    }
  });
  biases.total(0, r.heads * r.width, grad.d_key_bias);
  biases.total(r.heads * r.width, r.heads * r.width, grad.d_query_bias);
}

#define SB_INSTANTIATE(T)                                                        \
  template void rotated_keys_forward(const Rotation<T>&, const RotatedKeys<T>&); \
  template void rotated_keys_backward(const Rotation<T>&, const RotatedKeysGradients<T>&);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
