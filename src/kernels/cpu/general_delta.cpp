#include "kernels/cpu/general_delta.h"

#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/rows.h"

namespace sb::cpu {
namespace {

constexpr int64_t C = kGeneralDeltaChunk;
constexpr int64_t kPairs = C * (C + 1) / 2;

// Stacked matrices have 2 C rows: those of q, then erase; or N rows or columns: those of k, then write; of V, then -R.
// If keys are written, N is C, and the only values are V - R.
template <class T>
struct Buffers {
  int64_t Kp, Vp, N;
  T *qe, *reads;  // [2C, Kp]; reads: times the decay since the start of the chunk
  T *kw, *left;   // [N, Kp]; left: times the decay until its end
  T* values;      // [N, Vp]
  T *PQ, *E, *A;  // [C, N], [C, C] twice; A is -A of the header, as solve_lower expects; without E if keys are written
  T *a, *since;   // [C, Kp]
  T* from_state;  // [2C, Vp]
  Buffers(const GeneralDeltaHead<T>& head, Arena<T>& arena)
      : Kp(padded<T>(head.K)),
        Vp(padded<T>(head.V)),
        N(head.writes_keys ? C : 2 * C),
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
  if (!head.writes_keys) take(head.write, head.write_stride, head.K, s.Kp, s.kw + C * s.Kp);
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
  const int64_t Kp = s.Kp, N = s.N;
  std::fill_n(s.PQ, C * N, T(0));
  std::fill_n(s.E, C * C, T(0));
  std::fill_n(s.A, C * C, T(0));
  std::copy_n(s.kw, N * Kp, s.left);
  for (int64_t i = 0; i < C; ++i) {
    const T *a = s.a + i * Kp, *q = s.qe + i * Kp, *e = s.qe + (C + i) * Kp;
    for (int64_t first = 0; first < N; first += C) {
      T *pairs = s.PQ + i * N + first, *erased = first + C == N ? s.A + i * C : s.E + i * C;
      for (int64_t j = 0; j < i; ++j) {
        const auto sums = decay_and_read(Kp, erase_first, a, q, e, s.left + (first + j) * Kp);
        pairs[j] = sums.by_query;
        erased[j] = first + C == N ? -sums.by_erase : sums.by_erase;
      }
      pairs[i] = simd::dot(Kp, q, s.left + (first + i) * Kp);
    }
  }
}

// from_state = (reads) S; then V - R in the values, or R in the lower half of from_state, and -R in the values
template <class T>
void erase_values(const T* state, Buffers<T>& s) {
  gemm_nn(2 * C, s.Vp, s.Kp, s.reads, s.Kp, state, s.Vp, s.from_state, s.Vp);
  T* const R = s.from_state + C * s.Vp;
  if (s.N == C) {
    for (int64_t i = 0; i < C * s.Vp; ++i) s.values[i] -= R[i];
    solve_lower(C, s.Vp, s.A, C, s.values, s.Vp);
    return;
  }
  gemm_nn(C, s.Vp, C, s.E, C, s.values, s.Vp, R, s.Vp, true, lower);
  solve_lower(C, s.Vp, s.A, C, R, s.Vp);
  for (int64_t i = 0; i < C * s.Vp; ++i) s.values[C * s.Vp + i] = -R[i];
}

// Keys of one column, k and, unless keys are written, w: kSides of them.
template <class T, int kSides>
struct Sides {
  Vec<T> at[kSides];
};

// Gradients through the pairs. In: dPQ, dEA [C, N] (of A itself), d_left [N, Kp]. Out: dqe [2C, Kp], dkw [N, Kp] and dg
// [C, Kp].
template <int kSides, class T>
void pair_gradients(bool erase_first, const Buffers<T>& s, const T* dPQ, const T* dEA, const T* d_left, T* dqe, T* dkw,
                    T* dg) {
  using simd::load, simd::store;
  using Vec = simd::Vec<T>;
  constexpr int64_t N = kSides * C;
  const int64_t Kp = s.Kp;
  for (int64_t c = 0; c < Kp; c += lanes<T>) {
    Sides<T, kSides> keys[kPairs];  // decayed until step i
    for (int64_t i = 0; i < C; ++i) {
      const Vec a = load(s.a + i * Kp + c);
      auto* const now = keys + pair_index(i, 0);
      const auto* const last = i > 0 ? keys + pair_index(i - 1, 0) : keys;
      const T *dp = dPQ + i * N, *de = dEA + i * N;
      Vec by_query(T(0)), by_erase(T(0));
      for (int64_t m = 0; m < kSides; ++m) {
        now[i].at[m] = load(s.kw + (m * C + i) * Kp + c);
        by_query = xsimd::fma(now[i].at[m], Vec(dp[m * C + i]), by_query);
      }
      for (int64_t j = 0; j < i; ++j)
        for (int64_t m = 0; m < kSides; ++m) {
          now[j].at[m] = last[j].at[m] * a;
          by_query = xsimd::fma(now[j].at[m], Vec(dp[m * C + j]), by_query);
          by_erase = xsimd::fma(erase_first ? last[j].at[m] : now[j].at[m], Vec(de[m * C + j]), by_erase);
        }
      store(dqe + i * Kp + c, by_query);
      store(dqe + (C + i) * Kp + c, by_erase);
    }
    Sides<T, kSides> d[C];  // of the keys decayed until step i
    for (int64_t j = 0; j < C; ++j)
      for (int64_t m = 0; m < kSides; ++m) d[j].at[m] = load(d_left + (m * C + j) * Kp + c);
    for (int64_t i = C - 1; i >= 0; --i) {
      const Vec a = load(s.a + i * Kp + c), q = load(s.qe + i * Kp + c), e = load(s.qe + (C + i) * Kp + c);
      const auto* const now = keys + pair_index(i, 0);
      const T *dp = dPQ + i * N, *de = dEA + i * N;
      Vec sum(T(0));
      for (int64_t j = 0; j < i; ++j)
        for (int64_t m = 0; m < kSides; ++m) {
          Vec decayed = xsimd::fma(q, Vec(dp[m * C + j]), d[j].at[m]);
          if (!erase_first) decayed = xsimd::fma(e, Vec(de[m * C + j]), decayed);
          sum = xsimd::fma(now[j].at[m], decayed, sum);
          d[j].at[m] = decayed * a;
          if (erase_first) d[j].at[m] = xsimd::fma(e, Vec(de[m * C + j]), d[j].at[m]);
        }
      for (int64_t m = 0; m < kSides; ++m)
        store(dkw + (m * C + i) * Kp + c, xsimd::fma(q, Vec(dp[m * C + i]), d[i].at[m]));
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
    gemm_nn(C, s.Vp, s.N, s.PQ, s.N, s.values, s.Vp, s.from_state, s.Vp, true);
    give_rows(n, head.V, s.Vp, s.from_state, out + begin * out_stride, out_stride);
    T* const next = head.keep_states ? state + s.Kp * s.Vp : state;
    for (int64_t k = 0; k < s.Kp; ++k) {
      const T factor = s.total()[k];
      for (int64_t j = 0; j < s.Vp; ++j) next[k * s.Vp + j] = factor * state[k * s.Vp + j];
    }
    gemm_tn(s.Kp, s.Vp, s.N, s.left, s.Kp, s.values, s.Vp, next, s.Vp, true);
    state = next;
  }
}

template <class T>
void general_delta_backward(const GeneralDeltaHead<T>& head, const GeneralDeltaHeadGradients<T>& grad,
                            Arena<T>& arena) {
  Buffers<T> s(head, arena);
  const int64_t Kp = s.Kp, Vp = s.Vp, N = s.N;
  T* const d_read = arena.take(2 * C * Vp);    // dO, then Z: gradients of what is read from the entering state
  T* const d_values = arena.take(2 * C * Vp);  // dV, then d(-R); if keys are written, only the former
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

    gemm_tn(N, Vp, C, s.PQ, N, d_out, Vp, d_values, Vp);
    gemm_nn(N, Vp, Kp, s.left, Kp, d_state, Vp, d_values, Vp, true);
    if (head.writes_keys) {
      solve_lower_transposed(C, Vp, s.A, C, d_values, Vp);
      for (int64_t i = 0; i < C * Vp; ++i) Z[i] = -d_values[i];
    } else {
      for (int64_t i = 0; i < C * Vp; ++i) Z[i] = -d_values[C * Vp + i];
      solve_lower_transposed(C, Vp, s.A, C, Z, Vp);
      gemm_tn(C, Vp, C, s.E, C, Z, Vp, d_values, Vp, true, lower);
    }
    gemm_nt(C, N, Vp, d_out, Vp, s.values, Vp, dPQ, N);
    gemm_nt(C, N, Vp, Z, Vp, s.values, Vp, dEA, N);
    gemm_nt(2 * C, Kp, Vp, d_read, Vp, state, Vp, d_reads, Kp);
    gemm_nt(N, Kp, Vp, s.values, Vp, d_state, Vp, d_left, Kp);
    if (head.writes_keys)
      pair_gradients<1>(head.erase_first, s, dPQ, dEA, d_left, dqe, dkw, dg);
    else
      pair_gradients<2>(head.erase_first, s, dPQ, dEA, d_left, dqe, dkw, dg);

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
    if (!head.writes_keys) give(head.K, Kp, dkw + C * Kp, grad.d_write, grad.d_write_stride);
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
