#include "kernels/cpu/gates.h"

#include <vector>

#include "kernels/cpu/packs.h"

namespace sb::cpu {
namespace {

using simd::Vec;

// body(row) for the rows of a range, in parallel. A row costs as much as 64 elements, if it has fewer.
template <class Body>
void for_rows(int64_t rows, int64_t width, const Body& body) {
  Ranges(rows, std::max<int64_t>(64, width)).split([&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

}  // namespace

template <class T>
void gate_silu_forward(int64_t rows, int64_t n, const RowStarts<T>& y, const RowStarts<T>& z, T* to) {
  for_rows(rows, n, [&](int64_t r) {
    const T *a = y[r], *b = z[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          const auto g = io.load(b + i);
          io.store(to + r * n + i, io.load(a + i) * g * simd::sigmoid(g));
        });
  });
}
template <class T>
void gate_silu_backward(int64_t rows, int64_t n, const RowStarts<T>& gy, const RowStarts<T>& y, const RowStarts<T>& z,
                        T* to_y, T* to_z) {
  for_rows(rows, n, [&](int64_t r) {
    const T *g = gy[r], *a = y[r], *b = z[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          const auto go = io.load(g + i), gate = io.load(b + i), sig = simd::sigmoid(gate);
          io.store(to_y + r * n + i, go * gate * sig);
          io.store(to_z + r * n + i, go * io.load(a + i) * simd::silu_slope(gate, sig));
        });
  });
}

template <class T>
void gate_sigmoid_forward(int64_t rows, int64_t n, const RowStarts<T>& y, const RowStarts<T>& z, T scale, T* to) {
  const Vec<T> factor(scale);
  for_rows(rows, n, [&](int64_t r) {
    const T *a = y[r], *b = z[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          io.store(to + r * n + i, factor * io.load(a + i) * simd::sigmoid(io.load(b + i)));
        });
  });
}
template <class T>
void gate_sigmoid_backward(int64_t rows, int64_t n, const RowStarts<T>& gy, const RowStarts<T>& y,
                           const RowStarts<T>& z, T scale, const RowTargets<T>& dy, const RowTargets<T>& dz) {
  const Vec<T> factor(scale), one(T(1));
  for_rows(rows, n, [&](int64_t r) {
    const T *g = gy[r], *a = y[r], *b = z[r];
    T *to_y = dy[r], *to_z = dz[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          const auto sig = simd::sigmoid(io.load(b + i)), d = factor * io.load(g + i) * sig;
          io.store(to_z + i, d * io.load(a + i) * (one - sig));
          io.store(to_y + i, d);
        });
  });
}

template <class T>
void gate_swish_forward(int64_t rows, int64_t n, const RowStarts<T>& ab, T beta, T* to) {
  const Vec<T> slope(beta);
  for_rows(rows, n, [&](int64_t r) {
    const T *a = ab[r], *b = a + n;
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          const auto v = io.load(a + i);
          io.store(to + r * n + i, v * simd::sigmoid(slope * v) * io.load(b + i));
        });
  });
}
template <class T>
double gate_swish_backward(int64_t rows, int64_t n, const RowStarts<T>& gy, const RowStarts<T>& ab, T beta, T* to) {
  const Vec<T> slope(beta);
  const Ranges ranges(rows, n);
  std::vector<double> parts(static_cast<size_t>(ranges.count), 0.0);
  ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *g = gy[r], *a = ab[r], *b = a + n;
      T *da = to + 2 * r * n, *db = da + n;
      parts[static_cast<size_t>(part)] += simd::sum_packs<T>(
          n, [=](int64_t i, auto io) __attribute__((always_inline)) {
            const auto go = io.load(g + i), v = io.load(a + i), z = slope * v, sig = simd::sigmoid(z);
            const auto into = go * io.load(b + i);
            io.store(db + i, go * v * sig);
            io.store(da + i, into * simd::silu_slope(z, sig));
            return into * v * v * sig * (Vec<T>(T(1)) - sig);
          });
    }
  });
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

