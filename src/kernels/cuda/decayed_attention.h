// Decayed linear attention on a GPU, forward and backward, without torch:
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  o_t = scale q_t^T S_t        for each sequence and head
// q, k [B,T,G,K] with H % G == 0 (groups shared by H/G heads); v [B,T,H,V]; state [B,H,K,V]. K and V up to 256.
// By chunks of 64 steps with c_i = decay from the chunk's start to after step i, entered with state S:
//   P_ij = scale q_i . (decay from j to i) k_j, j <= i;   O = P V + scale (c Q) S;   S+ = c_end S + (c_end/c K)^T V
// With `write` w [B,T,H] and `skip` D [H] v is multiplied by w before it is written and o has D v added:
//   S_t = e^{g_t} S_{t-1} + w_t k_t v_t^T;  o_t = scale q_t^T S_t + D v_t
// The backward pass has a state and a gradient of a state for every chunk, so all chunks run at once; gradients of q
// and k are summed over the heads of a group inside a block and then over blocks, in a fixed order.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

inline constexpr int kChunk = 64;

// bf16: operands, outputs and their gradients are bf16; else fp32, multiplied as tf32 or to fp32's own precision.
// Sums and states between chunks' products, log-decays and gradients of log-decays and of states are fp32 in each case.
enum class Precision { bf16, tf32, fp32 };
enum class Decay { unit, fixed, scalar, vector };  // g absent, [H], [B,T,H], [B,T,H,K]

// [B,T,heads,width], strides in elements, the width's is 1.
template <class Void>
struct RowsOf {
  Void* data;
  int64_t batch, time, head;
};
using Rows = RowsOf<void>;
using ConstRows = RowsOf<const void>;

struct DecayedAttention {
  int64_t batch, time, heads, groups, key_width, value_width;
  Precision precision;
  Decay decay;
  float scale;
  ConstRows q, k, v;
  const float* g;                   // log-decays <= 0
  int64_t g_batch, g_time, g_head;  // strides; [H]: g_head alone
  const float* initial_state;       // null: zeros
  const float* write = nullptr;     // null: ones; only where decayed_attention_writes
  int64_t write_batch = 0, write_time = 0, write_head = 0;
  const float* skip = nullptr;  // null: zeros; only where decayed_attention_writes
};

// Whether there are kernels that take `write` and `skip`: bf16, one decay a step, heads of whole 16 bytes that lie at
// 16 bytes (all gradients' too), 64 < K <= 128, V <= 96.
bool decayed_attention_writes(const DecayedAttention& p);

struct DecayedAttentionGradients {
  ConstRows d_out;
  const float* d_final_state;  // null: zeros
  Rows dq, dk, dv;             // dq, dk by group
  float* dg;                   // shaped and strided as g; null for Decay::unit
  int64_t dg_batch, dg_time, dg_head;
  float* d_initial_state;    // or null
  float* d_write = nullptr;  // as `write`
  int64_t d_write_batch = 0, d_write_time = 0, d_write_head = 0;
  float* d_skip = nullptr;  // [H]
};

// Bytes of what the forward pass keeps for the backward pass, and of scratch of the backward pass.
size_t decayed_attention_kept_bytes(const DecayedAttention& p);
size_t decayed_attention_workspace_bytes(const DecayedAttention& p);

// kept: null where no backward pass follows (but not with Decay::vector, which needs it itself); final_state [B,H,K,V]
// or null. cudaErrorInvalidValue: sizes out of range.
cudaError_t decayed_attention_forward(const DecayedAttention& p, const Rows& out, float* final_state, void* kept,
                                      cudaStream_t stream);
cudaError_t decayed_attention_backward(const DecayedAttention& p, const void* kept, const DecayedAttentionGradients& d,
                                       void* workspace, cudaStream_t stream);

}  // namespace sb::cuda
