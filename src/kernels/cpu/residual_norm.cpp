// LayerNorm(dropout(z) + residual), and dropout alone. The mask is not stored; the backward pass recomputes it.
#include "kernels/cpu/residual_norm.h"

#include <cmath>
#include <optional>

#include "kernels/cpu/packs.h"

namespace sb::cpu {
namespace {

using simd::Vec;

constexpr double kEps = 1e-5;

// Size of a block of rows that is passed over twice: what fits into the L1 cache or, if that were only one row, into
// the L2 cache. Measured for widths 64 to 2048 (bench/notes/fused.md).
constexpr int64_t kNear = 1024, kFar = 16384;  // elements
int64_t forward_rows(int64_t n) {
  return rows_of_block(n <= 256 ? kNear : kFar, n);
}
int64_t backward_rows(int64_t n) {
  return rows_of_block(n <= 1024 ? kNear : kFar, n);
}

// The factors 0 or 1 / (1 - p) of the elements of a block of rows.
template <class T>
class BlockMask {
 public:
  BlockMask(const DropoutMask& mask, int64_t rows) : arena_(mask.p == 0 ? 0 : Arena<T>::rounded(rows * mask.channels)) {
    if (mask.p == 0) return;
    rows_.emplace(mask, rows);
    scale_ = arena_.take(rows * mask.channels);
  }
  const T* fill(int64_t first, int64_t last) const {
    rows_->fill(first, last, scale_);
    return scale_;
  }

 private:
  std::optional<DropoutRows> rows_;
  Arena<T> arena_;
  T* scale_ = nullptr;
};

// Computes u = dropout(z) + residual, its sum and its sum of squares.
template <class T, bool drops>
inline __attribute__((always_inline)) simd::Pack<T, 2> add_row(int64_t n, const T* z, const T* scale, const T* residual,
                                                               T* u) {
  return simd::sums_of<T, 2>(
      n, [=](int64_t i, auto io, auto& sum) __attribute__((always_inline)) {
        auto value = io.load(z + i);
        if constexpr (drops) value = value * io.load(scale + i);
        value = value + io.load(residual + i);
        io.store(u + i, value);
        sum[0] = sum[0] + value;
        sum[1] = sum[1] + value * value;
      });
}
// Computes the variance as a difference of these sums. If the mean is large compared to the deviations, this is not
// accurate, and the row is read once more.
template <class T>
inline void mean_and_scale(int64_t n, const simd::Pack<T, 2>& lanes, const T* u, T& mean, T& s) {
  const T sum = simd::horizontal_sum(lanes.v[0]), one_nth = T(1) / static_cast<T>(n);
  mean = sum * one_nth;
  const T of_mean = sum * mean;
  T squares = simd::horizontal_sum(lanes.v[1]) - of_mean;
  if (!(of_mean <= 8 * squares))
    squares = simd::sum_packs<T>(
        n, [ u, centre = mean ](int64_t i, auto io) __attribute__((always_inline)) {
          const auto centred = io.only(io.load(u + i) - Vec<T>(centre));
          return centred * centred;
        });
  s = T(1) / std::sqrt(squares * one_nth + static_cast<T>(kEps));
}
// x = (u - mean) s is kept for the backward pass.
template <class T, bool keeps>
inline __attribute__((always_inline)) void normalise_row(int64_t n, T mean, T s, const T* u, const T* gain,
                                                         const T* bias, T* x, T* y) {
  simd::for_packs<T, simd::kWide>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto unit = (io.load(u + i) - Vec<T>(mean)) * Vec<T>(s);
        if constexpr (keeps) io.store(x + i, unit);
        io.store(y + i, unit * io.load(gain + i) + io.load(bias + i));
      });
}