template <class T>
void softplus_bias_forward(int64_t rows, int64_t n, const RowStarts<T>& x, const T* c, T* to) {
  for_rows(rows, n, [&](int64_t r) {
    const T* a = x[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          io.store(to + r * n + i, simd::softplus(io.load(a + i) + io.load(c + i)));
        });
  });
}
template <class T>
void softplus_bias_backward(int64_t rows, int64_t n, const RowStarts<T>& gy, const RowStarts<T>& x, const T* c, T* to,
                            T* d_bias) {
  for_rows(rows, n, [&](int64_t r) {
    const T *g = gy[r], *a = x[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          const auto v = io.load(a + i) + io.load(c + i), go = io.load(g + i);
          auto d = go * simd::sigmoid(v);
          for (size_t j = 0; j < std::size(d.v); ++j) d.v[j] = xsimd::select(v.v[j] > Vec<T>(T(20)), go.v[j], d.v[j]);
          io.store(to + r * n + i, d);
        });
  });
  const Ranges ranges(rows, n);
  const PartSums<T> parts(ranges.count, n);
  ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
    T* const sum = parts.start(part);
    for (int64_t r = begin; r < end; ++r)
      for (int64_t i = 0; i < n; ++i) sum[i] += to[r * n + i];
  });
  parts.total(0, n, d_bias);
}

template <class T>
void log_sigmoid_forward(int64_t rows, int64_t n, const RowStarts<T>& x, T scale, T* to) {
  const Vec<T> factor(scale);
  for_rows(rows, n, [&](int64_t r) {
    const T* a = x[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          const auto v = io.load(a + i);
          auto low = v;
          for (auto& part : low.v) part = xsimd::min(part, Vec<T>(T(0)));
          io.store(to + r * n + i, factor * (low - simd::log1p_exp_of_minus_abs(v)));
        });
  });
}
template <class T>
void log_sigmoid_backward(int64_t rows, int64_t n, const RowStarts<T>& gy, const RowStarts<T>& x, T scale, T* to) {
  const Vec<T> factor(scale);
  for_rows(rows, n, [&](int64_t r) {
    const T *g = gy[r], *a = x[r];
    simd::for_packs<T, simd::kWide>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) {
          io.store(to + r * n + i, factor * io.load(g + i) * simd::sigmoid(-io.load(a + i)));
        });
  });
}

#define SB_INSTANTIATE(T)                                                                                              \
  template void gate_silu_forward(int64_t, int64_t, const RowStarts<T>&, const RowStarts<T>&, T*);                     \
  template void gate_silu_backward(int64_t, int64_t, const RowStarts<T>&, const RowStarts<T>&, const RowStarts<T>&,    \
                                   T*, T*);                                                                            \
  template void gate_sigmoid_forward(int64_t, int64_t, const RowStarts<T>&, const RowStarts<T>&, T, T*);               \
  template void gate_sigmoid_backward(int64_t, int64_t, const RowStarts<T>&, const RowStarts<T>&, const RowStarts<T>&, \
                                      T, const RowTargets<T>&, const RowTargets<T>&);                                  \
  template void gate_swish_forward(int64_t, int64_t, const RowStarts<T>&, T, T*);                                      \
  template double gate_swish_backward(int64_t, int64_t, const RowStarts<T>&, const RowStarts<T>&, T, T*);              \
  template void softplus_bias_forward(int64_t, int64_t, const RowStarts<T>&, const T*, T*);                            \
  template void softplus_bias_backward(int64_t, int64_t, const RowStarts<T>&, const RowStarts<T>&, const T*, T*, T*);  \
  template void log_sigmoid_forward(int64_t, int64_t, const RowStarts<T>&, T, T*);                                     \
  template void log_sigmoid_backward(int64_t, int64_t, const RowStarts<T>&, const RowStarts<T>&, T, T*);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
