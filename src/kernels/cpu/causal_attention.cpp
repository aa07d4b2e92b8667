// Causal softmax attention in blocks of kBlock queries x kBlock keys, with a running maximum, and with scores that
// decay (forgetting attention). The backward pass recomputes the weights from the saved logarithm of each row's sum.
// Each (batch, head) pair is one task.
#include "kernels/cpu/causal_attention.h"

#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"

namespace sb::cpu {
namespace {

constexpr int64_t kBlock = 64;
constexpr double kHidden = -1e30;  // the score of a key that a query may not see

int64_t whole_blocks(int64_t n) {
  return (n + kBlock - 1) / kBlock * kBlock;
}

// Keys that queries i0 .. i0 + kBlock - 1 may see, rounded up to blocks.
int64_t visible(const AttentionSizes& s, int64_t i0) {
  return whole_blocks(std::min(s.keys, i0 + kBlock + s.offset));
}

// One head of x [B,T,h,K] as padded rows [whole_blocks(T)][pw], times a factor.
template <class T>
void pack_rows(const HeadRows<T>& x, int64_t width, int64_t b, int64_t head, int64_t pw, T factor, T* to) {
  const int64_t time = x.time, step = x.stride[3];
  const T* from = x.data + b * x.stride[0] + head * x.stride[2];
  for (int64_t t = 0; t < whole_blocks(time); ++t, to += pw) {
    std::fill(to + (t < time ? width : 0), to + pw, T(0));
    if (t >= time) continue;
    const T* row = from + t * x.stride[1];
    if (step == 1) {
      simd::for_vectors<T>(width, [=](int64_t c, auto io) { io.store(to + c, io.load(row + c) * Vec<T>(factor)); });
    } else {
      for (int64_t c = 0; c < width; ++c) to[c] = factor * row[c * step];
    }
  }
}

// Blocks of rows [kBlock][pw] turned to [pw][kBlock]
template <class T>
void pack_turned(int64_t rows, int64_t pw, const T* from, T* to) {
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) transpose(kBlock, pw, from + r0 * pw, pw, to + r0 * pw, kBlock);
}

// Inverse: writes padded rows to x [B,time,heads,width], contiguous.
template <class T>
void unpack_rows(T* x, int64_t time, int64_t heads, int64_t width, int64_t b, int64_t head, int64_t pw, T factor,
                 const T* from) {
  T* to = x + (b * time * heads + head) * width;
  for (int64_t t = 0; t < time; ++t)
    for (int64_t c = 0; c < width; ++c) to[t * heads * width + c] = factor * from[t * pw + c];
}

// The cumulative log-decays of one head, as sums of two numbers of T: their differences are as exact as T allows.
template <class T>
struct Decays {
  T *high = nullptr, *low = nullptr;

  static int64_t elements(const AttentionInput<T>& p) {
    return p.decay ? 2 * Arena<T>::rounded(whole_blocks(p.sizes.keys) + kBlock) : 0;
  }
  Decays(const AttentionInput<T>& p, int64_t b, int64_t head, Arena<T>& arena) {
    if (!p.decay || p.sizes.keys == 0) return;
    const AttentionSizes& s = p.sizes;
    const int64_t n = whole_blocks(s.keys) + kBlock;
    high = arena.take(n), low = arena.take(n);
    const double* const from = p.decay + b * s.keys * s.heads + head;
    for (int64_t t = 0; t < n; ++t) {
      const double c = from[std::min(t, s.keys - 1) * s.heads];
      high[t] = static_cast<T>(c);
      low[t] = static_cast<T>(c - static_cast<double>(high[t]));
    }
  }
  // row[j] += c of the query - c of key j0 + j
  void add(int64_t query, int64_t j0, int64_t n, T* row) const {
    const Vec<T> h(high[query]), l(low[query]);
    for (int64_t j = 0; j < n; j += simd::lanes<T>)
      simd::store(row + j, simd::load(row + j) + ((h - simd::load(high + j0 + j)) + (l - simd::load(low + j0 + j))));
  }
};

// A block of queries against a block of keys. On the diagonal, row i needs only its first columns(i) entries; they are
// whole strips, so that a product which skips the other half still reads defined numbers.
struct BlockPair {
  static constexpr int64_t kStrip = 16;
  int64_t i0, j0, offset;
  int64_t rows;  // queries, whole strips
  BlockPair(const AttentionSizes& s, int64_t i, int64_t j)
      : i0(i), j0(j), offset(s.offset), rows(std::min(kBlock, (s.queries - i + kStrip - 1) / kStrip * kStrip)) {}
  bool diagonal() const { return j0 == i0 + offset; }
  int64_t columns(int64_t i) const { return diagonal() ? (i / kStrip + 1) * kStrip : kBlock; }
  Shape shape() const { return diagonal() ? lower : full; }

