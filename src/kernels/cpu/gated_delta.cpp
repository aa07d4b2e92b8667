#include "kernels/cpu/gated_delta.h"

#include <cmath>

#include "kernels/cpu/decay.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/rows.h"

namespace sb::cpu {
namespace {

// Short chunks are faster (measured) with one factor. With several factors they would save a state every few tokens.
constexpr int64_t chunk_rows(int64_t factors) {
  return factors == 1 ? 32 : 64;
}

template <class T>
struct Sizes {
  int64_t tokens, rows, Kp, Vp;  // of a whole chunk, padded
  Sizes(int64_t factors, int64_t K, int64_t V)
      : tokens(padded<T>(delta_chunk_tokens(factors))),
        rows(padded<T>(delta_chunk_tokens(factors) * factors)),
        Kp(padded<T>(K)),
        Vp(padded<T>(V)) {}
};

// Scratch memory of forward and backward. q and k are adjacent, and so are the two matrices that multiply them.
template <class T>
struct Buffers : Sizes<T> {
  using Sizes<T>::tokens, Sizes<T>::rows, Sizes<T>::Kp, Sizes<T>::Vp;
  int64_t n;  // factors
  T *qk, *v, *corrected, *out;
  T *G, *A, *P;                                   // [rows, rows] twice, [tokens, rows]; G = (K K^T) o D, A = -beta G
  T *beta, *a, *since_start, *until_end, *decay;  // [rows]; decays repeat for every factor of a token

