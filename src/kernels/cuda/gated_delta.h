// The gated delta rule on CUDA, without torch: DeltaNet (no g), Gated DeltaNet, Gated DeltaProduct (several factors).
//   S <- e^{g_t} S;  for j = 1..n: S <- S + beta_{t,j} k_{t,j} (v_{t,j} - k_{t,j}^T S);  o_t = scale q_t^T S
// q, out [B,T,H,K|V]; k, v [B,T,n,H,K|V]; g [B,T,H], <= 0; beta [B,T,n,H]; states [B,H,K,V]. The state, g, beta and
// their gradients are float, everything else is of the problem's precision. Sums are kept in float.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

enum class DeltaPrecision {
  bf16,  // bf16 operands, bf16 products
  tf32,  // float operands, one TF32 product for each
  fp32,  // float operands, products as three of TF32: float's own accuracy
};

struct DeltaShape {
  int batch = 0, time = 0, heads = 0, factors = 1;  // factors <= 4
  int K = 0, V = 0;                                 // K <= 256, V <= 512
  float scale = 1;
  DeltaPrecision precision = DeltaPrecision::bf16;
};

// Strides in elements; the last axis (K or V) lies without gaps. Rows on 16-byte steps are read and written fastest.
struct DeltaView {
  void* data = nullptr;
  int64_t batch = 0, time = 0, factor = 0, head = 0;
};

struct DeltaInputs {
  DeltaView q, k, v, beta, g;    // g.data null: no decay
  const float* state = nullptr;  // [B,H,K,V] without gaps; null: zeros
};

struct DeltaOutputs {
  DeltaView out;
  float* state = nullptr;  // after the last token; null: not wanted
};

struct DeltaGradients {
  DeltaView d_out;                       // in
  const float* d_final_state = nullptr;  // in; null: zeros
  DeltaView dq, dk, dv, dbeta, dg;       // out; dg.data null where there is no g
  float* d_state = nullptr;              // out, of the initial state; null: not wanted
};

// Bytes of the two workspaces, each aligned to 256 bytes. `kept` is what forward can leave for backward (a state and
// the corrected values of every chunk); where memory is dearer than time, backward makes it again.
size_t gated_delta_kept_bytes(const DeltaShape& shape);
size_t gated_delta_scratch_bytes(const DeltaShape& shape, bool backward);

// `kept` null: nothing is left for backward, and `scratch` must then hold gated_delta_scratch_bytes(shape, false).
cudaError_t gated_delta_forward(const DeltaShape& shape, const DeltaInputs& in, const DeltaOutputs& out, void* kept,
                                void* scratch, cudaStream_t stream);

// `kept` as forward left it (has_kept), or memory of that size to make it again. The same bytes on every run.
cudaError_t gated_delta_backward(const DeltaShape& shape, const DeltaInputs& in, const DeltaGradients& grad, void* kept,
                                 bool has_kept, void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
