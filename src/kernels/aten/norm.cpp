#include <ATen/ATen.h>

#include <cmath>

#include "kernels/operations.h"

namespace sb::aten {
namespace {

at::Tensor scaled(const op::RowNorm& op, const at::Tensor& x, const at::Tensor& gain) {
  const at::Tensor u = gain.defined() ? gain * x : x;
  switch (op.norm) {
    case Norm::rms:
      return u * (x.square().mean(-1, true) + op.eps).rsqrt();
    case Norm::outer_eps:
      return u / (x.norm(2, {-1}, true) / std::sqrt(static_cast<double>(x.size(-1))) + op.eps);
    case Norm::l2:
      break;
  }
  return u * (x.square().sum(-1, true) + op.eps).rsqrt();
}

}  // namespace

// x, gain?, gate?
kernels::Tensors row_norm(const op::RowNorm& op, const kernels::Tensors& in, kernels::Tensors*) {
  if (op.gate == NormGate::before) return {scaled(op, in[0] * at::silu(in[2]), in[1])};
  const at::Tensor y = scaled(op, in[0], in[1]);
  return {op.gate == NormGate::after ? y * at::silu(in[2]) : y};
}

}  // namespace sb::aten