  Buffers(const DeltaHead<T>& head, Arena<T>& arena) : Sizes<T>(head.factors, head.K, head.V), n(head.factors) {
    qk = arena.take((tokens + rows) * Kp);
    v = arena.take(rows * Vp);
    corrected = arena.take(rows * Vp);
    out = arena.take((tokens + rows) * Vp);
    G = arena.take(rows * rows);
    A = arena.take(rows * rows);
    P = arena.take(tokens * rows);
    for (T** row : {&beta, &a, &since_start, &until_end, &decay}) *row = arena.take(rows);
  }
  T* q() const { return qk; }
  T* k(int64_t chunk_tokens) const { return qk + chunk_tokens * Kp; }
};

// The chunk at hand: tokens begin.. of it and their padded counts.
struct Chunk {
  int64_t begin, tokens, rows, padded_tokens, padded_rows;
};

template <class T>
Chunk chunk_at(const DeltaHead<T>& head, int64_t begin) {
  const int64_t tokens = std::min(delta_chunk_tokens(head.factors), head.steps - begin);
  const int64_t rows = tokens * head.factors;
  return {begin, tokens, rows, padded<T>(tokens), padded<T>(rows)};
}

// Reads the chunk; returns the decay over all of it.
template <class T>
T read_chunk(const DeltaHead<T>& head, const Chunk& c, Buffers<T>& s) {
  take_rows(c.tokens, c.padded_tokens, head.K, s.Kp, head.q + c.begin * head.q_stride, head.q_stride, s.q(),
            static_cast<T>(head.scale));
  T* const k = s.k(c.padded_tokens);
  for (int64_t t = 0; t < c.tokens; ++t) {
    const int64_t time = c.begin + t;
    take_rows(s.n, s.n, head.K, s.Kp, head.k + time * head.k_stride, head.k_factor, k + t * s.n * s.Kp);
    take_rows(s.n, s.n, head.V, s.Vp, head.v + time * head.v_stride, head.v_factor, s.v + t * s.n * s.Vp);
    for (int64_t j = 0; j < s.n; ++j) {
      s.beta[t * s.n + j] = head.beta[time * head.beta_stride + j * head.beta_factor];
      s.a[t * s.n + j] = head.g && j == 0 ? std::exp(head.g[time * head.g_stride]) : T(1);
    }
  }
  std::fill(k + c.rows * s.Kp, k + c.padded_rows * s.Kp, T(0));
  std::fill(s.v + c.rows * s.Vp, s.v + c.padded_rows * s.Vp, T(0));
  std::fill(s.beta + c.rows, s.beta + c.padded_rows, T(0));
  std::fill(s.a + c.rows, s.a + c.padded_rows, T(1));
  return decay_products(c.padded_rows, s.a, s.since_start, s.until_end);
}

// decay[s] = decay between row s and row r, after it held that of row r - 1
template <class T>
void advance_decay(int64_t r, const T* a, T* decay) {
  if (a[r] != T(1)) scale_row(r, a[r], decay);
  decay[r] = 1;
}

// G, A and P of the chunk
template <class T>
void build_pairs(const Chunk& c, Buffers<T>& s) {
  const T* k = s.k(c.padded_tokens);
  gemm_nt(c.padded_rows, c.padded_rows, s.Kp, k, s.Kp, k, s.Kp, s.G, s.rows, false, lower);
  gemm_nt(c.padded_tokens, c.padded_rows, s.Kp, s.q(), s.Kp, k, s.Kp, s.P, s.rows, false, Shape{s.n});
  for (int64_t r = 0; r < c.padded_rows; ++r) {
    advance_decay(r, s.a, s.decay);
    T *g = s.G + r * s.rows, *a = s.A + r * s.rows;
    const T minus_beta = -s.beta[r];
    for (int64_t j = 0; j < r; ++j) {
      g[j] *= s.decay[j];
      a[j] = minus_beta * g[j];
    }
    std::fill(g + r, g + c.padded_rows, T(0));
    std::fill(a + r, a + c.padded_rows, T(0));
    if (r % s.n == s.n - 1 && r / s.n < c.padded_tokens) {
      T* p = s.P + r / s.n * s.rows;
      for (int64_t j = 0; j <= r; ++j) p[j] *= s.decay[j];
      std::fill(p + r + 1, p + c.padded_rows, T(0));
    }
  }
  // Rows of P beyond the last whole token belong to padding only.
  for (int64_t t = c.padded_rows / s.n; t < c.padded_tokens; ++t) std::fill_n(s.P + t * s.rows, c.padded_rows, T(0));
}

// v <- V - (c K) S, corrected <- V'; k <- c K on return
template <class T>
void correct_values(const Chunk& c, const T* state, Buffers<T>& s) {
  T* const k = s.k(c.padded_tokens);
  scale_rows(c.padded_rows, s.Kp, s.since_start, k);
  gemm_nn(c.padded_rows, s.Vp, s.Kp, k, s.Kp, state, s.Vp, s.corrected, s.Vp);
  for (int64_t r = 0; r < c.padded_rows; ++r) {
    T *v = s.v + r * s.Vp, *x = s.corrected + r * s.Vp;
    const T beta = s.beta[r];
    for (int64_t j = 0; j < s.Vp; ++j) {
      v[j] -= x[j];
      x[j] = beta * v[j];
    }
  }
  solve_lower(c.padded_rows, s.Vp, s.A, s.rows, s.corrected, s.Vp);
}

}  // namespace

int64_t delta_chunk_tokens(int64_t factors) {
  return std::max<int64_t>(1, chunk_rows(factors) / factors);
}

template <class T>
int64_t delta_scratch(int64_t factors, int64_t K, int64_t V) {
  const Sizes<T> z(factors, K, V);
  const int64_t stacked = z.tokens + z.rows;
  return 5 * Arena<T>::rounded(stacked * z.Kp) + 6 * Arena<T>::rounded(stacked * z.Vp) +
         5 * Arena<T>::rounded(stacked * z.rows) + 16 * Arena<T>::rounded(stacked);
}

template <class T>
void delta_forward(const DeltaHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena) {
  Buffers<T> s(head, arena);
  T* const k_until_end = arena.take(s.rows * s.Kp);
  T* state = head.states;
  for (int64_t begin = 0; begin < head.steps; begin += delta_chunk_tokens(head.factors)) {
    const Chunk c = chunk_at(head, begin);
    const T total = read_chunk(head, c, s);
    const T* k = s.k(c.padded_tokens);
    build_pairs(c, s);
    for (int64_t r = 0; r < c.padded_rows; ++r) {
      for (int64_t j = 0; j < s.Kp; ++j) k_until_end[r * s.Kp + j] = s.until_end[r] * k[r * s.Kp + j];
    }
    correct_values(c, state, s);
    gemm_nn(c.padded_tokens, s.Vp, c.padded_rows, s.P, s.rows, s.corrected, s.Vp, s.out, s.Vp, false, Shape{s.n});
    for (int64_t t = 0; t < c.tokens; ++t) scale_row(s.Kp, s.since_start[t * s.n], s.q() + t * s.Kp);
    gemm_nn(c.padded_tokens, s.Vp, s.Kp, s.q(), s.Kp, state, s.Vp, s.out, s.Vp, true);
    give_rows(c.tokens, head.V, s.Vp, s.out, out + begin * out_stride, out_stride);

    T* next = head.keep_states ? state + s.Kp * s.Vp : state;
    for (int64_t i = 0; i < s.Kp * s.Vp; ++i) next[i] = total * state[i];
    gemm_tn(s.Kp, s.Vp, c.padded_rows, k_until_end, s.Kp, s.corrected, s.Vp, next, s.Vp, true);
    state = next;
  }
}

template <class T>
void delta_backward(const DeltaHead<T>& head, const DeltaHeadGradients<T>& grad, Arena<T>& arena) {
  Buffers<T> s(head, arena);
  const int64_t ld = s.rows, Kp = s.Kp, Vp = s.Vp;
  T* const d_stack = arena.take((s.tokens + s.rows) * Vp);  // dO, then dE = -dv: what the entering state is read with
  T* const d_corrected = arena.take(s.rows * Vp);
  T* const from_state = arena.take((s.tokens + s.rows) * Kp);
  T* const k = arena.take(s.rows * Kp);  // undecayed
  T* const dk = arena.take(s.rows * Kp);
  T* const M = arena.take(s.tokens * ld);
  T* const pairs = arena.take(s.tokens * ld);  // dP o P
  T* const X = arena.take(s.rows * ld);
  T* const d_beta = arena.take(s.rows);
  T* const read_term = arena.take(s.tokens + s.rows);
  T* const write_term = arena.take(s.rows);
  T* const columns = arena.take(s.rows);
  T* const d_state = grad.d_state;
  const int64_t chunk = delta_chunk_tokens(head.factors);

  for (int64_t begin = (head.steps - 1) / chunk * chunk; begin >= 0; begin -= chunk) {
    const Chunk c = chunk_at(head, begin);
    const int64_t m = c.padded_tokens, rows = c.padded_rows;
    const T* state = head.states + begin / chunk * Kp * Vp;
    const T total = read_chunk(head, c, s);
    std::copy_n(s.k(m), rows * Kp, k);
    build_pairs(c, s);
    correct_values(c, state, s);
    T *d_out = d_stack, *d_read = d_stack + m * Vp;
    take_rows(c.tokens, m, head.V, Vp, grad.d_out + begin * grad.d_out_stride, grad.d_out_stride, d_out);

    // dV', then dR in its place
    gemm_tn(rows, Vp, m, s.P, ld, d_out, Vp, d_corrected, Vp, false, Shape{s.n});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < Kp; ++j) dk[r * Kp + j] = s.until_end[r] * k[r * Kp + j];
    }
    gemm_nn(rows, Vp, Kp, dk, Kp, d_state, Vp, d_corrected, Vp, true);
    solve_lower_transposed(rows, Vp, s.A, ld, d_corrected, Vp);

