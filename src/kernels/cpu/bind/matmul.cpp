#include <ATen/TensorUtils.h>

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

Tensor as_matrix(const Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

Tensor each_product(const Tensor& a, const Tensor& b) {
  const Tensor out = fresh({a.size(0), a.size(1), b.size(2)}, a.options());
  for_each_task(a.size(0), [&](int64_t i) { multiply(out.select(0, i), a.select(0, i), b.select(0, i)); });
  return out;
}

}  // namespace

// x [...,d], weight [n,d], bias? [n], copy? (not read)
Tensors project(const op::Project&, const Tensors& in, Tensors* saved) {
  const Tensor &x = in[0], &weight = in[1];
  auto shape = x.sizes().vec();
  shape.back() = weight.size(0);
  if (saved) *saved = {x, weight};
  return {multiplied(as_matrix(x), weight.t(), in[2]).view(shape)};
}

Tensors project_back(const op::Project&, const kernels::Back& back) {
  const Tensor &x = back.saved[0], &weight = back.saved[1], grad = as_matrix(back.d_out[0]);
  Tensors out(4);
  if (back.wanted[0]) {
    const std::vector<int64_t> matrix{grad.size(0), x.size(-1)};
    out[0] = gradient_of(back, 0, x);
    if (!at::detail::computeStride(out[0].sizes(), out[0].strides(), at::IntArrayRef(matrix))) out[0] = fresh_like(x);
    multiply(out[0].view(matrix), grad, weight);
  }
  out[1] = multiplied(grad.t(), as_matrix(x));
  if (back.wanted[2]) out[2] = sum_in_order(grad);
  return out;
}

Tensors batched_product(const op::BatchedProduct&, const Tensors& in, Tensors* saved) {
  if (saved) *saved = {in[0], in[1]};
  return {each_product(in[0], in[1])};
}

Tensors batched_product_back(const op::BatchedProduct&, const kernels::Back& back) {
  const Tensor& grad = back.d_out[0];
  return {each_product(grad, back.saved[1].transpose(1, 2)), each_product(back.saved[0].transpose(1, 2), grad)};
}

}  // namespace sb::cpu
