#include "kernels/matmul.h"

#include "kernels/check.h"
#include "kernels/operations.h"

namespace sb {

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& copy) {
  kernels::check_shape("project", "weight", weight, {-1, x.size(-1)});
  if (bias.defined()) kernels::check_shape("project", "bias", bias, {weight.size(0)});
  if (copy.defined()) kernels::check_shape("project", "copy", copy, {weight.size(0), weight.size(1)});
  return kernels::run(op::Project{}, {x, weight, bias, copy})[0];
}

bool projects_copies(const at::Tensor& x, const at::Tensor& copy, const at::Tensor& bias) {
  return copy.defined() && x.is_cuda() && kernels::has_kernel(op::Project{}, {x, copy, bias, copy});
}

at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b) {
  kernels::check_shape("batched_product", "a", a, {-1, -1, -1});
  kernels::check_shape("batched_product", "b", b, {a.size(0), a.size(2), -1});
  return kernels::run(op::BatchedProduct{}, {a, b})[0];
}

}  // namespace sb