    gemm_nt(m, rows, Vp, d_out, Vp, s.corrected, Vp, M, ld, false, Shape{s.n});
    gemm_nt(rows, rows, Vp, d_corrected, Vp, s.corrected, Vp, X, ld, false, lower);  // -dA
    for (int64_t r = 0; r < rows; ++r) {
      advance_decay(r, s.a, s.decay);
      const T beta = s.beta[r];
      const T* dr = d_corrected + r * Vp;
      d_beta[r] = simd::dot(Vp, dr, s.v + r * Vp) - simd::dot(padded<T>(r), X + r * ld, s.G + r * ld);
      for (int64_t j = 0; j < Vp; ++j) d_read[r * Vp + j] = -beta * dr[j];
      T *x = X + r * ld, *a = s.A + r * ld;
      for (int64_t j = 0; j < r; ++j) {
        a[j] *= x[j];
        x[j] *= -beta * s.decay[j];
      }
      std::fill(x + r, x + rows, T(0));
      if (r % s.n == s.n - 1 && r / s.n < m) {
        const int64_t t = r / s.n;
        T *mt = M + t * ld, *p = s.P + t * ld, *z = pairs + t * ld;
        for (int64_t j = 0; j <= r; ++j) {
          z[j] = mt[j] * p[j];
          mt[j] *= s.decay[j];
        }
        std::fill(mt + r + 1, mt + rows, T(0));
      }
    }
    for (int64_t t = rows / s.n; t < m; ++t) std::fill_n(M + t * ld, rows, T(0));