  // to = Q^T K from turned blocks [pw][kBlock]
  template <class T>
  void products(int64_t pw, const T* q_turned, const T* k_turned, T* to) const {
    const T *q = q_turned + i0 * pw, *k = k_turned + j0 * pw;
    if (!diagonal()) return gemm_tn<T>(rows, kBlock, pw, q, kBlock, k, kBlock, to, kBlock);
    for (int64_t i = 0; i < rows; i += kStrip)
      gemm_tn<T>(kStrip, i + kStrip, pw, q + i, kBlock, k, kBlock, to + i * kBlock, kBlock);
  }
  // Keys after a query are hidden.
  template <class T>
  void scores(int64_t pw, const T* q_turned, const T* k_turned, const Decays<T>& decays, T* to) const {
    products(pw, q_turned, k_turned, to);
    for (int64_t i = 0; decays.high && i < rows; ++i) decays.add(i0 + i + offset, j0, columns(i), to + i * kBlock);
    if (j0 + kBlock <= i0 + offset + 1) return;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = std::max<int64_t>(0, i0 + i + offset + 1 - j0); j < columns(i); ++j)
        to[i * kBlock + j] = static_cast<T>(kHidden);
  }
};

// row <- e^{row - level}; the sum of the results. n a multiple of BlockPair::kStrip
template <class T>
T exponentials(int64_t n, T* row, T level) {
  constexpr int64_t L = simd::lanes<T>, together = BlockPair::kStrip / L;
  Vec<T> sum(T(0));
  for (int64_t j = 0; j < n; j += BlockPair::kStrip) {
    Vec<T> e[together];
    for (int v = 0; v < together; ++v) e[v] = simd::load(row + j + v * L) - Vec<T>(level);
    simd::exp<T>(e);
    for (int v = 0; v < together; ++v) {
      simd::store(row + j + v * L, e[v]);
      sum += e[v];
    }
  }
  return simd::horizontal_sum(sum);
}

// Adds the gradients of the decays of a block's queries (sums of rows) and keys (sums of columns, subtracted). In exact
// arithmetic the rows add up to zero; what rounding leaves there would otherwise add up over all later frames.
template <class T>
void add_decays(const BlockPair& pair, int64_t queries, const T* block, double* to) {
  constexpr int64_t together = BlockPair::kStrip;
  double columns[kBlock] = {};
  for (int64_t i = 0; i < std::min(pair.rows, queries - pair.i0); ++i) {
    double sums[together] = {};
    for (int64_t j = 0; j < pair.columns(i); j += together)
      for (int64_t l = 0; l < together; ++l) {
        const auto one = static_cast<double>(block[i * kBlock + j + l]);
        columns[j + l] += one;
        sums[l] += one;
      }
    for (int64_t l = 0; l < together; ++l) to[pair.i0 + i + pair.offset] += sums[l];
  }
  for (int64_t j = 0; j < kBlock; ++j) to[pair.j0 + j] -= columns[j];
}

