// Chunk algorithm of S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T, o_t = scale q_t^T S_t, for one head of one sequence.
// c_i is the product of the decays of steps 0..i of the chunk. For a chunk with initial state S and final state S+:
//   P_ij = q_i . (e^{decay between j and i} k_j), j <= i;   O = P V + (c Q) S;   S+ = c_end S + (c_end/c K)^T V
#pragma once
#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace sb::cpu {

enum class Decay { unit, fixed, scalar, vector };

inline constexpr int64_t kChunk = 64;     // steps between saved states
inline constexpr int64_t kSubChunk = 16;  // steps processed at once if every key channel has its own decay

// One head of one sequence: pointers to its first rows, and strides between steps.
template <class T>
struct AttentionHead {
  int64_t steps, K, V;
  double scale;
  const T *q, *k, *v, *g;  // g: the fixed value, or the first step's value or row
  int64_t q_stride, k_stride, v_stride, g_stride;
  T* states;  // [chunks + 1, padded K, padded V] if keep_states, else [1, padded K, padded V]; the first one holds the
              // initial state on entry
  bool keep_states;
};
template <class T>
struct AttentionHeadGradients {
  const T* d_out;
  int64_t d_out_stride;
  T* d_state;            // [padded K, padded V]; in: gradient of the final state; out: of the initial state
  T *dq, *dk, *dv, *dg;  // dg: [steps] or [steps, K]
  int64_t dq_stride, dk_stride, dv_stride, dg_stride;
};

// scalar_*: for unit, fixed or scalar decay. vector_*: for one decay per key channel. *_scratch: elements of scratch
// memory that one head needs, forward or backward. *_forward: writes `out`, and the final state to the last of
// `states`.
template <class T>
int64_t scalar_attention_scratch(int64_t K, int64_t V);
template <class T>
int64_t vector_attention_scratch(int64_t K, int64_t V);
template <class T>
void scalar_attention_forward(Decay decay, const AttentionHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena);
template <class T>
void vector_attention_forward(const AttentionHead<T>& head, T* out, int64_t out_stride, Arena<T>& arena);
template <class T>
void scalar_attention_backward(Decay decay, const AttentionHead<T>& head, const AttentionHeadGradients<T>& grad,
                               Arena<T>& arena);
template <class T>
void vector_attention_backward(const AttentionHead<T>& head, const AttentionHeadGradients<T>& grad, Arena<T>& arena);

// to[i, :] = sum of the `heads` rows of group i of `from`, in order
template <class T>
void sum_head_groups(int64_t groups, int64_t heads, int64_t width, const T* from, T* to);

}  // namespace sb::cpu