    // Through the entering and the leaving state
    gemm_nt(m + rows, Kp, Vp, d_stack, Vp, state, Vp, from_state, Kp);
    gemm_nt(rows, Kp, Vp, s.corrected, Vp, d_state, Vp, dk, Kp);
    T *dq = from_state, *dk_read = from_state + m * Kp;
    for (int64_t t = 0; t < m; ++t) {
      const T since = t < c.tokens ? s.since_start[t * s.n] : T(0);
      scale_row(Kp, since, dq + t * Kp);
      read_term[t] = simd::dot(Kp, s.q() + t * Kp, dq + t * Kp);
      scale_row(Kp, since, s.q() + t * Kp);
    }
    for (int64_t r = 0; r < rows; ++r) {
      T *read = dk_read + r * Kp, *write = dk + r * Kp;
      scale_row(Kp, s.since_start[r], read);
      scale_row(Kp, s.until_end[r], write);
      read_term[m + r] = simd::dot(Kp, k + r * Kp, read);
      write_term[r] = simd::dot(Kp, k + r * Kp, write);
      for (int64_t j = 0; j < Kp; ++j) write[j] += read[j];
    }

    if (head.g) {
      T* dg = grad.dg + begin * grad.dg_stride;
      T along = total * simd::dot(Kp * Vp, d_state, state);
      for (int64_t t = 0; t < c.tokens; ++t) {
        dg[t * grad.dg_stride] = along;
        for (int64_t j = 0; j < s.n; ++j) along += write_term[t * s.n + j];
      }
      PairSums<T> sums(rows, columns);
      T reads = 0;
      for (int64_t t = c.tokens - 1; t >= 0; --t) {
        const int64_t first = t * s.n;
        reads += read_term[t];
        sums.add_row(pairs + t * ld, first);
        for (int64_t j = 0; j < s.n; ++j) {
          reads += read_term[m + first + j];
          sums.add_row(s.A + (first + j) * ld, first);
        }
        dg[t * grad.dg_stride] += reads + sums.below(first);
      }
    }

    // q and the stacked k now include the decay from the start of the chunk; the pairs need them without it.
    scale_row(Kp * Vp, total, d_state);
    gemm_tn(Kp, Vp, m + rows, s.qk, Kp, d_stack, Vp, d_state, Vp, true);
    take_rows(c.tokens, m, head.K, Kp, head.q + begin * head.q_stride, head.q_stride, s.q(),
              static_cast<T>(head.scale));
    gemm_nn(m, Kp, rows, M, ld, k, Kp, dq, Kp, true, Shape{s.n});
    gemm_tn(rows, Kp, m, M, ld, s.q(), Kp, dk, Kp, true, Shape{s.n});
    gemm_nn(rows, Kp, rows, X, ld, k, Kp, dk, Kp, true, lower);
    gemm_tn(rows, Kp, rows, X, ld, k, Kp, dk, Kp, true, lower);

    const int64_t row = begin * s.n;
    give_rows(c.tokens, head.K, Kp, dq, grad.dq + begin * grad.dq_stride, grad.dq_stride, static_cast<T>(head.scale));
    give_rows(c.rows, head.K, Kp, dk, grad.dk + row * grad.dk_stride, grad.dk_stride);
    give_rows(c.rows, head.V, Vp, d_read, grad.dv + row * grad.dv_stride, grad.dv_stride, T(-1));
    for (int64_t r = 0; r < c.rows; ++r) grad.dbeta[(row + r) * grad.dbeta_stride] = d_beta[r];
  }
}

#define SB_INSTANTIATE(T)                                                      \
  template int64_t delta_scratch<T>(int64_t, int64_t, int64_t);                \
  template void delta_forward<T>(const DeltaHead<T>&, T*, int64_t, Arena<T>&); \
  template void delta_backward<T>(const DeltaHead<T>&, const DeltaHeadGradients<T>&, Arena<T>&);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
