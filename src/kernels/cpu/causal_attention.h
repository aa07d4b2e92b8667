#pragma once
#include <cstdint>

namespace sb::cpu {

struct AttentionSizes {
  int64_t batch, queries, keys, heads, width, offset;
};
// x [batch, time, heads, width] with any strides
template <class T>
struct HeadRows {
  const T* data;
  int64_t time, stride[4];
};
template <class T>
struct AttentionInput {
  AttentionSizes sizes;
  HeadRows<T> q, k, v;
  const double* decay = nullptr;  // [batch, keys, heads]: cumulative log-decays c; adds c_query - c_key to every score
};
// out [batch, queries, heads, width] is contiguous; log_sums [batch, heads, queries]: logs of the softmax denominators.
template <class T>
void causal_attention_forward(const AttentionInput<T>& p, T* out, T* log_sums);
template <class T>
struct AttentionGradients {
  HeadRows<T> out, d_out;
  T *dq, *dk, *dv;  // contiguous
  T* dg = nullptr;  // [batch, keys, heads]: of the log-decays whose sums are `decay`
};
template <class T>
void causal_attention_backward(const AttentionInput<T>& p, const AttentionGradients<T>& grad, const T* log_sums);

}  // namespace sb::cpu
