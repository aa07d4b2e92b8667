// The systems of MesaNet's recurrence on a GPU, without torch:
//   G_t = e^{g_t} G_{t-1} + beta_t k_t k_t^T;  S_t = e^{g_t} S_{t-1} + beta_t k_t v_t^T      for each sequence and head
//   forward   x_t = (G_t + diag(ridge))^{-1} q_t,  o_t = S_t^T x_t
//   backward  y_t = (G_t + diag(ridge))^{-1} S_t d_t
// by conjugate gradients from 0. Works in chunks of 64 steps, given the states [G, S] before each chunk. c_t is the
// decay from the chunk's start to after step t, L_tj that from step j to step t:
//   G_t p_t = c_t G p_t + sum_{j <= t} L_tj beta_j (k_j . p_t) k_j
// A frame's iterations depend on its own row alone, so a warp solves for 16 frames without waiting for others, and all
// chunks run in parallel. Factors of products are sums of two bf16 numbers (16 bits), of whose four products the three
// largest are added in float32.
#pragma once
#include "kernels/cuda/decayed_attention.h"

namespace sb::cuda {

struct Mesa {
  int64_t batch, time, heads, key_width, value_width;  // widths up to 128
  int64_t steps;                                       // of the solver
  RowsOf<const float> k, v;
  const float *beta, *g;  // [B,T,H]; log-decays <= 0
  const float* ridge;     // [H,K], > 0
  // [B,H,chunks,K,row], row = K + V rounded up to a multiple of 8: what decayed_attention_forward() keeps in TF32 or
  // float32 if its values are beta k, then beta v
  const float* states;
};

// Whether the kernels of both passes fit on the current device.
bool mesa_fits(int64_t key_width, int64_t value_width);

// x [B,T,H,K] and out [B,T,H,V], or y [B,T,H,K]. Deterministic. Return cudaErrorInvalidValue if sizes are out of range.
cudaError_t mesa_forward(const Mesa& p, const RowsOf<const float>& q, float* x, float* out, cudaStream_t stream);
cudaError_t mesa_backward(const Mesa& p, const RowsOf<const float>& d_out, float* y, cudaStream_t stream);

}  // namespace sb::cuda
