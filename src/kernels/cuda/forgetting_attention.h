// What attention with decaying scores adds to a causal flash attention in bf16 on a GPU, without torch:
//   o_i = sum_{j <= i} P_ij v_j,  P_i = softmax_j(scale q_i . k_j + c_i - c_j),  c = cumulative g     per sequence,
//   head
// c_i cancels in the softmax. So rows with further columns, at the end of width w, have the same weights without decay:
//   q' = (q, 1, 1, 1, 0...),  k'_j = (k_j, x, y, z, 0...),  x + y + z = -c_j / scale, three bf16 numbers (24 bits)
// Behind a cache of earlier frames, c counts from the first query on.
// Log-decays below -100, whose weight is 0, count as -100 and have the gradient 0.
// Gradient of g, from the scores' gradient dS = P o (dP - D), dP = d_out v^T, D_i = d_out_i . o_i:
//   dg_t = sum_{s >= t} (sum_j dS_sj - sum_i dS_is)
// D has the error of the rounded output o. It cancels between the sums over rows and over columns of the same dS,
// except for pairs (i, j) with j < t <= i, so both sums are of float32 values of one kernel.
#pragma once
#include <cuda_runtime_api.h>

#include "kernels/cuda/row_strides.h"

namespace sb::cuda {

inline constexpr int kForgettingColumns = 3;

struct ForgettingAttention {
  int64_t batch, time, heads, width;
  int64_t padded;  // width of q', k', and of v, out and d_out with zeros behind: a multiple of 8
  float scale;
  const float* g;
  int64_t g_batch, g_time, g_head;  // strides
  int64_t offset = 0;               // earlier frames, which have no rows of q; 0 for gradients
};

// Whether the gradient's kernel with these sizes fits on the current device.
bool forgetting_attention_fits(int64_t time, int64_t padded);

// Writes columns width..padded-1 of q' [B,T-offset,H,padded] and k' [B,T,H,padded].
cudaError_t forgetting_attention_columns(const ForgettingAttention& p, const Rows& q, const Rows& k,
                                         cudaStream_t stream);

struct ForgettingGradient {
  ConstRows q, k, v, out, d_out;  // padded; every row is aligned to 16 bytes
  const float* lse;               // [B,H,T], logarithms of the sums of exponentials of scale q'_i . k'_j
  float* dg;                      // [B,T,H]
  int64_t dg_batch, dg_time, dg_head;
};
// Deterministic. Returns cudaErrorInvalidValue if sizes do not fit or rows are not aligned.
cudaError_t forgetting_attention_gates(const ForgettingAttention& p, const ForgettingGradient& d, cudaStream_t stream);

}  // namespace sb::cuda