template <class T>
void attend(const AttentionInput<T>& p, T* out, T* log_sums, int64_t b, int64_t head) {
  const AttentionSizes& s = p.sizes;
  const int64_t pw = padded<T>(s.width), rows = whole_blocks(s.queries), keys = whole_blocks(s.keys);
  const int64_t by_query = Arena<T>::rounded(rows * pw), by_key = Arena<T>::rounded(keys * pw);
  Arena<T> arena(3 * by_query + 3 * by_key + Arena<T>::rounded(kBlock * kBlock) + Decays<T>::elements(p));
  T *qs = arena.take(rows * pw), *q_turned = arena.take(rows * pw), *o = arena.take(rows * pw);
  T *ks = arena.take(keys * pw), *k_turned = arena.take(keys * pw), *vs = arena.take(keys * pw);
  T* score = arena.take(kBlock * kBlock);
  const Decays<T> decays(p, b, head, arena);
  pack_rows(p.q, s.width, b, head, pw, static_cast<T>(1 / std::sqrt(static_cast<double>(s.width))), qs);
  pack_rows(p.k, s.width, b, head, pw, T(1), ks);
  pack_rows(p.v, s.width, b, head, pw, T(1), vs);
  pack_turned(rows, pw, qs, q_turned);
  pack_turned(keys, pw, ks, k_turned);
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    T most[kBlock], sum[kBlock] = {};
    std::fill_n(most, kBlock, static_cast<T>(2 * kHidden));
    T* acc = o + i0 * pw;
    std::fill_n(acc, kBlock * pw, T(0));
    for (int64_t j0 = 0; j0 < visible(s, i0); j0 += kBlock) {
      const BlockPair pair(s, i0, j0);
      pair.scores(pw, q_turned, k_turned, decays, score);
      for (int64_t i = 0; i < pair.rows; ++i) {
        const T level = std::max(most[i], simd::largest(pair.columns(i), score + i * kBlock));
        const T shrink = std::exp(most[i] - level);
        most[i] = level;
        sum[i] = sum[i] * shrink + exponentials(pair.columns(i), score + i * kBlock, level);
        if (shrink == T(1)) continue;
        simd::for_vectors<T>(
            pw, [=](int64_t c, auto io) { io.store(acc + i * pw + c, io.load(acc + i * pw + c) * Vec<T>(shrink)); });
      }
      gemm_nn<T>(pair.rows, pw, kBlock, score, kBlock, vs + j0 * pw, pw, acc, pw, true, pair.shape());
    }
    for (int64_t i = 0; i < std::min(kBlock, s.queries - i0); ++i) {
      const Vec<T> scale(T(1) / sum[i]);
      simd::for_vectors<T>(pw,
                           [=](int64_t c, auto io) { io.store(acc + i * pw + c, io.load(acc + i * pw + c) * scale); });
      log_sums[i0 + i] = most[i] + std::log(sum[i]);
    }
  }
  unpack_rows(out, s.queries, s.heads, s.width, b, head, pw, T(1), o);
}