template <class T, bool drops, bool keeps>
void norm_rows(const ResidualNormInput<T>& p, T* y, T* x, T* kept, int64_t begin, int64_t end) {
  const int64_t n = p.width, rows = forward_rows(n);
  const BlockMask<T> mask(p.drop, rows);
  Arena<T> arena(Arena<T>::rounded(rows * n));
  const auto zs = p.z, rs = p.residual;
  const T *const w = p.gain, *const c = p.bias;
  T* const u = arena.take(rows * n);
  const auto block = [ =, &mask ](int64_t first, int64_t last) __attribute__((always_inline)) {
    simd::Pack<T, 2> lanes[kBlockRows];
    T mean[kBlockRows], s[kBlockRows];
    const T* scale = drops ? mask.fill(first, last) : nullptr;
    if constexpr (keeps) __builtin_prefetch(kept + std::min(first + 64, end - 1), 1);  // a store that waits delays all
    for (int64_t i = 0, r = first; r < last; ++i, ++r)
      lanes[i] = add_row<T, drops>(n, zs[r], drops ? scale + i * n : nullptr, rs[r], u + i * n);
    for (int64_t i = 0, r = first; r < last; ++i, ++r) {
      mean_and_scale<T>(n, lanes[i], u + i * n, mean[i], s[i]);
      if constexpr (keeps) kept[r] = s[i];
    }
    for (int64_t i = 0, r = first; r < last; ++i, ++r)
      normalise_row<T, keeps>(n, mean[i], s[i], u + i * n, w, c, keeps ? x + r * n : nullptr, y + r * n);
  };
  for_row_blocks(begin, end, rows, block);
}

// First pass over a row in backward: computes `sum` and `dot` for the second pass, and adds to d_gain and d_bias.
template <class T>
inline __attribute__((always_inline)) simd::Pack<T, 2> sums_of_row(int64_t n, const T* gy, const T* x, const T* gain,
                                                                   T* d_gain, T* d_bias) {
  return simd::sums_of<T, 2>(
      n, [=](int64_t i, auto io, auto& sum) __attribute__((always_inline)) {
        const auto unit = io.load(x + i), g = io.load(gy + i), gw = g * io.load(gain + i);
        io.store(d_bias + i, io.load(d_bias + i) + g);
        io.store(d_gain + i, g * unit + io.load(d_gain + i));
        sum[0] = sum[0] + gw;
        sum[1] = sum[1] + gw * unit;
      });
}
// The same for two rows: half the reads and writes of d_gain and d_bias.
template <class T>
inline __attribute__((always_inline)) simd::Pack<T, 4> sums_of_two_rows(int64_t n, const T* gy0, const T* gy1,
                                                                        const T* x0, const T* x1, const T* gain,
                                                                        T* d_gain, T* d_bias) {
  return simd::sums_of<T, 4, 2>(
      n, [=](int64_t i, auto io, auto& sum) __attribute__((always_inline)) {
        const auto w = io.load(gain + i), g0 = io.load(gy0 + i), g1 = io.load(gy1 + i);
        const auto unit0 = io.load(x0 + i), unit1 = io.load(x1 + i);
        io.store(d_bias + i, io.load(d_bias + i) + (g0 + g1));
        io.store(d_gain + i, g1 * unit1 + (g0 * unit0 + io.load(d_gain + i)));
        const auto gw0 = g0 * w, gw1 = g1 * w;
        sum[0] = sum[0] + gw0;
        sum[1] = sum[1] + gw0 * unit0;
        sum[2] = sum[2] + gw1;
        sum[3] = sum[3] + gw1 * unit1;
      });
}
// Second pass: d_residual = s (gy gain - mean(gy gain) - x mean(gy gain x)), with the means from `sum` and `dot`. dz is
// written only with dropout; otherwise it equals d_residual. Also prefetches the row of the next block.
template <class T, bool drops>
inline __attribute__((always_inline)) void back_row(int64_t n, T s, T sum, T dot, const T* gy, const T* x,
                                                    const T* scale, const T* gain, T* d_residual, T* dz,
                                                    const T* next_gy, const T* next_x) {
  const T part = -s * (T(1) / static_cast<T>(n)), by_x = part * dot, constant = part * sum;
  simd::for_packs<T, simd::kWide>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        io.prefetch(next_gy + i);
        io.prefetch(next_x + i);
        const auto gw = io.load(gy + i) * io.load(gain + i);
        const auto d = io.load(x + i) * Vec<T>(by_x) + gw * Vec<T>(s) + Vec<T>(constant);
        io.store(d_residual + i, d);
        if constexpr (drops) io.store(dz + i, d * io.load(scale + i));
      });
}

