// What differs between the libtorch versions we build against.
#pragma once
#include <torch/csrc/autograd/custom_function.h>

namespace sb::compat {

// True when autograd would record an operation on any of these tensors.
template <class... Tensors>
bool records_gradient(const Tensors&... tensors) {
  return at::GradMode::is_enabled() && ((tensors.defined() && tensors.requires_grad()) || ...);
}

}  // namespace sb::compat