template <class T>
void attend_back(const AttentionInput<T>& p, const AttentionGradients<T>& grad, const T* log_sums, int64_t b,
                 int64_t head) {
  const AttentionSizes& s = p.sizes;
  const int64_t pw = padded<T>(s.width), rows = whole_blocks(s.queries), keys = whole_blocks(s.keys);
  const int64_t by_query = Arena<T>::rounded(rows * pw), by_key = Arena<T>::rounded(keys * pw);
  Arena<T> arena(6 * by_query + 6 * by_key + 2 * Arena<T>::rounded(kBlock * kBlock) + Arena<T>::rounded(rows) +
                 Decays<T>::elements(p));
  T *qs = arena.take(rows * pw), *os = arena.take(rows * pw), *gs = arena.take(rows * pw),
    *d_qs = arena.take(rows * pw), *q_turned = arena.take(rows * pw), *g_turned = arena.take(rows * pw);
  T *ks = arena.take(keys * pw), *k_turned = arena.take(keys * pw), *vs = arena.take(keys * pw);
  T *v_turned = arena.take(keys * pw), *d_ks = arena.take(keys * pw), *d_vs = arena.take(keys * pw);
  T *weight = arena.take(kBlock * kBlock), *d_weight = arena.take(kBlock * kBlock), *drop = arena.take(rows);
  const Decays<T> decays(p, b, head, arena);
  std::vector<double> by_decay(p.decay ? static_cast<size_t>(keys) : 0);  // gradients of the cumulative decays
  const T factor = static_cast<T>(1 / std::sqrt(static_cast<double>(s.width)));
  pack_rows(p.q, s.width, b, head, pw, factor, qs);
  pack_rows(grad.out, s.width, b, head, pw, T(1), os);
  pack_rows(grad.d_out, s.width, b, head, pw, T(1), gs);
  pack_rows(p.k, s.width, b, head, pw, T(1), ks);
  pack_rows(p.v, s.width, b, head, pw, T(1), vs);
  pack_turned(rows, pw, qs, q_turned);
  pack_turned(rows, pw, gs, g_turned);
  pack_turned(keys, pw, ks, k_turned);
  pack_turned(keys, pw, vs, v_turned);
  std::fill_n(d_qs, rows * pw, T(0));
  std::fill_n(d_ks, keys * pw, T(0));
  std::fill_n(d_vs, keys * pw, T(0));
  for (int64_t i = 0; i < rows; ++i)
    drop[i] = simd::sum_vectors<T>(
        pw, [=](int64_t c, auto io) { return io.load(os + i * pw + c) * io.load(gs + i * pw + c); });
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (int64_t j0 = 0; j0 < visible(s, i0); j0 += kBlock) {
      const BlockPair pair(s, i0, j0);
      pair.scores(pw, q_turned, k_turned, decays, weight);
      pair.products(pw, g_turned, v_turned, d_weight);
      for (int64_t i = 0; i < pair.rows; ++i) {
        T *w = weight + i * kBlock, *dw = d_weight + i * kBlock;
        const int64_t n = pair.columns(i);
        if (i0 + i >= s.queries) {
          std::fill_n(w, n, T(0));
          std::fill_n(dw, n, T(0));
          continue;
        }
        exponentials(n, w, log_sums[i0 + i]);
        for (int64_t j = 0; j < n; j += simd::lanes<T>)
          simd::store(dw + j, simd::load(w + j) * (simd::load(dw + j) - Vec<T>(drop[i0 + i])));
      }
      if (p.decay) add_decays(pair, s.queries, d_weight, by_decay.data());
      gemm_tn<T>(kBlock, pw, pair.rows, weight, kBlock, gs + i0 * pw, pw, d_vs + j0 * pw, pw, true, pair.shape());
      gemm_tn<T>(kBlock, pw, pair.rows, d_weight, kBlock, qs + i0 * pw, pw, d_ks + j0 * pw, pw, true, pair.shape());
      gemm_nn<T>(pair.rows, pw, kBlock, d_weight, kBlock, ks + j0 * pw, pw, d_qs + i0 * pw, pw, true, pair.shape());
    }
  }
  unpack_rows(grad.dq, s.queries, s.heads, s.width, b, head, pw, factor, d_qs);
  unpack_rows(grad.dk, s.keys, s.heads, s.width, b, head, pw, T(1), d_ks);
  unpack_rows(grad.dv, s.keys, s.heads, s.width, b, head, pw, T(1), d_vs);
  double after = 0;
  for (int64_t t = p.decay ? s.keys - 1 : -1; t >= 0; --t) {
    after += by_decay[static_cast<size_t>(t)];
    grad.dg[(b * s.keys + t) * s.heads + head] = static_cast<T>(after);
  }
}

}  // namespace

template <class T>
void causal_attention_forward(const AttentionInput<T>& p, T* out, T* log_sums) {
  const AttentionSizes& s = p.sizes;
  for_each_task(s.batch * s.heads,
                [&](int64_t task) { attend(p, out, log_sums + task * s.queries, task / s.heads, task % s.heads); });
}

template <class T>
void causal_attention_backward(const AttentionInput<T>& p, const AttentionGradients<T>& grad, const T* log_sums) {
  const AttentionSizes& s = p.sizes;
  for_each_task(s.batch * s.heads, [&](int64_t task) {
    attend_back(p, grad, log_sums + task * s.queries, task / s.heads, task % s.heads);
  });
}

#define SB_INSTANTIATE(T)                                                   \
  template void causal_attention_forward(const AttentionInput<T>&, T*, T*); \
  template void causal_attention_backward(const AttentionInput<T>&, const AttentionGradients<T>&, const T*);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
