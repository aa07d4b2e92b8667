// Log-linear attention on a GPU, forward and backward, without torch:
//   o_t = sum over s <= t of w_t[level(t, s)] e^{g_{s+1} + … + g_t} (q_t . k_s) v_s       for each sequence and head
// level(t, s) = 0 if t = s, else 1 + floor(log2(t xor s)), at most L - 1. Positions count from 0.
// q, k [B,T,G,K] with H % G == 0 (H/G heads share a group); v [B,T,H,V]; g [B,T,H]; w [B,T,H,L], L >= 8.
// K and V up to 256.
// Works on pairs of tiles of 64 frames, so its time grows as T^2. Outside the diagonal tiles all pairs of frames of two
// tiles have one level, and their weight is a factor per row times a factor per column. The scores q_t . k_s are
// computed once for all heads of a group, and so are the products of their gradients with q and k. All sums have a
// fixed order.
#pragma once
#include "kernels/cuda/decayed_attention.h"

namespace sb::cuda {

struct LogLinearAttention {
  int64_t batch, time, heads, groups, key_width, value_width, levels;
  Precision precision;
  ConstRows q, k, v;
  const float *g, *weights;  // contiguous; log-decays <= 0
};

struct LogLinearGradients {
  ConstRows d_out;
  Rows dq, dk, dv;
  float *dg, *d_weights;  // contiguous
};

// Whether the kernels of both passes fit on the current device, T is at most 4096 and the workspace at most 4 GB.
bool log_linear_attention_fits(const LogLinearAttention& p);

// `backward`: of the backward pass. Grows with 2 G T^2 bytes per sequence (scores), and in the backward pass with
// H T^2 / 16 more (sums of rows and columns).
size_t log_linear_attention_workspace_bytes(const LogLinearAttention& p, bool backward);

// Return cudaErrorInvalidValue if sizes are out of range.
cudaError_t log_linear_attention_forward(const LogLinearAttention& p, const Rows& out, void* workspace,
                                         cudaStream_t stream);
cudaError_t log_linear_attention_backward(const LogLinearAttention& p, const LogLinearGradients& d, void* workspace,
                                          cudaStream_t stream);

}  // namespace sb::cuda
