// Causal depthwise convolution of width 4, four steps at a time: seven rows of x give four rows of y. The backward pass
// recomputes the input of SiLU for four steps at a time, and computes dx, dw and db while these rows are in the cache.
#include "kernels/cpu/conv4.h"

#include <vector>

#include "kernels/cpu/packs.h"
#include "kernels/cpu/parallel.h"

namespace sb::cpu {
namespace {

using simd::Vec;

constexpr int kSteps = 4;

// A task (slot, block of channels) processes the batch elements slot, slot + slots, …. Tasks depend only on the sizes.
struct Division {
  int64_t batch, channels, slots, width;
  Division(int64_t b, int64_t c) : batch(b), channels(c), slots(conv4_slots(b)) {
    const int64_t blocks = std::clamp<int64_t>(16 / slots, 1, std::max<int64_t>(1, c / 32));
    width = (c + blocks - 1) / blocks;
    width = std::min<int64_t>((width + 15) / 16 * 16, 1024);
  }
  int64_t blocks() const { return (channels + width - 1) / width; }
  // body(slot, first channel, number of channels)
  template <class Body>
  void parallel(const Body& body) const {
    for_each_task(slots * blocks(), [&](int64_t task) {
      const int64_t first = task % blocks() * width;
      body(task / blocks(), first, std::min(width, channels - first));
    });
  }
};

// Row t of a batch element for t = -3 .. T-1: x, or the tail, or zeros before it.
template <class T>
struct Past {
  const T *x, *tail, *zeros;
  int64_t stride, channels;
  const T* operator[](int64_t t) const { return t >= 0 ? x + t * stride : tail ? tail + (t + 3) * channels : zeros; }
};

// z of R steps, V vectors of channels: step r in z[r * V] ..
template <class T, int R, class Io>
inline __attribute__((always_inline)) void convolve_pack(const Io& io, int64_t i, int64_t channels,
                                                         const T* const (&in)[R + 3], const T* w,
                                                         Vec<T> (&z)[R * Io::vectors]) {
  constexpr int V = Io::vectors;
  Vec<T> x[(R + 3) * V];
  for (int r = 0; r < R + 3; ++r) {
    const auto row = io.load(in[r] + i);
    for (int v = 0; v < V; ++v) x[r * V + v] = row.v[v];
  }
  const auto bias = io.load(w + 4 * channels + i);
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) z[r * V + v] = bias.v[v];
  for (int k = 0; k < 4; ++k) {
    const auto wk = io.load(w + k * channels + i);
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) z[r * V + v] = xsimd::fma(wk.v[v], x[(r + k) * V + v], z[r * V + v]);
  }
}
// The r-th row of V vectors
template <class T, int V, int N>
inline __attribute__((always_inline)) simd::Pack<T, V> row_of(const Vec<T> (&z)[N], int r) {
  return simd::each<T, V>([&](int v) { return z[r * V + v]; });
}
template <int R>
inline constexpr int kColumns = simd::kWide > R ? simd::kWide / R : 1;  // vectors of channels that go together

template <class T, int R, bool silu>
void forward_rows(int64_t n, int64_t channels, const T* const (&in)[R + 3], const T* w, T* y) {
  simd::for_packs<T, kColumns<R>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        constexpr int V = decltype(io)::vectors;
        Vec<T> z[R * V], gate[R * V];
        convolve_pack<T, R>(io, i, channels, in, w, z);
        if constexpr (silu) {
          for (int j = 0; j < R * V; ++j) gate[j] = z[j];
          simd::sigmoid<T, R * V>(gate);
          for (int j = 0; j < R * V; ++j) z[j] *= gate[j];
        }
        for (int r = 0; r < R; ++r) io.store(y + r * channels + i, row_of<T, V>(z, r));
      });
}

// gz of R steps: gy times the derivative of SiLU at the recomputed input.
template <class T, int R>
void gate_rows(int64_t n, int64_t channels, const T* const (&in)[R + 3], const T* const (&gy)[R], const T* w,
               T* const (&gz)[R]) {
  simd::for_packs<T, kColumns<R>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        constexpr int V = decltype(io)::vectors;
        Vec<T> z[R * V], gate[R * V];
        convolve_pack<T, R>(io, i, channels, in, w, z);
        for (int j = 0; j < R * V; ++j) gate[j] = z[j];
        simd::sigmoid<T, R * V>(gate);
        for (int j = 0; j < R * V; ++j) z[j] = simd::silu_slope(z[j], gate[j]);
        for (int r = 0; r < R; ++r) io.store(gz[r] + i, io.load(gy[r] + i) * row_of<T, V>(z, r));
      });
}

// R steps from t: dw and db [5][width] of those steps, and the dx of steps t-3 .. t-4+R, which are then complete.
// gz: of steps t-3 .. t-1+R. Where dx is null (before the sequence) nothing is written.
template <class T, int R>
void gather_rows(int64_t n, int64_t channels, int64_t width, const T* const (&in)[R + 3], const T* const (&gz)[R + 3],
                 const T* w, T* dw, T* const (&dx)[R]) {
  simd::for_vectors<T>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        Vec<T> x[R + 3], g[R + 3], wk[4];
        for (int r = 0; r < R + 3; ++r) g[r] = io.load(gz[r] + i);
        for (int k = 0; k < 4; ++k) wk[k] = io.load(w + k * channels + i);
        for (int r = 0; r < R; ++r) {
          if (!dx[r]) continue;
          Vec<T> d = wk[3] * g[r];
          for (int k = 2; k >= 0; --k) d = xsimd::fma(wk[k], g[r + 3 - k], d);
          io.store(dx[r] + i, d);
        }
        for (int r = 0; r < R + 3; ++r) x[r] = io.load(in[r] + i);
        for (int k = 0; k < 4; ++k) {
          Vec<T> sum = io.load(dw + k * width + i);
          for (int r = 0; r < R; ++r) sum = xsimd::fma(g[r + 3], x[r + k], sum);
          io.store(dw + k * width + i, sum);
        }
        Vec<T> sum = io.load(dw + 4 * width + i);
        for (int r = 0; r < R; ++r) sum += g[r + 3];
        io.store(dw + 4 * width + i, sum);
      });
}

