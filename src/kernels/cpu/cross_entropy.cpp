#include "kernels/cpu/cross_entropy.h"

#include <cmath>

#include "kernels/cpu/packs.h"
#include "kernels/cpu/parallel.h"

namespace sb::cpu {
namespace {

using simd::Vec;

// A row of logits to its cross-entropy (0 for padding); with `share` != 0 the row becomes share * (softmax - one-hot).
template <class T>
double row_loss(int64_t n, T* logit, int64_t target, T share) {
  if (target < 0) {
    if (share != T(0)) std::fill_n(logit, n, T(0));
    return 0;
  }
  const T most = simd::largest(n, logit);
  const double picked = static_cast<double>(logit[target]) - static_cast<double>(most);
  const T sum = simd::sum_packs<T>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto e = simd::exp(io.load(logit + i) - Vec<T>(most));
        io.store(logit + i, e);
        return io.only(e);
      });
  if (share != T(0)) {
    const Vec<T> scale(share / sum);
    simd::for_packs<T>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) { io.store(logit + i, io.load(logit + i) * scale); });
    logit[target] -= share;
  }
  return std::log(static_cast<double>(sum)) - picked;
}

}  // namespace

template <class T>
void cross_entropy_rows(int64_t rows, int64_t classes, T* logits, const int64_t* target, T share, double* losses) {
  Ranges(rows, 4 * classes).split([=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) losses[r] = row_loss<T>(classes, logits + r * classes, target[r], share);
  });
}

template <class T>
void add_columns(int64_t rows, int64_t columns, const T* x, T* sums) {
  Ranges(columns, rows).split([=](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = begin; c < end; ++c) sums[c] += x[r * columns + c];
    }
  });
}

#define SB_INSTANTIATE(T)                                                             \
  template void cross_entropy_rows(int64_t, int64_t, T*, const int64_t*, T, double*); \
  template void add_columns(int64_t, int64_t, const T*, T*);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
