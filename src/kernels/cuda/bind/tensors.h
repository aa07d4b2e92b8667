// Adapts tensors to the kernels of cuda/: reads rows in place if the strides allow it, allocates results and scratch.
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

// RAII guard: makes the device of a tensor current, and provides its stream.
class OnDevice {
 public:
  explicit OnDevice(const Tensor& x) : guard_(x.device()), stream_(current_stream(x.device().index())) {}
  cudaStream_t stream() const { return stream_; }
  // Throws if a kernel launch failed.
  void check(const char* where, cudaError_t status) const;

 private:
  c10::DeviceGuard guard_;
  cudaStream_t stream_;
};

// Return uninitialised tensors; the caller must write every element.
Tensor fresh(at::IntArrayRef sizes, const Tensor& like, at::ScalarType type);
inline Tensor fresh(at::IntArrayRef sizes, const Tensor& like) {
  return fresh(sizes, like, like.scalar_type());
}
inline Tensor fresh_like(const Tensor& x) {
  return fresh(x.sizes(), x);
}
Tensor scratch(size_t bytes, const Tensor& like);
// Returns memory for the gradient of an input, of the type of `like`: its destination (Back::place) or a new tensor.
Tensor gradient_of(const Back& back, size_t input, at::IntArrayRef sizes, const Tensor& like);
inline Tensor gradient_of(const Back& back, size_t input, const Tensor& like) {
  return gradient_of(back, input, like.sizes(), like);
}

// Whether kernels can read the tensor: bfloat16 or float32 on a CUDA device, not empty
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
// Converts parameters, gates and states to contiguous float32
inline Tensor floats(const Tensor& x) {
  return x.defined() ? x.to(at::kFloat).contiguous() : x;
}
inline float* float_data(const Tensor& x) {
  return x.defined() ? x.data_ptr<float>() : nullptr;
}
inline void* data(const Tensor& x) {
  return x.defined() ? x.data_ptr() : nullptr;
}
// Returns x if its last axis is contiguous, else a contiguous copy.
inline Tensor packed_last(const Tensor& x) {
  return !x.defined() || x.size(-1) == 1 || x.stride(-1) == 1 ? x : x.contiguous();
}

// x as [tokens, heads, width]. The last axis is the width. With four axes or more, the axis before it is the heads;
// otherwise there is one head. Copies x if the tokens do not have a single stride.
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
// The same, always with one head.
Held by_rows(const Tensor& x);

// Like gradient_of(), but the result can always be passed to by_heads() or by_rows() without a copy.
Tensor gradient_by_heads(const Back& back, size_t input, const Tensor& like);
Tensor gradient_by_rows(const Back& back, size_t input, const Tensor& like);

// Sums over all axes but the last, in float32
Tensor sum_of_rows(const Tensor& x);

}  // namespace sb::cuda::bind
