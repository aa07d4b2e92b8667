// Shape checks of the public functions: one line, naming the argument, what was expected and what came.
#pragma once
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>

namespace sb::kernels {

// "[2, 5, 4]"
std::string shape_text(at::IntArrayRef sizes);
// Throws unless `t` has these sizes (-1: any).
void check_shape(const char* where, const char* name, const at::Tensor& t, std::initializer_list<int64_t> sizes);
// Throws unless every defined tensor has the type and device of `t`; `float32_too`: or is float32 beside a half
// precision.
void check_alike(const char* where, const at::Tensor& t, std::initializer_list<at::Tensor> others,
                 bool float32_too = false);

}  // namespace sb::kernels
