#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {

using kernels::Tensors;

Tensors project(const op::Project&, const Tensors& in, Tensors*) {
  // In half precision, the weight is rounded first; the copy has the same values.
  const auto type = in[3].defined() ? in[3].scalar_type() : in[0].scalar_type();
  return {at::linear(in[0].to(type), in[1].to(type), in[2].defined() ? in[2].to(type) : in[2])};
}

Tensors batched_product(const op::BatchedProduct&, const Tensors& in, Tensors*) {
  return {at::bmm(in[0], in[1].to(in[0].scalar_type()))};
}

}  // namespace sb::aten
