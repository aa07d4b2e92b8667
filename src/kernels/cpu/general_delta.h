// Chunk algorithm of the generalised delta rule for one head of one sequence, with one decay per key channel. In a
// chunk of 16 steps, c_i is the product of the decays up to step i, and r_i = c_i or, if the rule erases before the
// decay, c_{i-1}. For a chunk with initial state S and final state S+, products of vectors by channel, and j < i or j
// <= i:
//   A_ij = e_i . (r_i/c_j w_j), E_ij = e_i . (r_i/c_j k_j), j < i;   P_ij = q_i . (c_i/c_j k_j), Q_ij the same of w
//   (I + A) R = (r e) S + E V;   O = (c q) S + P V - Q R;   S+ = c_end S + (c_end/c k)^T V - (c_end/c w)^T R
// If keys are written (w = k), only D = V - R is needed:
//   (I + A) D = V - (r e) S;   O = (c q) S + P D;   S+ = c_end S + (c_end/c k)^T D
// Ratios of decays are products of factors <= 1, never quotients. The backward pass solves (I + A)^T Z = dR.
#pragma once
#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace sb::cpu {

inline constexpr int64_t kGeneralDeltaChunk = 16;  // steps between saved states

template <class T>
struct GeneralDeltaHead {
  int64_t steps, K, V;
  double scale;
  bool erase_first, writes_keys;  // the latter: `write` equals k, and is not read; dk holds both gradients
  const T *q, *k, *v, *erase, *write, *g;
  int64_t q_stride, k_stride, v_stride, erase_stride, write_stride, g_stride;  // between steps
  T* states;  // [chunks + 1, padded K, padded V] if keep_states, else one such matrix
  bool keep_states;
};
template <class T>
struct GeneralDeltaHeadGradients {
  const T* d_out;
  int64_t d_out_stride;
  T* d_state;  // in: gradient of the final state; out: of the initial state
  T *dq, *dk, *dv, *d_erase, *d_write, *dg;
  int64_t dq_stride, dk_stride, dv_stride, d_erase_stride, d_write_stride, dg_stride;
};

template <class T>
int64_t general_delta_scratch(int64_t K, int64_t V);
template <class T>
void general_delta_forward(const GeneralDeltaHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena);
template <class T>
void general_delta_backward(const GeneralDeltaHead<T>& head, const GeneralDeltaHeadGradients<T>& grad, Arena<T>& arena);

}  // namespace sb::cpu