template <class T, bool drops>
void norm_rows_back(const ResidualNormGradients<T>& p, int64_t begin, int64_t end, T* d_gain, T* d_bias) {
  const int64_t n = p.width, rows = backward_rows(n);
  const BlockMask<T> mask(p.drop, rows);
  const auto gs = p.gy;
  const T *const x = p.x, *const w = p.gain, *const s = p.scales;
  T *const dz = p.dz, *const dr = p.d_residual;
  const auto block = [ =, &mask ](int64_t first, int64_t last) __attribute__((always_inline)) {
    simd::Pack<T, 4> lanes[kBlockRows / 2];  // of two rows
    T sums[2 * kBlockRows];
    const T* scale = drops ? mask.fill(first, last) : nullptr;
    int64_t r = first;
    for (; r + 2 <= last; r += 2)
      lanes[(r - first) / 2] = sums_of_two_rows<T>(n, gs[r], gs[r + 1], x + r * n, x + (r + 1) * n, w, d_gain, d_bias);
    if (r < last) {
      const simd::Pack<T, 2> single = sums_of_row<T>(n, gs[r], x + r * n, w, d_gain, d_bias);
      std::copy_n(single.v, 2, lanes[(r - first) / 2].v);
    }
    for (int64_t k = 0; k < 2 * (last - first); ++k) sums[k] = simd::horizontal_sum(lanes[k / 4].v[k % 4]);
    for (r = first; r < last; ++r) {
      const int64_t next = std::min(r + (last - first), end - 1);
      back_row<T, drops>(n, s[r], sums[2 * (r - first)], sums[2 * (r - first) + 1], gs[r], x + r * n,
                         drops ? scale + (r - first) * n : nullptr, w, dr + r * n, dz + r * n, gs[next], x + next * n);
    }
  };
  for_row_blocks(begin, end, rows, block);
}

// body(whether anything drops)
template <class Body>
void with_drops(const DropoutMask& drop, const Body& body) {
  drop.p == 0 ? body(std::false_type{}) : body(std::true_type{});
}

}  // namespace

template <class T>
void residual_norm_forward(const ResidualNormInput<T>& p, T* y, T* x, T* scales) {
  with_drops(p.drop, [&](auto drops) {
    Ranges(p.rows, p.width).split([&](int64_t begin, int64_t end) {
      x ? norm_rows<T, drops, true>(p, y, x, scales, begin, end)
        : norm_rows<T, drops, false>(p, y, x, scales, begin, end);
    });
  });
}

template <class T>
void residual_norm_backward(const ResidualNormGradients<T>& p, T* d_gain, T* d_bias) {
  const Ranges ranges(p.rows, p.width);
  const PartSums<T> parts(ranges.count, 2 * p.width);
  with_drops(p.drop, [&](auto drops) {
    ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
      T* const sums = parts.start(part);
      norm_rows_back<T, drops>(p, begin, end, sums, sums + p.width);
    });
  });
  parts.total(0, p.width, d_gain);
  parts.total(p.width, p.width, d_bias);
}

template <class T>
void dropout_rows(const DropoutMask& drop, int64_t rows, const RowStarts<T>& x, T* y) {
  const int64_t n = drop.channels;
  Ranges(rows, n).split([&](int64_t begin, int64_t end) {
    const int64_t most = forward_rows(n);
    const BlockMask<T> mask(drop, most);
    for_row_blocks(begin, end, most, [&](int64_t first, int64_t last) {
      const T* scale = mask.fill(first, last);
      for (int64_t r = first; r < last; ++r)
        simd::for_packs<T>(
            n, [ from = x[r], to = y + r * n, s = scale + (r - first) * n ](int64_t i, auto io)
                   __attribute__((always_inline)) { io.store(to + i, io.load(from + i) * io.load(s + i)); });
    });
  });
}

template <class T>
void dropout_scales(const DropoutMask& drop, int64_t rows, T* scales) {
  Ranges(rows, drop.channels).split([&](int64_t begin, int64_t end) {
    DropoutRows(drop, end - begin).fill(begin, end, scales + begin * drop.channels);
  });
}

#define SB_INSTANTIATE(T)                                                           \
  template void residual_norm_forward(const ResidualNormInput<T>&, T*, T*, T*);     \
  template void residual_norm_backward(const ResidualNormGradients<T>&, T*, T*);    \
  template void dropout_rows(const DropoutMask&, int64_t, const RowStarts<T>&, T*); \
  template void dropout_scales(const DropoutMask&, int64_t, T*);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
