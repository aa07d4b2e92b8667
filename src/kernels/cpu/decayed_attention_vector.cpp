// Every key channel has its own decay. So pairs within a sub-chunk of 16 steps are summed directly, channel by channel,
// with decayed keys w_ij = k_j times the decays of steps j+1..i. Sub-chunks are connected by matrix products.
#include <cmath>

#include "kernels/cpu/decay.h"
#include "kernels/cpu/decayed_attention.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/rows.h"

namespace sb::cpu {
namespace {

constexpr int64_t C = kSubChunk;
constexpr int64_t kPairs = C * (C + 1) / 2;

template <class T>
struct Buffers {
  int64_t Kp, Vp;
  T *q, *k, *v, *out, *P;
  T *a, *since_start, *until_end;  // [C, Kp]; until_end already times k
  T* pairs;                        // [kPairs, lanes]
  Buffers(const AttentionHead<T>& head, Arena<T>& arena)
      : Kp(padded<T>(head.K)),
        Vp(padded<T>(head.V)),
        q(arena.take(C * Kp)),
        k(arena.take(C * Kp)),
        v(arena.take(C * Vp)),
        out(arena.take(C * Vp)),
        P(arena.take(C * C)),
        a(arena.take(C * Kp)),
        since_start(arena.take(C * Kp)),
        until_end(arena.take(C * Kp)),
        pairs(arena.take(kPairs * lanes<T>)) {}
  const T* total() const { return since_start + (C - 1) * Kp; }
};

// What the state needs of a sub-chunk: keys, values, decays.
template <class T>
void read_writes(const AttentionHead<T>& head, int64_t begin, int64_t n, Buffers<T>& s) {
  take_rows(n, C, head.K, s.Kp, head.k + begin * head.k_stride, head.k_stride, s.k);
  take_rows(n, C, head.V, s.Vp, head.v + begin * head.v_stride, head.v_stride, s.v);
  take_rows(n, C, head.K, s.Kp, head.g + begin * head.g_stride, head.g_stride, s.a);
  simd::for_packs<T>(C * s.Kp, [a = s.a](int64_t i, const auto& io) { io.store(a + i, simd::exp(io.load(a + i))); });
  std::copy_n(s.a, s.Kp, s.since_start);
  for (int64_t i = s.Kp; i < C * s.Kp; ++i) s.since_start[i] = s.since_start[i - s.Kp] * s.a[i];
}

template <class T>
void read_chunk(const AttentionHead<T>& head, int64_t begin, int64_t n, Buffers<T>& s) {
  take_rows(n, C, head.K, s.Kp, head.q + begin * head.q_stride, head.q_stride, s.q, static_cast<T>(head.scale));
  read_writes(head, begin, n, s);
}

// until_end alone
template <class T>
void carry_keys(Buffers<T>& s) {
  using simd::load, simd::store;
  using Vec = simd::Vec<T>;
  for (int64_t c = 0; c < s.Kp; c += lanes<T>) {
    Vec rest(T(1));
    for (int64_t i = C - 1; i >= 0; --i) {
      store(s.until_end + i * s.Kp + c, rest * load(s.k + i * s.Kp + c));
      rest *= load(s.a + i * s.Kp + c);
    }
  }
}

// P_ij = q_i . w_ij and until_end_j = w_{C-1,j}
template <class T>
void sum_pairs(Buffers<T>& s) {
  using simd::load, simd::store;
  using Vec = simd::Vec<T>;
  for (int64_t c = 0; c < s.Kp; c += lanes<T>) {
    Vec w[C];
    for (int64_t i = 0; i < C; ++i) {
      const Vec ai = load(s.a + i * s.Kp + c), qi = load(s.q + i * s.Kp + c);
      w[i] = load(s.k + i * s.Kp + c);
      T* sums = s.pairs + pair_index(i, 0) * lanes<T>;
      for (int64_t j = 0; j <= i; ++j) {
        if (j < i) w[j] *= ai;
        const Vec term = qi * w[j];
        store(sums + j * lanes<T>, c == 0 ? term : load(sums + j * lanes<T>) + term);
      }
    }
    for (int64_t j = 0; j < C; ++j) store(s.until_end + j * s.Kp + c, w[j]);
  }
  for (int64_t i = 0; i < C; ++i) {
    for (int64_t j = 0; j < C; ++j) {
      s.P[i * C + j] = j <= i ? simd::horizontal_sum(simd::load(s.pairs + pair_index(i, j) * lanes<T>)) : T(0);
    }
  }
}

// next = diag(total) state + until_end^T v
template <class T>
void advance_state(const Buffers<T>& s, const T* state, T* next) {
  for (int64_t k = 0; k < s.Kp; ++k) {
    const T factor = s.total()[k];
    for (int64_t j = 0; j < s.Vp; ++j) next[k * s.Vp + j] = factor * state[k * s.Vp + j];
  }
  gemm_tn(s.Kp, s.Vp, C, s.until_end, s.Kp, s.v, s.Vp, next, s.Vp, true);
}

// The part of dq, dk and dg that comes from pairs inside the sub-chunk; dP_ij = d P_ij.
template <class T>
void pair_gradients(const Buffers<T>& s, const T* dP, T* dq, T* dk, T* dg) {
  using simd::load, simd::store;
  using Vec = simd::Vec<T>;
  for (int64_t c = 0; c < s.Kp; c += lanes<T>) {
    Vec carried[kPairs];
    for (int64_t i = 0; i < C; ++i) {
      const Vec ai = load(s.a + i * s.Kp + c);
      const Vec* last = carried + pair_index(i - 1, 0);
      Vec* now = carried + pair_index(i, 0);
      now[i] = load(s.k + i * s.Kp + c);
      Vec sum = now[i] * Vec(dP[i * C + i]);
      for (int64_t j = 0; j < i; ++j) {
        now[j] = last[j] * ai;
        sum += now[j] * Vec(dP[i * C + j]);
      }
      store(dq + i * s.Kp + c, sum);
    }
    Vec u[C], later(T(0));
    for (Vec& x : u) x = Vec(T(0));
    for (int64_t i = C - 1; i >= 0; --i) {
      const Vec qi = load(s.q + i * s.Kp + c);
      const Vec* now = carried + pair_index(i, 0);
      Vec sum(T(0));
      for (int64_t j = 0; j < i; ++j) {
        u[j] = xsimd::fma(qi, Vec(dP[i * C + j]), u[j] * later);
        sum += now[j] * u[j];
      }
      store(dk + i * s.Kp + c, xsimd::fma(qi, Vec(dP[i * C + i]), u[i] * later));
      store(dg + i * s.Kp + c, sum);
      later = load(s.a + i * s.Kp + c);
    }
  }
}

}  // namespace

template <class T>
int64_t vector_attention_scratch(int64_t K, int64_t V) {
  const int64_t Kp = padded<T>(K), Vp = padded<T>(V);
  return 11 * Arena<T>::rounded(C * Kp) + 3 * Arena<T>::rounded(C * Vp) + 2 * C * C +
         Arena<T>::rounded(kPairs * lanes<T>) + kChunk / C * Arena<T>::rounded(Kp * Vp) + Arena<T>::rounded(Kp);
}

template <class T>
void vector_attention_forward(const AttentionHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena) {
  Buffers<T> s(head, arena);
  T* state = head.states;
  for (int64_t begin = 0; begin < head.steps; begin += C) {
    const int64_t n = std::min(C, head.steps - begin);
    read_chunk(head, begin, n, s);
    sum_pairs(s);
    gemm_nn(C, s.Vp, C, s.P, C, s.v, s.Vp, s.out, s.Vp, false, lower);
    for (int64_t i = 0; i < C * s.Kp; ++i) s.q[i] *= s.since_start[i];
    gemm_nn(C, s.Vp, s.Kp, s.q, s.Kp, state, s.Vp, s.out, s.Vp, true);
    give_rows(n, head.V, s.Vp, s.out, out + begin * out_stride, out_stride);
    T* next = head.keep_states && begin % kChunk == 0 ? state + s.Kp * s.Vp : state;
    advance_state(s, state, next);
    state = next;
  }
}

template <class T>
void vector_attention_backward(const AttentionHead<T>& head, const AttentionHeadGradients<T>& grad, Arena<T>& arena) {
  Buffers<T> s(head, arena);
  T* const d_out = arena.take(C * s.Vp);
  T* const dq = arena.take(C * s.Kp);
  T* const dk = arena.take(C * s.Kp);
  T* const dg = arena.take(C * s.Kp);
  T* const dq_state = arena.take(C * s.Kp);
  T* const dk_state = arena.take(C * s.Kp);
  T* const dP = arena.take(C * C);
  T* const along = arena.take(s.Kp);
  T* inner[kChunk / C];
  for (T*& state : inner) state = arena.take(s.Kp * s.Vp);
  T* const d_state = grad.d_state;
  for (int64_t chunk = (head.steps - 1) / kChunk * kChunk; chunk >= 0; chunk -= kChunk) {
    const int64_t parts = (std::min(kChunk, head.steps - chunk) + C - 1) / C;
    std::copy_n(head.states + chunk / kChunk * s.Kp * s.Vp, s.Kp * s.Vp, inner[0]);
    for (int64_t part = parts - 1; part >= 0; --part) {
      if (part == parts - 1) {
        for (int64_t p = 0; p + 1 < parts; ++p) {
          read_writes(head, chunk + p * C, C, s);
          carry_keys(s);
          advance_state(s, inner[p], inner[p + 1]);
        }
      }
      const int64_t begin = chunk + part * C, n = std::min(C, head.steps - begin);
      const T* state = inner[part];
      read_chunk(head, begin, n, s);
      take_rows(n, C, head.V, s.Vp, grad.d_out + begin * grad.d_out_stride, grad.d_out_stride, d_out);
      sum_pairs(s);
      gemm_nt(C, C, s.Vp, d_out, s.Vp, s.v, s.Vp, dP, C, false, lower);
      pair_gradients(s, dP, dq, dk, dg);

      gemm_nt(C, s.Kp, s.Vp, d_out, s.Vp, state, s.Vp, dq_state, s.Kp);
      gemm_nt(C, s.Kp, s.Vp, s.v, s.Vp, d_state, s.Vp, dk_state, s.Kp);
      // Terms of the log-decays: of the entering state's reads for steps up to i, of writes for steps after i.
      for (int64_t k = 0; k < s.Kp; ++k)
        along[k] = s.total()[k] * simd::dot(s.Vp, d_state + k * s.Vp, state + k * s.Vp);
      for (int64_t i = 0; i < C; ++i) {
        for (int64_t k = 0; k < s.Kp; ++k) {
          const int64_t e = i * s.Kp + k;
          dg[e] += along[k];
          along[k] += s.until_end[e] * dk_state[e];
        }
      }
      std::fill_n(along, s.Kp, T(0));
      for (int64_t i = C - 1; i >= 0; --i) {
        for (int64_t k = 0; k < s.Kp; ++k) {
          const int64_t e = i * s.Kp + k;
          const T from_state = s.since_start[e] * dq_state[e];
          dq[e] += from_state;
          along[k] += s.q[e] * from_state;
          dg[e] += along[k];
        }
      }
      std::fill_n(along, s.Kp, T(1));
      for (int64_t i = C - 1; i >= 0; --i) {
        for (int64_t k = 0; k < s.Kp; ++k) {
          const int64_t e = i * s.Kp + k;
          dk[e] += along[k] * dk_state[e];
          along[k] *= s.a[e];
        }
      }
      give_rows(n, head.K, s.Kp, dq, grad.dq + begin * grad.dq_stride, grad.dq_stride, static_cast<T>(head.scale));
      give_rows(n, head.K, s.Kp, dk, grad.dk + begin * grad.dk_stride, grad.dk_stride);
      give_rows(n, head.K, s.Kp, dg, grad.dg + begin * grad.dg_stride, grad.dg_stride);

      gemm_tn(C, s.Vp, C, s.P, C, d_out, s.Vp, s.out, s.Vp, false, lower);
      gemm_nn(C, s.Vp, s.Kp, s.until_end, s.Kp, d_state, s.Vp, s.out, s.Vp, true);
      give_rows(n, head.V, s.Vp, s.out, grad.dv + begin * grad.dv_stride, grad.dv_stride);
      for (int64_t i = 0; i < C * s.Kp; ++i) s.q[i] *= s.since_start[i];
      for (int64_t k = 0; k < s.Kp; ++k) scale_row(s.Vp, s.total()[k], d_state + k * s.Vp);
      gemm_tn(s.Kp, s.Vp, C, s.q, s.Kp, d_out, s.Vp, d_state, s.Vp, true);
    }
  }
}

#define SB_INSTANTIATE(T)                                                                     \
  template int64_t vector_attention_scratch<T>(int64_t, int64_t);                             \
  template void vector_attention_forward<T>(const AttentionHead<T>&, T*, int64_t, Arena<T>&); \
  template void vector_attention_backward<T>(const AttentionHead<T>&, const AttentionHeadGradients<T>&, Arena<T>&);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
