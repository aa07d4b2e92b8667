// What surrounds the recurrence of RWKV-7 on CUDA, forward and backward, without torch. All tensors are contiguous,
// [tokens, heads, K]; parameters are [heads, K] fp32; K is even, up to 256.
//   keys:  a = sigma(rate),  g = -e^{-1/2} sigma(decay),  erase = u / max(|u|, 1e-12) per head, u = key key_scale,
//          write = a erase,  k = key (1 + (a - 1) key_rate)
//   read:  y = (gain (o - mean) / sqrt(variance + eps) + bias + (sum r k bonus) v) gate,  sums and means per head
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

struct Rwkv7Rows {
  int64_t tokens = 0;
  int heads = 1, width = 0;  // of a head
  Element element = Element::bf16;
};

struct Rwkv7Keys {
  Rwkv7Rows rows;
  const void *decay = nullptr, *rate = nullptr, *key = nullptr;
  const float *key_scale = nullptr, *key_rate = nullptr;
};
struct Rwkv7KeyOutputs {
  float* g = nullptr;
  void *k = nullptr, *erase = nullptr, *write = nullptr;
};
struct Rwkv7KeyGradients {
  const float* dg = nullptr;
  const void *dk = nullptr, *d_erase = nullptr, *d_write = nullptr;
  void *d_decay = nullptr, *d_rate = nullptr, *d_key = nullptr;
  float* d_parameters = nullptr;  // [2, heads, K]: of key_scale and key_rate
};
cudaError_t rwkv7_keys_forward(const Rwkv7Keys& p, const Rwkv7KeyOutputs& out, cudaStream_t stream);
cudaError_t rwkv7_keys_backward(const Rwkv7Keys& p, const Rwkv7KeyGradients& d, void* scratch, cudaStream_t stream);

struct Rwkv7Read {
  Rwkv7Rows rows;
  float eps = 0;
  const void *o = nullptr, *r = nullptr, *k = nullptr, *v = nullptr, *gate = nullptr;
  const float *bonus = nullptr, *gain = nullptr, *bias = nullptr;
};
struct Rwkv7ReadGradients {
  const void* dy = nullptr;
  void *d_o = nullptr, *dr = nullptr, *dk = nullptr, *dv = nullptr, *d_gate = nullptr;
  float* d_parameters = nullptr;  // [3, heads, K]: of bonus, gain and bias
};
cudaError_t rwkv7_read_forward(const Rwkv7Read& p, void* y, cudaStream_t stream);
cudaError_t rwkv7_read_backward(const Rwkv7Read& p, const Rwkv7ReadGradients& d, void* scratch, cudaStream_t stream);

// Bytes of `scratch` for either backward pass. Both are deterministic.
size_t rwkv7_scratch_bytes(const Rwkv7Rows& rows);

}  // namespace sb::cuda
