// Chunk algorithm of the gated delta rule for one head of one sequence. A chunk has m tokens with n factors each: m n
// rows. c_r is the product of the decays of the chunk's tokens up to the token of row r, and D_rs is the decay between
// rows s and r. For a chunk with initial state S and final state S+:
//   A_rs = beta_r (k_r . k_s) D_rs, s < r;   (I + A) V' = beta (V - (c K) S)          V': the corrected values
//   P_ts = (q_t . k_s) D_ts, s up to the last row of token t;   O = P V' + (c Q) S
//   S+ = c_end S + (c_end/c K)^T V'
// The triangular system is solved; the matrix is never inverted. The backward pass solves the transposed system:
//   dV' = P^T dO + (c_end/c K) dS+;   (I + A)^T dR = dV';   dA = -dR V'^T below the diagonal
#pragma once
#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace sb::cpu {

// Row r of k, v: token r / factors, factor r % factors.
template <class T>
struct DeltaHead {
  int64_t steps, factors, K, V;
  double scale;
  const T *q, *k, *v, *beta, *g;  // g null: no decay
  int64_t q_stride, g_stride;     // these five: between tokens
  int64_t k_stride, v_stride, beta_stride;
  int64_t k_factor, v_factor, beta_factor;  // strides between factors
  T* states;                                // [chunks + 1, padded K, padded V] if keep_states, else one such matrix
  bool keep_states;
};
template <class T>
struct DeltaHeadGradients {
  const T* d_out;
  int64_t d_out_stride;
  T* d_state;  // in: gradient of the final state; out: of the initial state
  T *dq, *dk, *dv, *dbeta, *dg;
  int64_t dq_stride, dk_stride, dv_stride, dbeta_stride, dg_stride;  // dk, dv, dbeta: between rows; dq, dg: tokens
};

int64_t delta_chunk_tokens(int64_t factors);
template <class T>
int64_t delta_scratch(int64_t factors, int64_t K, int64_t V);
template <class T>
void delta_forward(const DeltaHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena);
template <class T>
void delta_backward(const DeltaHead<T>& head, const DeltaHeadGradients<T>& grad, Arena<T>& arena);

}  // namespace sb::cpu
