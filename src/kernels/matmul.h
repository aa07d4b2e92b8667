// Matrix products whose bytes do not depend on the number of threads: on the CPU our own, since a BLAS splits its sums
// by thread count. Differentiable.
#pragma once
#include <ATen/core/Tensor.h>

namespace sb {

// x W^T + b over the last axis; bias may be undefined. `copy`: the weight's values in bfloat16, without a gradient;
// given on a GPU, products run in bfloat16 with float32 sums, the result is bfloat16 and the weight's gradient stays
// float32.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                   const at::Tensor& copy = {});
// Whether such a product takes the weight's values from the copy alone: the weight then only stands for its gradient.
bool projects_copies(const at::Tensor& x, const at::Tensor& copy, const at::Tensor& bias = {});
// a [n,M,K] b [n,K,N] -> [n,M,N]
at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace sb
