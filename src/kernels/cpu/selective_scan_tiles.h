// Shared parts of the forward and backward pass of the selective scan: scratch layout, and padded copies of B and C.
#pragma once
#include <cmath>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/selective_scan.h"
#include "kernels/cpu/vectors.h"

namespace sb::cpu {

constexpr int64_t kScanChannels = 32;  // channels that are transposed together

template <class T>
int64_t padded_states(int64_t states) {
  return (states + simd::lanes<T> - 1) / simd::lanes<T> * simd::lanes<T>;
}

// Returns decay rates [D, padded states] in base 2: a = 2^(delta * rate), rate = -e^{A_log} log2(e); 0 in the padding.
template <class T>
std::vector<T> decay_rates(const ScanSizes& s, const T* A_log) {
  const int64_t padded_n = padded_states<T>(s.states);
  std::vector<T> rate(static_cast<size_t>(s.channels * padded_n), T(0));
  parallel_for(s.channels, 64, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      for (int64_t n = 0; n < s.states; ++n)
        rate[static_cast<size_t>(c * padded_n + n)] =
            static_cast<T>(-std::exp(static_cast<double>(A_log[c * s.states + n])) * 1.4426950408889634074);
  });
  return rate;
}

// Returns log2(a_min), bounded below by the exponent that exp2_bounded_above turns into zero.
template <class T>
T least_exponent(double a_min) {
  return static_cast<T>(std::max<double>(std::log2(a_min), -simd::ExpTable<T>::bias));
}

// Copies rows of `width` elements into rows of `padded_width`, followed by zeros.
template <class T>
void copy_padded(int64_t rows, const T* from, int64_t width, T* to, int64_t padded_width) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * width, width, to + r * padded_width);
    std::fill(to + r * padded_width + width, to + (r + 1) * padded_width, T(0));
  }
}

// to[c][t] = f(t, c): transposes a block [time, channels], so that the steps of a channel are adjacent.
template <class T, class F>
void transpose_in(int64_t time, int64_t channels, T* to, int64_t ld, const F& f) {
  for (int64_t t = 0; t < time; ++t)
    for (int64_t c = 0; c < channels; ++c) to[c * ld + t] = f(t, c);
}

// total[t] += sum of the lanes of sums[t]
template <class T>
void add_lane_sums(int64_t time, const simd::Vec<T>* sums, T* total) {
  constexpr int64_t L = simd::lanes<T>;
  const T* lane = reinterpret_cast<const T*>(sums);
  for (int64_t t = 0; t < time; ++t) {
    T sum = lane[t * L];
    for (int64_t l = 1; l < L; ++l) sum += lane[t * L + l];
    total[t] += sum;
  }
}

// body(first state, vectors) for tiles of four vectors, then two, then one; `vectors` is a compile-time constant.
template <class T, class Body>
void for_state_tiles(int64_t padded_n, const Body& body) {
  constexpr int64_t L = simd::lanes<T>;
  int64_t n = 0;
  for (; n + 4 * L <= padded_n; n += 4 * L) body(n, std::integral_constant<int, 4>{});
  for (; n + 2 * L <= padded_n; n += 2 * L) body(n, std::integral_constant<int, 2>{});
  for (; n + L <= padded_n; n += L) body(n, std::integral_constant<int, 1>{});
}

struct ScanTask {
  int64_t slot, group, first_channel, last_channel;
  ScanTask(const ScanSizes& s, int64_t task)
      : slot(task / s.channel_groups()),
        group(task % s.channel_groups()),
        first_channel(s.channels * group / s.channel_groups()),
        last_channel(s.channels * (group + 1) / s.channel_groups()) {}
};

}  // namespace sb::cpu
