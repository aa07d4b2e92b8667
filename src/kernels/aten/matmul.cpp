#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {

using kernels::Tensors;

Tensors project(const op::Project&, const Tensors& in, Tensors*) {
  return {at::linear(in[0], in[1], in[2])};
}

Tensors batched_product(const op::BatchedProduct&, const Tensors& in, Tensors*) {
  return {at::bmm(in[0], in[1])};
}

}  // namespace sb::aten
