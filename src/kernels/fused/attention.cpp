// Causal softmax attention in blocks of kBlock queries x kBlock keys with a running maximum; the backward pass makes
// the weights again from the saved logarithm of each row's sum. A (batch, head) pair is one task.
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/cpu/vec_math.h"
#include "kernels/plain.h"
#include "kernels/poison.h"

namespace sb {
namespace {

using at::Tensor;
using simd::Vec;

constexpr int64_t kBlock = 64;
constexpr double kHidden = -1e30;  // the score of a key that a query may not see

int64_t whole_blocks(int64_t n) {
  return (n + kBlock - 1) / kBlock * kBlock;
}

struct Sizes {
  int64_t batch, queries, keys, heads, width, offset;
  Sizes(const Tensor& q, const Tensor& k, int64_t off)
      : batch(q.size(0)), queries(q.size(1)), keys(k.size(1)), heads(q.size(2)), width(q.size(3)), offset(off) {}
  // keys that queries i0 .. i0 + kBlock - 1 may see, rounded up to blocks
  int64_t visible(int64_t i0) const { return whole_blocks(std::min(keys, i0 + kBlock + offset)); }
};

// One head of x [B,T,h,K] as padded rows [whole_blocks(T)][pw], times a factor.
template <class T>
void pack_rows(const Tensor& x, int64_t b, int64_t head, int64_t pw, T factor, T* to) {
  const int64_t time = x.size(1), width = x.size(3), step = x.stride(3);
  const T* from = x.data_ptr<T>() + b * x.stride(0) + head * x.stride(2);
  for (int64_t t = 0; t < whole_blocks(time); ++t, to += pw) {
    std::fill(to + (t < time ? width : 0), to + pw, T(0));
    if (t >= time) continue;
    const T* row = from + t * x.stride(1);
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
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) cpu::transpose(kBlock, pw, from + r0 * pw, pw, to + r0 * pw, kBlock);
}

template <class T>
void unpack_rows(const Tensor& x, int64_t b, int64_t head, int64_t pw, T factor, const T* from) {
  const int64_t time = x.size(1), width = x.size(3), heads = x.size(2);
  T* to = x.data_ptr<T>() + (b * time * heads + head) * width;
  for (int64_t t = 0; t < time; ++t)
    for (int64_t c = 0; c < width; ++c) to[t * heads * width + c] = factor * from[t * pw + c];
}

// A block of queries against a block of keys. On the diagonal, row i needs only its first columns(i) entries; they are
// whole strips, so that a product which skips the other half still reads defined numbers.
struct BlockPair {
  static constexpr int64_t kStrip = 16;
  int64_t i0, j0, offset;
  int64_t rows;  // queries, whole strips
  BlockPair(const Sizes& s, int64_t i, int64_t j)
      : i0(i), j0(j), offset(s.offset), rows(std::min(kBlock, (s.queries - i + kStrip - 1) / kStrip * kStrip)) {}
  bool diagonal() const { return j0 == i0 + offset; }
  int64_t columns(int64_t i) const { return diagonal() ? (i / kStrip + 1) * kStrip : kBlock; }
  cpu::Shape shape() const { return diagonal() ? cpu::lower : cpu::full; }

