#include "kernels/cpu/general_delta.h"

#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/rows.h"

namespace sb::cpu {
namespace {

constexpr int64_t C = kGeneralDeltaChunk;
constexpr int64_t kPairs = C * (C + 1) / 2;

// Stacked matrices have 2 C rows or columns: those of q, then erase; of k, then write; of V, then -R.
template <class T>
struct Buffers {
  int64_t Kp, Vp;
  T *qe, *reads;  // [2C, Kp]; reads: times the decay since the start of the chunk
  T *kw, *left;   // [2C, Kp]; left: times the decay until its end
  T* values;      // [2C, Vp]
  T *PQ, *E, *A;  // [C, 2C], [C, C] twice; A is -A of the header, as solve_lower expects
  T *a, *since;   // [C, Kp]
  T* from_state;  // [2C, Vp]
  Buffers(const GeneralDeltaHead<T>& head, Arena<T>& arena)
      : Kp(padded<T>(head.K)),
        Vp(padded<T>(head.V)),
        qe(arena.take(2 * C * Kp)),
        reads(arena.take(2 * C * Kp)),
        kw(arena.take(2 * C * Kp)),
        left(arena.take(2 * C * Kp)),
        values(arena.take(2 * C * Vp)),
        PQ(arena.take(2 * C * C)),
        E(arena.take(C * C)),
        A(arena.take(C * C)),
        a(arena.take(C * Kp)),
        since(arena.take(C * Kp)),
        from_state(arena.take(2 * C * Vp)) {}
  const T* total() const { return since + (C - 1) * Kp; }
};

template <class T>
void read_chunk(const GeneralDeltaHead<T>& head, int64_t begin, int64_t n, Buffers<T>& s) {
  const auto take = [&](const T* from, int64_t stride, int64_t width, int64_t ld, T* to, T factor = T(1)) {
    take_rows(n, C, width, ld, from + begin * stride, stride, to, factor);
  };
  take(head.q, head.q_stride, head.K, s.Kp, s.qe, static_cast<T>(head.scale));
  take(head.erase, head.erase_stride, head.K, s.Kp, s.qe + C * s.Kp);
  take(head.k, head.k_stride, head.K, s.Kp, s.kw);
  take(head.write, head.write_stride, head.K, s.Kp, s.kw + C * s.Kp);
  take(head.v, head.v_stride, head.V, s.Vp, s.values);
  take(head.g, head.g_stride, head.K, s.Kp, s.a);
  simd::for_packs<T>(C * s.Kp, [a = s.a](int64_t i, const auto& io) { io.store(a + i, simd::exp(io.load(a + i))); });
  std::copy_n(s.a, s.Kp, s.since);
  for (int64_t i = s.Kp; i < C * s.Kp; ++i) s.since[i] = s.since[i - s.Kp] * s.a[i];
  T* const erase_reads = s.reads + C * s.Kp;
  for (int64_t i = 0; i < C * s.Kp; ++i) s.reads[i] = s.qe[i] * s.since[i];
  if (head.erase_first) {
    std::copy_n(s.qe + C * s.Kp, s.Kp, erase_reads);
    for (int64_t i = s.Kp; i < C * s.Kp; ++i) erase_reads[i] = s.qe[C * s.Kp + i] * s.since[i - s.Kp];
  } else {
    for (int64_t i = 0; i < C * s.Kp; ++i) erase_reads[i] = s.qe[C * s.Kp + i] * s.since[i];
  }
}

template <class T>
struct PairSums2 {
  T by_query, by_erase;
};

// Decays `key` by a, and returns q . (decayed key) and e . (key, decayed or not).
template <class T>
PairSums2<T> decay_and_read(int64_t Kp, bool erase_first, const T* a, const T* q, const T* e, T* key) {
  using simd::load;
  Vec<T> by_query(T(0)), by_erase(T(0));
  for (int64_t c = 0; c < Kp; c += lanes<T>) {
    const Vec<T> before = load(key + c), after = before * load(a + c);
    simd::store(key + c, after);
    by_query = xsimd::fma(load(q + c), after, by_query);
    by_erase = xsimd::fma(load(e + c), erase_first ? before : after, by_erase);
  }
  return {simd::horizontal_sum(by_query), simd::horizontal_sum(by_erase)};
}

// PQ, E, A and `left`
template <class T>
void sum_pairs(bool erase_first, Buffers<T>& s) {
  const int64_t Kp = s.Kp;
  std::fill_n(s.PQ, 2 * C * C, T(0));
  std::fill_n(s.E, C * C, T(0));
  std::fill_n(s.A, C * C, T(0));
  std::copy_n(s.kw, 2 * C * Kp, s.left);
  for (int64_t i = 0; i < C; ++i) {
    const T *a = s.a + i * Kp, *q = s.qe + i * Kp, *e = s.qe + (C + i) * Kp;
    for (int64_t j = 0; j < i; ++j) {
      const auto k = decay_and_read(Kp, erase_first, a, q, e, s.left + j * Kp);
      const auto w = decay_and_read(Kp, erase_first, a, q, e, s.left + (C + j) * Kp);
      s.PQ[i * 2 * C + j] = k.by_query;
      s.PQ[i * 2 * C + C + j] = w.by_query;
      s.E[i * C + j] = k.by_erase;
      s.A[i * C + j] = -w.by_erase;
    }
    s.PQ[i * 2 * C + i] = simd::dot(Kp, q, s.left + i * Kp);
    s.PQ[i * 2 * C + C + i] = simd::dot(Kp, q, s.left + (C + i) * Kp);
  }
}

// from_state = (reads) S; then R in its lower half, and -R in the values
template <class T>
void erase_values(const T* state, Buffers<T>& s) {
  gemm_nn(2 * C, s.Vp, s.Kp, s.reads, s.Kp, state, s.Vp, s.from_state, s.Vp);
  T* const R = s.from_state + C * s.Vp;
  gemm_nn(C, s.Vp, C, s.E, C, s.values, s.Vp, R, s.Vp, true, lower);
  solve_lower(C, s.Vp, s.A, C, R, s.Vp);
  for (int64_t i = 0; i < C * s.Vp; ++i) s.values[C * s.Vp + i] = -R[i];
}

// Gradients through the pairs. In: dPQ, dEA [C, 2C] (of A itself), d_left [2C, Kp]. Out: dqe, dkw [2C, Kp] and dg
// [C, Kp].
template <class T>
void pair_gradients(bool erase_first, const Buffers<T>& s, const T* dPQ, const T* dEA, const T* d_left, T* dqe, T* dkw,
                    T* dg) {
  using simd::load, simd::store;
  using Vec = simd::Vec<T>;
  const int64_t Kp = s.Kp;
  for (int64_t c = 0; c < Kp; c += lanes<T>) {
    Vec k[kPairs], w[kPairs];  // decayed until step i
    for (int64_t i = 0; i < C; ++i) {
      const Vec a = load(s.a + i * Kp + c);
      Vec *ki = k + pair_index(i, 0), *wi = w + pair_index(i, 0);
      const Vec *k_last = i > 0 ? k + pair_index(i - 1, 0) : k, *w_last = i > 0 ? w + pair_index(i - 1, 0) : w;
      ki[i] = load(s.kw + i * Kp + c);
      wi[i] = load(s.kw + (C + i) * Kp + c);
      const T *dp = dPQ + i * 2 * C, *de = dEA + i * 2 * C;
      Vec by_query = ki[i] * Vec(dp[i]) + wi[i] * Vec(dp[C + i]), by_erase(T(0));
      for (int64_t j = 0; j < i; ++j) {
        ki[j] = k_last[j] * a;
        wi[j] = w_last[j] * a;
        by_query = xsimd::fma(ki[j], Vec(dp[j]), xsimd::fma(wi[j], Vec(dp[C + j]), by_query));
        const Vec k_read = erase_first ? k_last[j] : ki[j], w_read = erase_first ? w_last[j] : wi[j];
        by_erase = xsimd::fma(k_read, Vec(de[j]), xsimd::fma(w_read, Vec(de[C + j]), by_erase));
      }
      store(dqe + i * Kp + c, by_query);
      store(dqe + (C + i) * Kp + c, by_erase);
    }
    Vec dk[C], dw[C];  // of the keys decayed until step i
    for (int64_t j = 0; j < C; ++j) {
      dk[j] = load(d_left + j * Kp + c);
      dw[j] = load(d_left + (C + j) * Kp + c);
    }
    for (int64_t i = C - 1; i >= 0; --i) {
      const Vec a = load(s.a + i * Kp + c), q = load(s.qe + i * Kp + c), e = load(s.qe + (C + i) * Kp + c);
      const Vec *ki = k + pair_index(i, 0), *wi = w + pair_index(i, 0);
      const T *dp = dPQ + i * 2 * C, *de = dEA + i * 2 * C;
      Vec sum(T(0));
      for (int64_t j = 0; j < i; ++j) {
        const Vec ek = e * Vec(de[j]), ew = e * Vec(de[C + j]);
        Vec now_k = xsimd::fma(q, Vec(dp[j]), dk[j]), now_w = xsimd::fma(q, Vec(dp[C + j]), dw[j]);
        if (!erase_first) {
          now_k += ek;
          now_w += ew;
        }
        sum = xsimd::fma(ki[j], now_k, xsimd::fma(wi[j], now_w, sum));
        dk[j] = now_k * a;
        dw[j] = now_w * a;
        if (erase_first) {
          dk[j] += ek;
          dw[j] += ew;
        }
      }
      store(dkw + i * Kp + c, xsimd::fma(q, Vec(dp[i]), dk[i]));
      store(dkw + (C + i) * Kp + c, xsimd::fma(q, Vec(dp[C + i]), dw[i]));
      store(dg + i * Kp + c, sum);
    }
  }
}

}  // namespace

template <class T>
int64_t general_delta_scratch(int64_t K, int64_t V) {
  const int64_t Kp = padded<T>(K), Vp = padded<T>(V);
  return 8 * Arena<T>::rounded(2 * C * Kp) + 3 * Arena<T>::rounded(C * Kp) + 4 * Arena<T>::rounded(2 * C * Vp) +
         5 * Arena<T>::rounded(2 * C * C) + Arena<T>::rounded(Kp);
}

template <class T>
void general_delta_forward(const GeneralDeltaHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena) {
  Buffers<T> s(head, arena);
  T* state = head.states;
  for (int64_t begin = 0; begin < head.steps; begin += C) {
    const int64_t n = std::min(C, head.steps - begin);
    read_chunk(head, begin, n, s);
    sum_pairs(head.erase_first, s);
    erase_values(state, s);
    gemm_nn(C, s.Vp, 2 * C, s.PQ, 2 * C, s.values, s.Vp, s.from_state, s.Vp, true);
    give_rows(n, head.V, s.Vp, s.from_state, out + begin * out_stride, out_stride);
    T* const next = head.keep_states ? state + s.Kp * s.Vp : state;
    for (int64_t k = 0; k < s.Kp; ++k) {
      const T factor = s.total()[k];
      for (int64_t j = 0; j < s.Vp; ++j) next[k * s.Vp + j] = factor * state[k * s.Vp + j];
    }
    gemm_tn(s.Kp, s.Vp, 2 * C, s.left, s.Kp, s.values, s.Vp, next, s.Vp, true);
    state = next;
  }
}

template <class T>
void general_delta_backward(const GeneralDeltaHead<T>& head, const GeneralDeltaHeadGradients<T>& grad,
                            Arena<T>& arena) {
  Buffers<T> s(head, arena);
  const int64_t Kp = s.Kp, Vp = s.Vp;
  T* const d_read = arena.take(2 * C * Vp);    // dO, then Z: gradients of what is read from the entering state
  T* const d_values = arena.take(2 * C * Vp);  // dV, then d(-R)
  T* const d_reads = arena.take(2 * C * Kp);
  T* const d_left = arena.take(2 * C * Kp);
  T* const dqe = arena.take(2 * C * Kp);
  T* const dkw = arena.take(2 * C * Kp);
  T* const dg = arena.take(C * Kp);
  T* const dPQ = arena.take(2 * C * C);
  T* const dEA = arena.take(2 * C * C);
  T* const along = arena.take(Kp);
  T* const d_state = grad.d_state;
  for (int64_t begin = (head.steps - 1) / C * C; begin >= 0; begin -= C) {
    const int64_t n = std::min(C, head.steps - begin);
    const T* state = head.states + begin / C * Kp * Vp;
    read_chunk(head, begin, n, s);
    sum_pairs(head.erase_first, s);
    erase_values(state, s);
    T *d_out = d_read, *Z = d_read + C * Vp;
    take_rows(n, C, head.V, Vp, grad.d_out + begin * grad.d_out_stride, grad.d_out_stride, d_out);

    gemm_tn(2 * C, Vp, C, s.PQ, 2 * C, d_out, Vp, d_values, Vp);
    gemm_nn(2 * C, Vp, Kp, s.left, Kp, d_state, Vp, d_values, Vp, true);
    for (int64_t i = 0; i < C * Vp; ++i) Z[i] = -d_values[C * Vp + i];
    solve_lower_transposed(C, Vp, s.A, C, Z, Vp);
    gemm_tn(C, Vp, C, s.E, C, Z, Vp, d_values, Vp, true, lower);
    gemm_nt(C, 2 * C, Vp, d_out, Vp, s.values, Vp, dPQ, 2 * C);
    gemm_nt(C, 2 * C, Vp, Z, Vp, s.values, Vp, dEA, 2 * C);
    gemm_nt(2 * C, Kp, Vp, d_read, Vp, state, Vp, d_reads, Kp);
    gemm_nt(2 * C, Kp, Vp, s.values, Vp, d_state, Vp, d_left, Kp);
    pair_gradients(head.erase_first, s, dPQ, dEA, d_left, dqe, dkw, dg);

    // Reads of the entering state, from the last step to the first: their log-decays act on all steps up to them.
    for (int64_t k = 0; k < Kp; ++k) along[k] = s.total()[k] * simd::dot(Vp, d_state + k * Vp, state + k * Vp);
    for (int64_t i = C - 1; i >= 0; --i) {
      const int64_t decays = head.erase_first ? i - 1 : i;  // on what the step erases from; -1: none
      for (int64_t k = 0; k < Kp; ++k) {
        const int64_t query = i * Kp + k, erase = (C + i) * Kp + k;
        dqe[query] += s.since[query] * d_reads[query];
        dqe[erase] += (decays < 0 ? T(1) : s.since[decays * Kp + k]) * d_reads[erase];
        const T erased = s.reads[erase] * d_reads[erase];
        along[k] += s.reads[query] * d_reads[query] + (head.erase_first ? T(0) : erased);
        dg[query] += along[k];
        if (head.erase_first) along[k] += erased;
      }
    }
    const auto give = [&](int64_t width, int64_t ld, const T* from, T* to, int64_t stride, T factor = T(1)) {
      give_rows(n, width, ld, from, to + begin * stride, stride, factor);
    };
    give(head.K, Kp, dqe, grad.dq, grad.dq_stride, static_cast<T>(head.scale));
    give(head.K, Kp, dqe + C * Kp, grad.d_erase, grad.d_erase_stride);
    give(head.K, Kp, dkw, grad.dk, grad.dk_stride);
    give(head.K, Kp, dkw + C * Kp, grad.d_write, grad.d_write_stride);
    give(head.K, Kp, dg, grad.dg, grad.dg_stride);
    give(head.V, Vp, d_values, grad.dv, grad.dv_stride);
    for (int64_t k = 0; k < Kp; ++k) scale_row(Vp, s.total()[k], d_state + k * Vp);
    gemm_tn(Kp, Vp, 2 * C, s.reads, Kp, d_read, Vp, d_state, Vp, true);
  }
}

#define SB_INSTANTIATE(T)                                                                     \
  template int64_t general_delta_scratch<T>(int64_t, int64_t);                                \
  template void general_delta_forward<T>(const GeneralDeltaHead<T>&, T*, int64_t, Arena<T>&); \
  template void general_delta_backward<T>(const GeneralDeltaHead<T>&, const GeneralDeltaHeadGradients<T>&, Arena<T>&);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
