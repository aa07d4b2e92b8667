// Fresh buffers of the kernels. Tests fill them with NaN, so that an element nobody writes shows.
#pragma once
#include <ATen/ATen.h>

#include <vector>

namespace sb::kernels {

void poison_buffers(bool on);
bool buffers_are_poisoned();
at::Tensor fresh(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace sb::kernels
