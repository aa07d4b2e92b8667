// Tensors as the kernels of cuda/ see them: rows read in place where the strides allow it, fresh results, scratch.
#pragma once
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include "kernels/cuda/bind/stream.h"
#include "kernels/cuda/rows.h"
#include "kernels/operation.h"

namespace sb::cuda::bind {

using at::Tensor;
using kernels::Back;
using kernels::Tensors;

// The device of a tensor and its stream, for as long as this lives.
class OnDevice {
 public:
  explicit OnDevice(const Tensor& x) : guard_(x.device()), stream_(current_stream(x.device().index())) {}
  cudaStream_t stream() const { return stream_; }
  // Throws where a kernel did not start.
  void check(const char* where, cudaError_t status) const;

 private:
  c10::DeviceGuard guard_;
  cudaStream_t stream_;
};

// Buffers whose every element somebody will write.
Tensor fresh(at::IntArrayRef sizes, const Tensor& like, at::ScalarType type);
inline Tensor fresh(at::IntArrayRef sizes, const Tensor& like) {
  return fresh(sizes, like, like.scalar_type());
}
inline Tensor fresh_like(const Tensor& x) {
  return fresh(x.sizes(), x);
}
Tensor scratch(size_t bytes, const Tensor& like);
// Memory for the gradient of an input of these sizes and this type: its place (operation.h), or fresh.
Tensor gradient_of(const Back& back, size_t input, at::IntArrayRef sizes, const Tensor& like);
inline Tensor gradient_of(const Back& back, size_t input, const Tensor& like) {
  return gradient_of(back, input, like.sizes(), like);
}

// bfloat16 or float32 on a CUDA device, not empty: what kernels read
bool readable(const Tensor& x);
inline bool readable_or_absent(const Tensor& x) {
  return !x.defined() || readable(x);
}
inline bool is_low(const Tensor& x) {
  return x.scalar_type() == at::kBFloat16;
}
inline Element element_of(const Tensor& x) {
  return is_low(x) ? Element::bf16 : Element::fp32;
}
inline bool same_type(const Tensor& x, const Tensor& y) {
  return x.scalar_type() == y.scalar_type();
}

inline Tensor contiguous(const Tensor& x) {
  return x.defined() ? x.contiguous() : x;
}
// Parameters, gates and states: float32 without gaps
inline Tensor floats(const Tensor& x) {
  return x.defined() ? x.to(at::kFloat).contiguous() : x;
}
inline float* float_data(const Tensor& x) {
  return x.defined() ? x.data_ptr<float>() : nullptr;
}
inline void* data(const Tensor& x) {
  return x.defined() ? x.data_ptr() : nullptr;
}
// Itself where the last axis lies without gaps, else a copy.
inline Tensor packed_last(const Tensor& x) {
  return !x.defined() || x.size(-1) == 1 || x.stride(-1) == 1 ? x : x.contiguous();
}

// x as [tokens, heads, width]: the last axis is the width; of four axes or more the one before is the heads, else there
// is one. A copy where the tokens have no single stride.
struct Held {
  Tensor x;
  int64_t tokens = 0, token = 0, head = 0;
  int heads = 1, width = 0;
  RowsIn in() const { return {data(x), token, head}; }
  RowsOut out() const { return {data(x), token, head}; }
  TokenRows<const float> floats_in() const { return {float_data(x), token, head}; }
  TokenRows<float> floats_out() const { return {float_data(x), token, head}; }
};
Held by_heads(const Tensor& x);
// The same with one head always.
Held by_rows(const Tensor& x);

// The same of memory for a gradient, never a copy of it.
Tensor gradient_by_heads(const Back& back, size_t input, const Tensor& like);
Tensor gradient_by_rows(const Back& back, size_t input, const Tensor& like);

// Sums over all axes but the last, in float32
Tensor sum_of_rows(const Tensor& x);

}  // namespace sb::cuda::bind
