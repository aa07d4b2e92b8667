// Matrix products whose bytes do not depend on the number of threads. A BLAS splits its sums by thread count; here the
// result is cut into tiles by sizes alone, and each tile is one product on one thread.
#pragma once
#include <ATen/core/Tensor.h>

namespace sb {

// a [M,K] b [K,N]; not differentiable.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);
void product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);      // out = a b
void add_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);  // out += a b

// a [n,M,K] b [n,K,N] -> [n,M,N]; differentiable.
at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace sb
