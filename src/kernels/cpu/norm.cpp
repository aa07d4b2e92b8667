// Norms over the last axis, optionally with a SiLU gate before or after. Each pass reads its inputs once; the scale s
// of each row is saved for the backward pass.
#include "kernels/cpu/norm.h"

#include <cmath>

#include "kernels/cpu/packs.h"

namespace sb::cpu {
namespace {

using simd::Vec;
using Gate = NormGate;

template <Gate G>
inline constexpr int abreast = G == Gate::none ? 4 : simd::kWide;  // vectors processed together

// y = s u gain with u the row: s of a row from the sum of its squares, and c in du = s t - u c, c = slope * (t . u).
template <class T>
struct RowScale {
  Norm norm;
  T eps, n;
  explicit RowScale(const NormRows<T>& p) : norm(p.norm), eps(static_cast<T>(p.eps)), n(static_cast<T>(p.width)) {}
  // Sums of squares become scales, in place.
  void scale(int64_t rows, T* s) const {
    const auto each = [&](auto norm_of) {
      simd::for_vectors<T>(rows, [=](int64_t i, auto io) { io.store(s + i, Vec<T>(T(1)) / norm_of(io.load(s + i))); });
    };
    const Vec<T> add(eps), count(n);
    if (norm == Norm::rms) each([&](const Vec<T>& squares) { return xsimd::sqrt(squares / count + add); });
    if (norm == Norm::outer_eps) each([&](const Vec<T>& squares) { return xsimd::sqrt(squares / count) + add; });
    if (norm == Norm::l2) each([&](const Vec<T>& squares) { return xsimd::sqrt(squares + add); });
  }
  T slope(T s) const {
    switch (norm) {
      case Norm::rms:
        return s * s * s / n;
      case Norm::outer_eps: {
        const T root = T(1) / s - eps;
        return root > 0 ? s * s / (n * root) : T(0);
      }
      case Norm::l2:
        return s * s * s;
    }
    return 0;
  }
};

// First pass over a row: returns the sum of squares. For NormGate::before, applies the gate first and stores the gated
// row in y.
template <class T, Gate G>
inline __attribute__((always_inline)) T sum_of_squares(int64_t n, const T* x, const T* gate, T* y) {
  return simd::sum_packs<T, abreast<G>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        auto u = io.load(x + i);
        if constexpr (G == Gate::before) {
          const auto g = io.load(gate + i);
          u = u * g * simd::sigmoid(g);
          io.store(y + i, u);
        }
        return u * u;
      });
}

template <class T, Gate G, bool has_gain>
inline __attribute__((always_inline)) void scale_row(int64_t n, T s, const T* x, const T* gate, const T* gain, T* y) {
  simd::for_packs<T, abreast<G>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        auto v = io.load((G == Gate::before ? y : x) + i) * Vec<T>(s);
        if constexpr (has_gain) v = v * io.load(gain + i);
        if constexpr (G == Gate::after) {
          const auto g = io.load(gate + i);
          v = v * g * simd::sigmoid(g);
        }
        io.store(y + i, v);
      });
}

template <class T, Gate G, bool has_gain>
void forward_rows(const NormRows<T>& p, T* y, T* s, int64_t begin, int64_t end) {
  const auto xs = p.x, gates = p.gate;
  const RowScale<T> row(p);
  const int64_t n = p.width;
  const T* const gain = p.gain;
  for_row_blocks(
      begin, end, rows_of_block(4096, n), [=](int64_t first, int64_t last) __attribute__((always_inline)) {
        for (int64_t r = first; r < last; ++r) s[r] = sum_of_squares<T, G>(n, xs[r], gates[r], y + r * n);
        row.scale(last - first, s + first);
        for (int64_t r = first; r < last; ++r) scale_row<T, G, has_gain>(n, s[r], xs[r], gates[r], gain, y + r * n);
      });
}

// First pass over a row in backward: returns t . u and adds to d_gain. Stores gy silu(gate) in dx (NormGate::after) or
// the sigmoid in d_gate (NormGate::before) for the second pass.
template <class T, Gate G, bool has_gain>
inline __attribute__((always_inline)) T dot_of_row(int64_t n, T s, const T* gy, const T* x, const T* gate,
                                                   const T* gain, T* dx, T* d_gate, T* d_gain) {
  return simd::sum_packs<T, abreast<G>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        auto t = io.load(gy + i), u = io.load(x + i);
        if constexpr (G == Gate::after) {
          const auto z = io.load(gate + i), sig = simd::sigmoid(z);
          io.store(d_gate + i, t * u * Vec<T>(s) * io.load(gain + i) * simd::silu_slope(z, sig));
          t = t * z * sig;
          io.store(dx + i, t);
        }
        if constexpr (G == Gate::before) {
          const auto z = io.load(gate + i), sig = simd::sigmoid(z);
          u = u * z * sig;
          io.store(d_gate + i, sig);
        }
        const auto product = t * u;
        if constexpr (!has_gain) return product;
        io.store(d_gain + i, io.load(d_gain + i) + product * Vec<T>(s));
        return product * io.load(gain + i);
      });
}

