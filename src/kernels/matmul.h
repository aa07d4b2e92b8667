// Differentiable matrix products whose results do not depend on the number of threads. The CPU uses our own kernels,
// since a BLAS splits its sums by the number of threads.
#pragma once
#include <ATen/core/Tensor.h>

namespace sb {

// x W^T + b over the last axis; bias may be undefined. `copy`: the weight in bfloat16, without a gradient. If it is
// given on a GPU, products use bfloat16 with float32 sums and the result is bfloat16; the weight's gradient stays
// float32.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                   const at::Tensor& copy = {});
// Whether project() reads the weight's values only from the copy. The weight then only receives the gradient.
bool projects_copies(const at::Tensor& x, const at::Tensor& copy, const at::Tensor& bias = {});
// a [n,M,K] b [n,K,N] -> [n,M,N]
at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace sb
