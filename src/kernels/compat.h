// What differs between the libtorch versions we build against.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

// g++ 13 sees an overrun in the vector<bool> of libtorch 2's Function::apply that cannot happen.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 13
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

namespace sb::compat {

// True when autograd would record an operation on any of these tensors.
template <class... Tensors>
bool records_gradient(const Tensors&... tensors) {
  return at::GradMode::is_enabled() && ((tensors.defined() && tensors.requires_grad()) || ...);
}

// libtorch 1.13 cannot take an undefined tensor through Function::apply: an absent argument travels as an empty vector.
inline at::Tensor present(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() ? t : at::empty({0}, like.options().requires_grad(false));
}
inline at::Tensor absent_if_empty(const at::Tensor& t) {
  return t.dim() == 1 && t.numel() == 0 ? at::Tensor() : t;
}

}  // namespace sb::compat
