// Matrix products whose bytes do not depend on the number of threads. CPU float and double run our own (a BLAS splits
// its sums by thread count); other tensors, and plain mode, run ATen's.
#pragma once
#include <ATen/core/Tensor.h>

namespace sb {

// a [M,K] b [K,N], plus bias [N] on every row where one is given; not differentiable.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {});
void product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {});
void add_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);  // out += a b

// a [n,M,K] b [n,K,N] -> [n,M,N]; differentiable.
at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace sb