// Second pass. t: gy, or the values that the first pass stored.
template <class T, Gate G, bool has_gain>
inline __attribute__((always_inline)) void back_row(int64_t n, T s, T c, const T* t, const T* x, const T* gate,
                                                    const T* gain, T* dx, T* d_gate) {
  simd::for_packs<T, G == Gate::after ? simd::kWide : 4>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto raw = io.load(x + i);
        auto du = io.load(t + i) * Vec<T>(s);
        if constexpr (has_gain) du = du * io.load(gain + i);
        if constexpr (G == Gate::before) {
          const auto z = io.load(gate + i), sig = io.load(d_gate + i), silu = z * sig;
          du = du - raw * silu * Vec<T>(c);
          io.store(dx + i, du * silu);
          io.store(d_gate + i, du * raw * simd::silu_slope(z, sig));
        } else {
          io.store(dx + i, du - raw * Vec<T>(c));
        }
      });
}

template <class T, Gate G, bool has_gain>
void backward_rows(const NormRows<T>& p, const RowStarts<T>& gy, const T* s, const RowTargets<T>& d_x,
                   const RowTargets<T>& d_g, T* d_gain, int64_t begin, int64_t end) {
  const auto gs = gy, xs = p.x, gates = p.gate;
  const auto dx = d_x, d_gate = d_g;
  const RowScale<T> row(p);
  const int64_t n = p.width;
  const T* const gain = p.gain;
  for_row_blocks(
      begin, end, rows_of_block(2048, n), [=](int64_t first, int64_t last) __attribute__((always_inline)) {
        T c[kBlockRows];
        for (int64_t r = first; r < last; ++r)
          c[r - first] = row.slope(s[r]) *
                         dot_of_row<T, G, has_gain>(n, s[r], gs[r], xs[r], gates[r], gain, dx[r], d_gate[r], d_gain);
        for (int64_t r = first; r < last; ++r)
          back_row<T, G, has_gain>(n, s[r], c[r - first], G == Gate::after ? dx[r] : gs[r], xs[r], gates[r], gain,
                                   dx[r], d_gate[r]);
      });
}

// body(gate, whether there is a gain); a gated norm always has one.
template <class Body>
void with_kind(Gate gate, bool has_gain, const Body& body) {
  if (gate == Gate::none && has_gain) body(std::integral_constant<Gate, Gate::none>{}, std::true_type{});
  if (gate == Gate::none && !has_gain) body(std::integral_constant<Gate, Gate::none>{}, std::false_type{});
  if (gate == Gate::after) body(std::integral_constant<Gate, Gate::after>{}, std::true_type{});
  if (gate == Gate::before) body(std::integral_constant<Gate, Gate::before>{}, std::true_type{});
}
}  // namespace

template <class T>
void norm_forward(const NormRows<T>& p, T* y, T* scales) {
  with_kind(p.kind, p.gain, [&](auto G, auto has_gain) {
    Ranges(p.rows, p.width).split([&](int64_t begin, int64_t end) {
      forward_rows<T, G, has_gain>(p, y, scales, begin, end);
    });
  });
}

template <class T>
void norm_backward(const NormRows<T>& p, const RowStarts<T>& gy, const T* scales, const RowTargets<T>& dx,
                   const RowTargets<T>& d_gate, T* d_gain) {
  const Ranges ranges(p.rows, p.width);
  const PartSums<T> parts(ranges.count, p.gain ? p.width : 0);
  with_kind(p.kind, p.gain, [&](auto G, auto has_gain) {
    ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
      backward_rows<T, G, has_gain>(p, gy, scales, dx, d_gate, parts.start(part), begin, end);
    });
  });
  if (d_gain) parts.total(0, p.width, d_gain);
}

#define SB_INSTANTIATE(T)                                                                              \
  template void norm_forward(const NormRows<T>&, T*, T*);                                              \
  template void norm_backward(const NormRows<T>&, const RowStarts<T>&, const T*, const RowTargets<T>&, \
                              const RowTargets<T>&, T*);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
