// Checks of the arguments of public functions. All throw bad_input with a one-line message.
#pragma once
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>

namespace sb::kernels {

// "[2, 5, 4]"
std::string shape_text(at::IntArrayRef sizes);
// Throws unless `t` has these sizes (-1: any).
void check_shape(const char* where, const char* name, const at::Tensor& t, std::initializer_list<int64_t> sizes);
// Throws unless every defined tensor has the type and device of `t`. `float32_too`: if `t` has a half-precision type,
// others may also be float32.
void check_alike(const char* where, const at::Tensor& t, std::initializer_list<at::Tensor> others,
                 bool float32_too = false);

}  // namespace sb::kernels
