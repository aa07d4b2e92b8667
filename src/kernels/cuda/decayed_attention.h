// Decayed linear attention on a GPU, forward and backward, without torch:
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  o_t = scale q_t^T S_t        for each sequence and head
// q, k [B,T,G,K] with H % G == 0 (H/G heads share a group); v [B,T,H,V]; state [B,H,K,V]. K and V up to 256.
// Works in chunks of 64 steps. c_i is the decay from the chunk's start to after step i. For a chunk with initial state
// S and final state S+:
//   P_ij = scale q_i . (decay from j to i) k_j, j <= i;   O = P V + scale (c Q) S;   S+ = c_end S + (c_end/c K)^T V
// `write` w [B,T,H] scales v before it is written, and `skip` D [H] adds D v to the output:
//   S_t = e^{g_t} S_{t-1} + w_t k_t v_t^T;  o_t = scale q_t^T S_t + D v_t
// `before` b [B,T,H] writes the frame before a second time (Mamba-3's trapezoidal rule):
//   S_t = e^{g_t} (S_{t-1} + b_t k_{t-1} v_{t-1}^T) + w_t k_t v_t^T
// Frame j then has weight w_j + b_{j+1} in all later outputs and w_j in its own, so no output depends on later frames.
// Few long sequences are divided into segments (segments.cuh). That depends on sizes and device only.
// The backward pass first gets the state and the gradient of the state for every chunk, so that all chunks can run in
// parallel. Gradients of q and k are summed over the heads of a group within a block, then over blocks, in a fixed
// order.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/row_strides.h"

namespace sb::cuda {

inline constexpr int kChunk = 64;

// bf16: operands, outputs and their gradients are bf16. tf32 and fp32: they are fp32, and products are computed in TF32
// or with fp32 accuracy. Sums, states, log-decays and their gradients are always fp32.
enum class Precision { bf16, tf32, fp32 };
enum class Decay { unit, fixed, scalar, vector };  // g absent, [H], [B,T,H], [B,T,H,K]

struct DecayedAttention {
  int64_t batch, time, heads, groups, key_width, value_width;
  Precision precision;
  Decay decay;
  float scale;
  ConstRows q, k, v;
  const float* g;                   // log-decays <= 0
  int64_t g_batch, g_time, g_head;  // strides; for [H] only g_head is used
  const float* initial_state;       // null: zeros
  const float* write = nullptr;     // null: ones; only if decayed_attention_writes()
  int64_t write_batch = 0, write_time = 0, write_head = 0;
  const float* skip = nullptr;    // null: zeros; only if decayed_attention_writes()
  const float* before = nullptr;  // null: zeros; has the strides of `write`, which it requires, as groups = heads
};

// Whether there are kernels that support `write` and `skip`. They require a Hopper GPU, bf16, at most one decay per
// step, 64 < K <= 128, V <= 96, and rows (also of gradients) that are aligned to 16 bytes and a multiple of 16 bytes
// long.
bool decayed_attention_writes(const DecayedAttention& p);

struct DecayedAttentionGradients {
  ConstRows d_out;
  const float* d_final_state;  // null: zeros
  Rows dq, dk, dv;             // dq, dk per group
  float* dg;                   // has the shape of g; null for Decay::unit
  int64_t dg_batch, dg_time, dg_head;
  float* d_initial_state;    // may be null
  float* d_write = nullptr;  // has the shape of `write`
  int64_t d_write_batch = 0, d_write_time = 0, d_write_head = 0;
  float* d_skip = nullptr;    // [H]
  float* d_before = nullptr;  // has the strides of d_write
};

// Whether the kernels of both passes fit on the current device; without `write` and `skip`.
bool decayed_attention_fits(const DecayedAttention& p);

// Bytes that the forward pass keeps for the backward pass, of the forward pass's scratch memory (0 if sequences are not
// divided), and of the backward pass's workspace.
size_t decayed_attention_kept_bytes(const DecayedAttention& p);
size_t decayed_attention_scratch_bytes(const DecayedAttention& p);
size_t decayed_attention_workspace_bytes(const DecayedAttention& p);

// kept: may be null if no backward pass follows, except with Decay::vector, whose forward pass needs it. final_state
// [B,H,K,V] may be null. Returns cudaErrorInvalidValue if sizes are out of range.
cudaError_t decayed_attention_forward(const DecayedAttention& p, const Rows& out, float* final_state, void* kept,
                                      void* scratch, cudaStream_t stream);
cudaError_t decayed_attention_backward(const DecayedAttention& p, const void* kept, const DecayedAttentionGradients& d,
                                       void* workspace, cudaStream_t stream);

}  // namespace sb::cuda
