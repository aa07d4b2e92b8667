// The gated delta rule on CUDA, without torch: DeltaNet (no g), Gated DeltaNet, Gated DeltaProduct (several factors).
//   S <- e^{g_t} S;  for j = 1..n: S <- S + beta_{t,j} k_{t,j} (v_{t,j} - k_{t,j}^T S);  o_t = scale q_t^T S
// q [B,T,H,K]; out [B,T,H,V]; k [B,T,n,H,K]; v [B,T,n,H,V]; g [B,T,H], <= 0; beta [B,T,n,H]; states [B,H,K,V]. States,
// g, beta and their gradients are float; the other tensors have the problem's precision. Sums are in float.
// Few long sequences are divided into segments (segments.cuh). That depends on sizes and device only.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sb::cuda {

enum class DeltaPrecision {
  bf16,  // bf16 operands, bf16 products
  tf32,  // float operands, TF32 products
  fp32,  // float operands, three TF32 products for each product: float accuracy
};

struct DeltaShape {
  int batch = 0, time = 0, heads = 0, factors = 1;  // factors <= 4
  int K = 0, V = 0;                                 // K <= 256, V <= 512
  float scale = 1;
  DeltaPrecision precision = DeltaPrecision::bf16;
};

// Strides in elements; the last axis (K or V) is contiguous. Access is fastest if rows are aligned to 16 bytes.
struct DeltaView {
  void* data = nullptr;
  int64_t batch = 0, time = 0, factor = 0, head = 0;
};

struct DeltaInputs {
  DeltaView q, k, v, beta, g;    // g.data null: no decay
  const float* state = nullptr;  // [B,H,K,V], contiguous; null: zeros
};

struct DeltaOutputs {
  DeltaView out;
  float* state = nullptr;  // after the last token; may be null
};

struct DeltaGradients {
  DeltaView d_out;                       // in
  const float* d_final_state = nullptr;  // in; null: zeros
  DeltaView dq, dk, dv, dbeta, dg;       // out; dg.data is null if there is no g
  float* d_state = nullptr;              // out: gradient of the initial state; may be null
};

// Whether the kernels of all passes fit on the current device.
bool gated_delta_fits(const DeltaShape& shape);

// Bytes of the two workspaces, each aligned to 256 bytes. `kept` holds what forward can save for backward: a state and
// the corrected values of every chunk.
size_t gated_delta_kept_bytes(const DeltaShape& shape);
size_t gated_delta_scratch_bytes(const DeltaShape& shape, bool backward);

// `kept` null: nothing is saved for backward. `scratch` must then have gated_delta_scratch_bytes(shape, false) bytes.
cudaError_t gated_delta_forward(const DeltaShape& shape, const DeltaInputs& in, const DeltaOutputs& out, void* kept,
                                void* scratch, cudaStream_t stream);

// `kept`: as saved by forward. Deterministic.
cudaError_t gated_delta_backward(const DeltaShape& shape, const DeltaInputs& in, const DeltaGradients& grad, void* kept,
                                 void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