  // to = Q^T K from turned blocks [pw][kBlock]
  template <class T>
  void products(int64_t pw, const T* q_turned, const T* k_turned, T* to) const {
    const T *q = q_turned + i0 * pw, *k = k_turned + j0 * pw;
    if (!diagonal()) return cpu::gemm_tn<T>(rows, kBlock, pw, q, kBlock, k, kBlock, to, kBlock);
    for (int64_t i = 0; i < rows; i += kStrip)
      cpu::gemm_tn<T>(kStrip, i + kStrip, pw, q + i, kBlock, k, kBlock, to + i * kBlock, kBlock);
  }
  // Keys after a query are hidden.
  template <class T>
  void scores(int64_t pw, const T* q_turned, const T* k_turned, T* to) const {
    products(pw, q_turned, k_turned, to);
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

template <class T>
void attend(const Sizes& s, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, T* log_sums,
            int64_t b, int64_t head) {
  const int64_t pw = cpu::padded<T>(s.width), rows = whole_blocks(s.queries), keys = whole_blocks(s.keys);
  const int64_t by_query = cpu::Arena<T>::rounded(rows * pw), by_key = cpu::Arena<T>::rounded(keys * pw);
  cpu::Arena<T> arena(3 * by_query + 3 * by_key + cpu::Arena<T>::rounded(kBlock * kBlock));
  T *qs = arena.take(rows * pw), *q_turned = arena.take(rows * pw), *o = arena.take(rows * pw);
  T *ks = arena.take(keys * pw), *k_turned = arena.take(keys * pw), *vs = arena.take(keys * pw);
  T* score = arena.take(kBlock * kBlock);
  pack_rows(q, b, head, pw, static_cast<T>(1 / std::sqrt(static_cast<double>(s.width))), qs);
  pack_rows(k, b, head, pw, T(1), ks);
  pack_rows(v, b, head, pw, T(1), vs);
  pack_turned(rows, pw, qs, q_turned);
  pack_turned(keys, pw, ks, k_turned);
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    T most[kBlock], sum[kBlock] = {};
    std::fill_n(most, kBlock, static_cast<T>(2 * kHidden));
    T* acc = o + i0 * pw;
    std::fill_n(acc, kBlock * pw, T(0));
    for (int64_t j0 = 0; j0 < s.visible(i0); j0 += kBlock) {
      const BlockPair pair(s, i0, j0);
      pair.scores(pw, q_turned, k_turned, score);
      for (int64_t i = 0; i < pair.rows; ++i) {
        const T level = std::max(most[i], simd::largest(pair.columns(i), score + i * kBlock));
        const T shrink = std::exp(most[i] - level);
        most[i] = level;
        sum[i] = sum[i] * shrink + exponentials(pair.columns(i), score + i * kBlock, level);
        if (shrink == T(1)) continue;
        simd::for_vectors<T>(
            pw, [=](int64_t c, auto io) { io.store(acc + i * pw + c, io.load(acc + i * pw + c) * Vec<T>(shrink)); });
      }
      cpu::gemm_nn<T>(pair.rows, pw, kBlock, score, kBlock, vs + j0 * pw, pw, acc, pw, true, pair.shape());
    }
    for (int64_t i = 0; i < std::min(kBlock, s.queries - i0); ++i) {
      const Vec<T> scale(T(1) / sum[i]);
      simd::for_vectors<T>(pw,
                           [=](int64_t c, auto io) { io.store(acc + i * pw + c, io.load(acc + i * pw + c) * scale); });
      log_sums[i0 + i] = most[i] + std::log(sum[i]);
    }
  }
  unpack_rows(out, b, head, pw, T(1), o);
}

template <class T>
void attend_back(const Sizes& s, const Tensor& d_out, const Tensor& q, const Tensor& k, const Tensor& v,
                 const Tensor& out, const T* log_sums, const Tensor& dq, const Tensor& dk, const Tensor& dv, int64_t b,
                 int64_t head) {
  const int64_t pw = cpu::padded<T>(s.width), rows = whole_blocks(s.queries), keys = whole_blocks(s.keys);
  const int64_t by_query = cpu::Arena<T>::rounded(rows * pw), by_key = cpu::Arena<T>::rounded(keys * pw);
  cpu::Arena<T> arena(6 * by_query + 6 * by_key + 2 * cpu::Arena<T>::rounded(kBlock * kBlock) +
                      cpu::Arena<T>::rounded(rows));
  T *qs = arena.take(rows * pw), *os = arena.take(rows * pw), *gs = arena.take(rows * pw),
    *d_qs = arena.take(rows * pw), *q_turned = arena.take(rows * pw), *g_turned = arena.take(rows * pw);
  T *ks = arena.take(keys * pw), *k_turned = arena.take(keys * pw), *vs = arena.take(keys * pw);
  T *v_turned = arena.take(keys * pw), *d_ks = arena.take(keys * pw), *d_vs = arena.take(keys * pw);
  T *weight = arena.take(kBlock * kBlock), *d_weight = arena.take(kBlock * kBlock), *drop = arena.take(rows);
  const T factor = static_cast<T>(1 / std::sqrt(static_cast<double>(s.width)));
  pack_rows(q, b, head, pw, factor, qs);
  pack_rows(out, b, head, pw, T(1), os);
  pack_rows(d_out, b, head, pw, T(1), gs);
  pack_rows(k, b, head, pw, T(1), ks);
  pack_rows(v, b, head, pw, T(1), vs);
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
    for (int64_t j0 = 0; j0 < s.visible(i0); j0 += kBlock) {
      const BlockPair pair(s, i0, j0);
      pair.scores(pw, q_turned, k_turned, weight);
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
      cpu::gemm_tn<T>(kBlock, pw, pair.rows, weight, kBlock, gs + i0 * pw, pw, d_vs + j0 * pw, pw, true, pair.shape());
      cpu::gemm_tn<T>(kBlock, pw, pair.rows, d_weight, kBlock, qs + i0 * pw, pw, d_ks + j0 * pw, pw, true,
                      pair.shape());
      cpu::gemm_nn<T>(pair.rows, pw, kBlock, d_weight, kBlock, ks + j0 * pw, pw, d_qs + i0 * pw, pw, true,
                      pair.shape());
    }
  }
  unpack_rows(dq, b, head, pw, factor, d_qs);
  unpack_rows(dk, b, head, pw, T(1), d_ks);
  unpack_rows(dv, b, head, pw, T(1), d_vs);
}

class CausalAttention : public torch::autograd::Function<CausalAttention> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        int64_t offset) {
    const Sizes s(q, k, offset);
    const Tensor out = kernels::fresh(q.sizes(), q.options());
    const Tensor log_sums = kernels::fresh({s.batch, s.heads, s.queries}, q.options());
    cpu::with_type_of(q, [&](auto type) {
      using T = decltype(type);
      cpu::for_each_task(s.batch * s.heads, [&](int64_t task) {
        attend<T>(s, q, k, v, out, log_sums.data_ptr<T>() + task * s.queries, task / s.heads, task % s.heads);
      });
    });
    ctx->save_for_backward({q, k, v, out, log_sums});
    ctx->saved_data["offset"] = offset;
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &log_sums = saved[4];
    const Sizes s(q, k, ctx->saved_data["offset"].toInt());
    const Tensor dq = kernels::fresh(q.sizes(), q.options()), dk = kernels::fresh(k.sizes(), q.options());
    const Tensor dv = kernels::fresh(v.sizes(), q.options());
    cpu::with_type_of(q, [&](auto type) {
      using T = decltype(type);
      cpu::for_each_task(s.batch * s.heads, [&](int64_t task) {
        attend_back<T>(s, grads[0], q, k, v, out, log_sums.data_ptr<T>() + task * s.queries, dq, dk, dv, task / s.heads,
                       task % s.heads);
      });
    });
    return {dq, dk, dv, Tensor()};
  }
};

}  // namespace

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t offset) {
  const char* here = "causal_attention";
  if (q.dim() != 4) throw bad_input(here, "q, expected [B,T,h,K], got " + c10::str(q.sizes()));
  if (offset < 0) throw bad_input(here, "offset, expected >= 0, got " + std::to_string(offset));
  const std::vector<int64_t> expected{q.size(0), q.size(1) + offset, q.size(2), q.size(3)};
  for (const Tensor& x : {k, v})
    if (x.sizes() != at::IntArrayRef(expected))
      throw bad_input(here, c10::str("k and v, expected ", at::IntArrayRef(expected), ", got ", x.sizes()));
  return kernels::has_cpu_kernel(q) ? CausalAttention::apply(q, k, v, offset)
                                    : plain::causal_attention(q, k, v, offset);
}

}  // namespace sb
