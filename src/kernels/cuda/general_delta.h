// The generalised delta rule on a GPU, forward and backward, without torch:
//   S_t = diag(e^{g_t}) S_{t-1} - w_t (e_t^T S') + k_t v_t^T;  o_t = scale q_t^T S_t        for each sequence and head
// S' is the decayed state diag(e^{g_t}) S_{t-1} or, with erase_first, S_{t-1}. q, k, erase e, write w [B,T,H,K];
// v, o [B,T,H,V]; g [B,T,H,K], <= 0; states [B,H,K,V]. K and V up to 256. Formulas: general_delta_problem.cuh.
// If writes_keys is set, w is k: the kernels then compute half of the products of pairs, and need less memory.
// Few long sequences are divided into segments (segments.cuh). That depends on sizes and device only.
#pragma once
#include "kernels/cuda/decayed_attention.h"

namespace sb::cuda {

struct GeneralDelta {
  int64_t batch, time, heads, key_width, value_width;
  Precision precision;
  bool erase_first;
  float scale;
  ConstRows q, k, v, erase, write;
  const float* g;                          // null: no decay
  int64_t g_batch, g_time, g_head, g_key;  // strides; g_key 0: one decay per head
  const float* initial_state;              // null: zeros
  bool writes_keys = false;                // w = k: `write` is not read
};

struct GeneralDeltaGradients {
  ConstRows d_out;
  const float* d_final_state;         // null: zeros
  Rows dq, dk, dv, d_erase, d_write;  // with writes_keys, dk is the whole gradient and d_write is not written
  float* dg;                          // [B,T,H,K], one value per key channel even if g_key is 0; null: not wanted
  int64_t dg_batch, dg_time, dg_head;
  float* d_initial_state;  // may be null
};

// Whether the kernels of all passes fit on the current device.
bool general_delta_fits(const GeneralDelta& p);

// Bytes of the memory between the passes: `kept` is written by forward and read by backward. Without a backward pass,
// forward needs less of it.
size_t general_delta_kept_bytes(const GeneralDelta& p, bool backward);
size_t general_delta_workspace_bytes(const GeneralDelta& p);

// `keeps`: `kept` has the size for a backward pass. final_state [B,H,K,V] may be null. All memory is aligned to 256
// bytes. Returns cudaErrorInvalidValue if sizes are out of range. Deterministic.
cudaError_t general_delta_forward(const GeneralDelta& p, const Rows& out, float* final_state, void* kept, bool keeps,
                                  cudaStream_t stream);
cudaError_t general_delta_backward(const GeneralDelta& p, void* kept, const GeneralDeltaGradients& d, void* workspace,
                                   cudaStream_t stream);

}  // namespace sb::cuda
