#include "kernels/check.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace sb::kernels {

std::string shape_text(at::IntArrayRef sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i) text += ", ";
    text += sizes[i] < 0 ? std::string("*") : std::to_string(sizes[i]);
  }
  return text + "]";
}

void check_shape(const char* where, const char* name, const at::Tensor& t, std::initializer_list<int64_t> sizes) {
  if (!t.defined()) throw bad_input(where, std::string(name) + ", expected " + shape_text(sizes) + ", got nothing");
  bool same = t.dim() == static_cast<int64_t>(sizes.size());
  int64_t axis = 0;
  for (int64_t size : sizes) {
    if (!same) break;
    same = size < 0 || t.size(axis) == size;
    ++axis;
  }
  if (!same) {
    throw bad_input(where, std::string(name) + ", expected " + shape_text(sizes) + ", got " + shape_text(t.sizes()));
  }
}

void check_alike(const char* where, const at::Tensor& t, std::initializer_list<at::Tensor> others, bool float32_too) {
  const bool half = t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf;
  for (const at::Tensor& other : others) {
    if (!other.defined()) continue;
    const bool wider = float32_too && half && other.scalar_type() == at::kFloat;
    if ((other.scalar_type() != t.scalar_type() && !wider) || other.device() != t.device()) {
      throw bad_input(
          where, std::string("tensors of one type and device, expected ") + t.toString() + ", got " + other.toString());
    }
  }
}

}  // namespace sb::kernels
