// Chunk algorithm of S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T, o_t = scale q_t^T S_t, for one head of one sequence.
// With c_i = product of the decays of the chunk's steps 0..i, per chunk entered with state S:
//   P_ij = q_i . (e^{decay between j and i} k_j), j <= i;   O = P V + (c Q) S;   S+ = c_end S + (c_end/c K)^T V
#pragma once
#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace sb::cpu {

enum class Decay { unit, fixed, scalar, vector };

inline constexpr int64_t kChunk = 64;     // steps between kept states
inline constexpr int64_t kSubChunk = 16;  // steps handled at once when every key channel has its own decay

// One head of one sequence: pointers to its rows and the strides from step to step.
template <class T>
struct AttentionHead {
  int64_t steps, K, V;
  double scale;
  const T *q, *k, *v, *g;  // g: the fixed value, or the first of the steps' values or rows
  int64_t q_stride, k_stride, v_stride, g_stride;
  T* states;  // [chunks + 1, padded K, padded V] or, without gradients, [1, padded K, padded V]; the first holds the
              // start
  bool keep_states;
};
template <class T>
struct AttentionHeadGradients {
  const T* d_out;
  int64_t d_out_stride;
  T* d_state;            // [padded K, padded V]: in, of the final state; out, of the initial one
  T *dq, *dk, *dv, *dg;  // dg: [steps] or [steps, K]
  int64_t dq_stride, dk_stride, dv_stride, dg_stride;
};

// Elements of scratch that one head needs, forward or backward. The forwards write out; the final state ends in the
// last of `states`. scalar: unit, fixed or scalar decay; vector: one decay a key channel.
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

// to[i, :] = sum over the `heads` rows of group i of `from`, in their order
template <class T>
void sum_head_groups(int64_t groups, int64_t heads, int64_t width, const T* from, T* to);

}  // namespace sb::cpu
