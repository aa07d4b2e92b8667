#include <cmath>

#include "kernels/cpu/decay.h"
#include "kernels/cpu/decayed_attention.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/rows.h"

namespace sb::cpu {
namespace {

constexpr int64_t C = kChunk;

template <class T>
struct Buffers {
  int64_t Kp, Vp;
  T *q, *k, *v, *out, *P;
  T *a, *since_start, *until_end, *row;
  Buffers(const AttentionHead<T>& head, Arena<T>& arena)
      : Kp(padded<T>(head.K)),
        Vp(padded<T>(head.V)),
        q(arena.take(C * Kp)),
        k(arena.take(C * Kp)),
        v(arena.take(C * Vp)),
        out(arena.take(C * Vp)),
        P(arena.take(C * C)),
        a(arena.take(C)),
        since_start(arena.take(C)),
        until_end(arena.take(C)),
        row(arena.take(C)) {}
};

// Reads the chunk's rows and decays; returns the decay of the whole chunk.
template <class T>
T read_chunk(Decay decay, const AttentionHead<T>& head, int64_t begin, int64_t n, int64_t rows, Buffers<T>& s) {
  take_rows(n, rows, head.K, s.Kp, head.q + begin * head.q_stride, head.q_stride, s.q, static_cast<T>(head.scale));
  take_rows(n, rows, head.K, s.Kp, head.k + begin * head.k_stride, head.k_stride, s.k);
  take_rows(n, rows, head.V, s.Vp, head.v + begin * head.v_stride, head.v_stride, s.v);
  if (decay == Decay::unit) return 1;
  for (int64_t i = 0; i < n; ++i)
    s.a[i] = std::exp(decay == Decay::fixed ? *head.g : head.g[(begin + i) * head.g_stride]);
  std::fill(s.a + n, s.a + rows, T(1));
  return decay_products(rows, s.a, s.since_start, s.until_end);
}

// Multiplies the lower triangle of P by the decay between column and row, clears the rest.
template <class T>
void decay_pairs(Decay decay, int64_t rows, Buffers<T>& s) {
  for (int64_t i = 0; i < rows; ++i) {
    T* p = s.P + i * C;
    if (decay != Decay::unit) {
      for (int64_t j = 0; j < i; ++j) p[j] *= (s.row[j] *= s.a[i]);
      s.row[i] = 1;
    }
    std::fill(p + i + 1, p + rows, T(0));
  }
}

}  // namespace

template <class T>
int64_t scalar_attention_scratch(int64_t K, int64_t V) {
  const int64_t Kp = padded<T>(K), Vp = padded<T>(V);
  return 4 * Arena<T>::rounded(C * Kp) + 4 * Arena<T>::rounded(C * Vp) + 3 * C * C + 8 * Arena<T>::rounded(C);
}

template <class T>
void scalar_attention_forward(Decay decay, const AttentionHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena) {
  Buffers<T> s(head, arena);
  T* state = head.states;
  for (int64_t begin = 0; begin < head.steps; begin += C) {
    const int64_t n = std::min(C, head.steps - begin), rows = padded<T>(n);
    const T total = read_chunk(decay, head, begin, n, rows, s);
    gemm_nt(rows, rows, s.Kp, s.q, s.Kp, s.k, s.Kp, s.P, C, false, lower);
    decay_pairs(decay, rows, s);
    gemm_nn(rows, s.Vp, rows, s.P, C, s.v, s.Vp, s.out, s.Vp, false, lower);
    if (decay != Decay::unit) {
      scale_rows(rows, s.Kp, s.since_start, s.q);
      scale_rows(rows, s.Kp, s.until_end, s.k);
    }
    gemm_nn(rows, s.Vp, s.Kp, s.q, s.Kp, state, s.Vp, s.out, s.Vp, true);
    give_rows(n, head.V, s.Vp, s.out, out + begin * out_stride, out_stride);

    T* next = head.keep_states ? state + s.Kp * s.Vp : state;
    for (int64_t i = 0; i < s.Kp * s.Vp; ++i) next[i] = total * state[i];
    gemm_tn(s.Kp, s.Vp, rows, s.k, s.Kp, s.v, s.Vp, next, s.Vp, true);
    state = next;
  }
}

template <class T>
void scalar_attention_backward(Decay decay, const AttentionHead<T>& head, const AttentionHeadGradients<T>& grad,
                               Arena<T>& arena) {
  Buffers<T> s(head, arena);
  T* const d_out = arena.take(C * s.Vp);
  T* const dq = arena.take(C * s.Kp);
  T* const dk = arena.take(C * s.Kp);
  T* const M = arena.take(C * C);
  T* const pair = arena.take(C * C);
  T* const from_start = arena.take(C);
  T* const to_end = arena.take(C);
  T* const columns = arena.take(C);
  const bool decays = decay != Decay::unit;
  T* const d_state = grad.d_state;
  for (int64_t begin = (head.steps - 1) / C * C; begin >= 0; begin -= C) {
    const int64_t n = std::min(C, head.steps - begin), rows = padded<T>(n);
    const T* state = head.states + begin / C * s.Kp * s.Vp;
    const T total = read_chunk(decay, head, begin, n, rows, s);
    take_rows(n, rows, head.V, s.Vp, grad.d_out + begin * grad.d_out_stride, grad.d_out_stride, d_out);
    gemm_nt(rows, rows, s.Kp, s.q, s.Kp, s.k, s.Kp, s.P, C, false, lower);
    gemm_nt(rows, rows, s.Vp, d_out, s.Vp, s.v, s.Vp, M, C, false, lower);
    for (int64_t i = 0; i < rows; ++i) {
      T *p = s.P + i * C, *m = M + i * C;
      if (decays) {
        T* z = pair + i * C;
        for (int64_t j = 0; j < i; ++j) {
          const T l = s.row[j] *= s.a[i];
          p[j] *= l;
          z[j] = m[j] * p[j];
          m[j] *= l;
        }
        s.row[i] = 1;
      }
      std::fill(p + i + 1, p + rows, T(0));
      std::fill(m + i + 1, m + rows, T(0));
    }

    gemm_nt(rows, s.Kp, s.Vp, d_out, s.Vp, state, s.Vp, dq, s.Kp);
    gemm_nt(rows, s.Kp, s.Vp, s.v, s.Vp, d_state, s.Vp, dk, s.Kp);
    if (decays) {
      scale_rows(rows, s.Kp, s.since_start, dq);
      scale_rows(rows, s.Kp, s.until_end, dk);
      for (int64_t i = 0; i < rows; ++i) {
        from_start[i] = simd::dot(s.Kp, s.q + i * s.Kp, dq + i * s.Kp);
        to_end[i] = simd::dot(s.Kp, s.k + i * s.Kp, dk + i * s.Kp);
      }
      PairSums<T> pairs(rows, columns);
      T* dg = grad.dg + begin * grad.dg_stride;
      T after = total * simd::dot(s.Kp * s.Vp, d_state, state);
      for (int64_t t = 0; t < n; ++t) {
        dg[t * grad.dg_stride] = after;
        after += to_end[t];
      }
      T before = 0;
      for (int64_t t = n - 1; t >= 0; --t) {
        before += from_start[t];
        pairs.add_row(pair + t * C, t);
        dg[t * grad.dg_stride] += before + pairs.below(t);
      }
    }
    gemm_nn(rows, s.Kp, rows, M, C, s.k, s.Kp, dq, s.Kp, true, lower);
    gemm_tn(rows, s.Kp, rows, M, C, s.q, s.Kp, dk, s.Kp, true, lower);
    give_rows(n, head.K, s.Kp, dq, grad.dq + begin * grad.dq_stride, grad.dq_stride, static_cast<T>(head.scale));
    give_rows(n, head.K, s.Kp, dk, grad.dk + begin * grad.dk_stride, grad.dk_stride);

    if (decays) {
      scale_rows(rows, s.Kp, s.since_start, s.q);
      scale_rows(rows, s.Kp, s.until_end, s.k);
    }
    gemm_tn(rows, s.Vp, rows, s.P, C, d_out, s.Vp, s.out, s.Vp, false, lower);
    gemm_nn(rows, s.Vp, s.Kp, s.k, s.Kp, d_state, s.Vp, s.out, s.Vp, true);
    give_rows(n, head.V, s.Vp, s.out, grad.dv + begin * grad.dv_stride, grad.dv_stride);
    if (decays) scale_row(s.Kp * s.Vp, total, d_state);
    gemm_tn(s.Kp, s.Vp, rows, s.q, s.Kp, d_out, s.Vp, d_state, s.Vp, true);
  }
}

template <class T>
void sum_head_groups(int64_t groups, int64_t heads, int64_t width, const T* from, T* to) {
  parallel_for(groups, 64, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(from + i * heads * width, width, to + i * width);
      for (int64_t h = 1; h < heads; ++h) {
        for (int64_t j = 0; j < width; ++j) to[i * width + j] += from[(i * heads + h) * width + j];
      }
    }
  });
}

#define SB_INSTANTIATE(T)                                                                                      \
  template void sum_head_groups<T>(int64_t, int64_t, int64_t, const T*, T*);                                   \
  template int64_t scalar_attention_scratch<T>(int64_t, int64_t);                                              \
  template void scalar_attention_forward<T>(Decay, const AttentionHead<T>&, T*, int64_t, Arena<T>&);           \
  template void scalar_attention_backward<T>(Decay, const AttentionHead<T>&, const AttentionHeadGradients<T>&, \
                                             Arena<T>&);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
