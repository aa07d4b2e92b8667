#include "kernels/cuda/bind/tensors.h"

#include <limits>
#include <optional>
#include <string>

#include "base/error.h"
#include "kernels/poison.h"

namespace sb::cuda::bind {
namespace {

// The common stride of axes 0..count - 1, if they have one; nullopt also if an axis has stride 0.
std::optional<int64_t> one_stride(const Tensor& x, int64_t count) {
  int64_t stride = 0, reach = 0;
  bool any = false;
  for (int64_t d = count - 1; d >= 0; --d) {
    if (x.size(d) == 1) continue;
    if (x.stride(d) == 0 || (any && x.stride(d) != reach)) return std::nullopt;
    if (!any) stride = x.stride(d);
    any = true;
    reach = x.stride(d) * x.size(d);
  }
  return any ? stride : x.numel();
}

Held held(const Tensor& x, bool heads) {
  const int64_t axes = x.dim();
  heads = heads && axes >= 4;
  Held h;
  h.x = packed_last(x);
  const int64_t leading = axes - (heads ? 2 : 1);
  std::optional<int64_t> stride = one_stride(h.x, leading);
  if (!stride) {
    h.x = x.contiguous();
    stride = one_stride(h.x, leading);
  }
  h.width = static_cast<int>(x.size(-1));
  if (heads) {
    h.heads = static_cast<int>(x.size(-2));
    h.head = h.x.stride(-2);
  }
  h.tokens = x.numel() / (static_cast<int64_t>(h.width) * h.heads);
  h.token = *stride;
  return h;
}

}  // namespace

void OnDevice::check(const char* where, cudaError_t status) const {
  if (status != cudaSuccess) throw check_failed(where, std::string("CUDA: ") + cudaGetErrorString(status));
}

Tensor fresh(at::IntArrayRef sizes, const Tensor& like, at::ScalarType type) {
  Tensor x = at::empty(sizes, like.options().dtype(type));
  if (kernels::buffers_are_poisoned() && x.is_floating_point()) x.fill_(std::numeric_limits<double>::quiet_NaN());
  return x;
}

Tensor scratch(size_t bytes, const Tensor& like) {
  Tensor x = at::empty({std::max<int64_t>(256, static_cast<int64_t>(bytes))}, like.options().dtype(at::kByte));
  if (kernels::buffers_are_poisoned()) x.fill_(255);  // NaN in every type
  return x;
}

Tensor gradient_of(const Back& back, size_t input, at::IntArrayRef sizes, const Tensor& like) {
  const Tensor place = back.place(input);
  const bool fits = place.defined() && place.scalar_type() == like.scalar_type() && place.sizes() == sizes &&
                    packed_last(place).is_same(place);
  return fits ? place : fresh(sizes, like);
}
Tensor gradient_by_heads(const Back& back, size_t input, const Tensor& like) {
  const Tensor x = gradient_of(back, input, like);
  return by_heads(x).x.is_same(x) ? x : fresh_like(like);
}
Tensor gradient_by_rows(const Back& back, size_t input, const Tensor& like) {
  const Tensor x = gradient_of(back, input, like);
  return by_rows(x).x.is_same(x) ? x : fresh_like(like);
}

bool readable(const Tensor& x) {
  return x.defined() && x.is_cuda() && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

Held by_heads(const Tensor& x) {
  return held(x, true);
}
Held by_rows(const Tensor& x) {
  return held(x, false);
}

}  // namespace sb::cuda::bind