template <class T, bool silu>
void convolve(const Conv4Input<T>& p, T* y) {
  const int64_t time = p.time, C = p.channels;
  const std::vector<T> zeros(static_cast<size_t>(C), T(0));
  const Division division(p.batch, C);
  division.parallel([&](int64_t slot, int64_t c, int64_t n) {
    for (int64_t b = slot; b < p.batch; b += division.slots) {
      const Past<T> past{p.x + b * p.x_batch + c, p.tail ? p.tail + b * 3 * C + c : nullptr, zeros.data() + c, p.x_time,
                         C};
      T* out = y + b * time * C + c;
      const T* weight = p.w + c;
      int64_t t = 0;
      for (; t + kSteps <= time; t += kSteps)
        forward_rows<T, kSteps, silu>(
            n, C, {past[t - 3], past[t - 2], past[t - 1], past[t], past[t + 1], past[t + 2], past[t + 3]}, weight,
            out + t * C);
      for (; t < time; ++t)
        forward_rows<T, 1, silu>(n, C, {past[t - 3], past[t - 2], past[t - 1], past[t]}, weight, out + t * C);
    }
  });
}

template <class T, bool silu>
void convolve_back(const Conv4Input<T>& p, const T* gy, const Conv4Gradient<T>& dx, T* d_tail, T* dw) {
  const int64_t time = p.time, C = p.channels;
  const std::vector<T> zeros(static_cast<size_t>(C), T(0));
  const Division division(p.batch, C);
  division.parallel([&](int64_t slot, int64_t c, int64_t n) {
    // gz of the last eight steps, step t in row t % 8
    Arena<T> arena(Arena<T>::rounded(5 * n) + Arena<T>::rounded(8 * n));
    T *sums = arena.take(5 * n), *ring = arena.take(8 * n);
    std::fill_n(sums, 5 * n, T(0));
    const T* none = zeros.data() + c;
    for (int64_t b = slot; b < p.batch; b += division.slots) {
      const Past<T> past{p.x + b * p.x_batch + c, p.tail ? p.tail + b * 3 * C + c : nullptr, none, p.x_time, C};
      const T* g = gy + b * time * C + c;
      T* out = dx.data + b * dx.batch + c;
      T* out_tail = p.tail ? d_tail + b * 3 * C + c : nullptr;
      const T* weight = p.w + c;
      const auto d_row = [&](int64_t t) -> T* {
        return t >= 0 ? out + t * dx.time : out_tail ? out_tail + (t + 3) * C : nullptr;
      };
      const auto gz = [&](int64_t t) -> const T* {
        return t < 0 || t >= time ? none : silu ? ring + t % 8 * n : g + t * C;
      };
      const auto to_gz = [&](int64_t t) { return ring + t % 8 * n; };
      int64_t t = 0;
      for (; t + kSteps <= time; t += kSteps) {
        const T* const in[] = {past[t - 3], past[t - 2], past[t - 1], past[t], past[t + 1], past[t + 2], past[t + 3]};
        if constexpr (silu)
          gate_rows<T, kSteps>(n, C, in, {g + t * C, g + (t + 1) * C, g + (t + 2) * C, g + (t + 3) * C}, weight,
                               {to_gz(t), to_gz(t + 1), to_gz(t + 2), to_gz(t + 3)});
        gather_rows<T, kSteps>(n, C, n, in, {gz(t - 3), gz(t - 2), gz(t - 1), gz(t), gz(t + 1), gz(t + 2), gz(t + 3)},
                               weight, sums, {d_row(t - 3), d_row(t - 2), d_row(t - 1), d_row(t)});
      }
      for (; t < time; ++t) {
        const T* const in[] = {past[t - 3], past[t - 2], past[t - 1], past[t]};
        if constexpr (silu) gate_rows<T, 1>(n, C, in, {g + t * C}, weight, {to_gz(t)});
        gather_rows<T, 1>(n, C, n, in, {gz(t - 3), gz(t - 2), gz(t - 1), gz(t)}, weight, sums, {d_row(t - 3)});
      }
      for (; t < time + 3; ++t)  // no later steps: their gz is zero
        gather_rows<T, 1>(n, C, n, {none, none, none, none}, {gz(t - 3), gz(t - 2), gz(t - 1), none}, weight, sums,
                          {d_row(t - 3)});
    }
    for (int64_t k = 0; k < 5; ++k) std::copy_n(sums + k * n, n, dw + (slot * 5 + k) * C + c);
  });
}

}  // namespace

int64_t conv4_slots(int64_t batch) {
  return std::min<int64_t>(batch, 16);
}

template <class T>
void conv4_forward(const Conv4Input<T>& p, T* y) {
  p.silu ? convolve<T, true>(p, y) : convolve<T, false>(p, y);
}
template <class T>
void conv4_backward(const Conv4Input<T>& p, const T* gy, const Conv4Gradient<T>& dx, T* d_tail, T* dw) {
  (p.silu ? convolve_back<T, true> : convolve_back<T, false>)(p, gy, dx, d_tail, dw);
}

#define SB_INSTANTIATE(T)                                \
  template void conv4_forward(const Conv4Input<T>&, T*); \
  template void conv4_backward(const Conv4Input<T>&, const T*, const Conv4Gradient<T>&, T*, T*);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
