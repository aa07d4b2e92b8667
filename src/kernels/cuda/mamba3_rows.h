// What surrounds the attention of Mamba-3 on CUDA, forward and backward, without torch. Gates, parameters and their
// gradients are fp32. Deterministic.
//   gates: step = softplus(dt + bias), decay = -max(1e-4, f(rate)) step, here = sigma(trap) step,
//          before = step - here;  f(u) = 1 + u for u >= 0, else 1 / (1 - u)
//   keys:  k = rms_norm(key) + key_bias, its pairs of channels (2j, 2j + 1), j < A = N/4, rotated by theta; q alike
//          theta_t = theta_{t-1} + pi tanh(turn_t) step_t, summed in double
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

// dt, rate, trap [tokens, heads], heads <= 256
struct Mamba3Gates {
  int64_t tokens = 0;
  int heads = 0;
  Element element = Element::bf16;
  RowsIn dt, rate, trap;
  const float* bias = nullptr;  // [heads]
};
struct Mamba3GateOutputs {  // [tokens, heads], contiguous
  float *step = nullptr, *decay = nullptr, *here = nullptr, *before = nullptr;
};
struct Mamba3GateGradients {
  const float *step = nullptr, *decay = nullptr, *here = nullptr, *before = nullptr;  // null: zeros
  RowsOut d_dt, d_rate, d_trap;
  float* d_bias = nullptr;
};
cudaError_t mamba3_gates_forward(const Mamba3Gates& p, const Mamba3GateOutputs& out, cudaStream_t stream);
size_t mamba3_gates_scratch_bytes(const Mamba3Gates& p);
cudaError_t mamba3_gates_backward(const Mamba3Gates& p, const Mamba3GateGradients& d, void* scratch,
                                  cudaStream_t stream);

// Whether there are kernels for so many heads and states N: N is a multiple of 4 up to 256, with at most 64 heads up to
// 128 states, else 30.
bool mamba3_keys_fit(int64_t heads, int64_t states);
// Rows of key and query are aligned to a pair of elements.
struct Mamba3Keys {
  int64_t batch = 0, time = 0;
  int heads = 0, states = 0;  // N
  Element element = Element::bf16;
  RowsIn key, query, turn;                                 // [batch time, N], [batch time, A]
  const float *key_gain = nullptr, *query_gain = nullptr;  // [N]
  const float *key_bias = nullptr, *query_bias = nullptr;  // [heads, N]
  const float* step = nullptr;                             // [batch time, heads]
  const double* angle = nullptr;                           // [batch, heads, A]; null: zeros
};
struct Mamba3KeyOutputs {
  void *k = nullptr, *q = nullptr;  // [batch time, heads, N]
  double* angle = nullptr;          // after the last frame
};
struct Mamba3KeyGradients {
  const void *dk = nullptr, *dq = nullptr;
  const double* d_angle_out = nullptr;  // null: zeros
  RowsOut d_key, d_query, d_turn;
  float *d_gains = nullptr, *d_biases = nullptr;  // of keys, then queries: [2, N], [2, heads, N]
  float* d_step = nullptr;
  double* d_angle = nullptr;  // may be null
};
// `kept`: bytes that the forward pass leaves for the backward pass; it always needs them.
size_t mamba3_kept_bytes(const Mamba3Keys& p);
size_t mamba3_keys_scratch_bytes(const Mamba3Keys& p);
cudaError_t mamba3_keys_forward(const Mamba3Keys& p, const Mamba3KeyOutputs& out, void* kept, cudaStream_t stream);
cudaError_t mamba3_keys_backward(const Mamba3Keys& p, const Mamba3KeyGradients& d, const void* kept, void* scratch,
                                 cudaStream_t stream);

}  // namespace sb::cuda
