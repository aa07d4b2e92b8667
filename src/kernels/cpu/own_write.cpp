// What a frame of Mamba-3 reads of its own write, one pass over memory in either direction.
#include "kernels/cpu/own_write.h"

#include "kernels/cpu/packs.h"

namespace sb::cpu {
namespace {

template <class T>
T dot(int64_t n, const T* a, const T* b) {
  return simd::sum_packs<T>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) { return io.load(a + i) * io.load(b + i); });
}

}  // namespace

template <class T>
void own_write_forward(const OwnWrite<T>& p, const RowStarts<T>& read, T* to) {
  Ranges(p.rows, p.keys + p.values).split([&](int64_t begin, int64_t end) {
    const RowStarts<T> q = p.q, k = p.k, v = p.v, from = read;
    for (int64_t row = begin; row < end; ++row) {
      const T weight = p.scale * p.here[row] * dot(p.keys, q[row], k[row]) + (p.skip ? p.skip[row % p.heads] : T(0));
      const simd::Vec<T> factor(weight);
      const T *const x = from[row], *const y = v[row];
      T* const out = to + row * p.values;
      simd::for_packs<T>(
          p.values, [=](int64_t i, auto io) __attribute__((always_inline)) {
            io.store(out + i, io.load(x + i) + factor * io.load(y + i));
          });
    }
  });
}

template <class T>
void own_write_backward(const OwnWrite<T>& p, const OwnWriteGradients<T>& grad) {
  const Ranges ranges(p.rows, p.keys + p.values);
  const PartSums<T> skips(ranges.count, p.heads);
  ranges.parallel([&](int64_t range, int64_t begin, int64_t end) {
    const RowStarts<T> q = p.q, k = p.k, v = p.v, d_to = grad.d_to;
    const RowTargets<T> dq = grad.dq, dk = grad.dk, dv = grad.dv;
    T* const d_skip = skips.start(range);
    for (int64_t row = begin; row < end; ++row) {
      const T product = dot(p.keys, q[row], k[row]), given = dot(p.values, d_to[row], v[row]);
      const T here = p.scale * p.here[row];
      grad.d_here[row] = p.scale * product * given;
      d_skip[row % p.heads] += given;
      const simd::Vec<T> weight(here * product + (p.skip ? p.skip[row % p.heads] : T(0))), factor(here * given);
      const T *const a = q[row], *const b = k[row], *const g = d_to[row];
      T *const to_q = dq[row], *const to_k = dk[row], *const to_v = dv[row];
      simd::for_packs<T>(
          p.keys, [=](int64_t i, auto io) __attribute__((always_inline)) {
            const auto x = io.load(a + i), y = io.load(b + i);
            io.store(to_q + i, factor * y);
            io.store(to_k + i, factor * x);
          });
      simd::for_packs<T>(
          p.values, [=](int64_t i, auto io)
                        __attribute__((always_inline)) { io.store(to_v + i, weight * io.load(g + i)); });
    }
  });
  if (grad.d_skip) skips.total(0, p.heads, grad.d_skip);
}

#define SB_INSTANTIATE(T)                                                       \
  template void own_write_forward(const OwnWrite<T>&, const RowStarts<T>&, T*); \
  template void own_write_backward(const OwnWrite<T>&, const OwnWriteGradients<T>&);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
