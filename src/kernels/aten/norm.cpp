#include <ATen/ATen.h>

#include <cmath>

#include "kernels/elementwise.h"
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
  // Half-precision rows with a gain in float are computed in float.
  const auto type = in[1].defined() ? at::result_type(in[0], in[1]) : in[0].scalar_type();
  const at::Tensor x = in[0].to(type), gate = in[2].defined() ? sb::silu(in[2].to(type)) : in[2];
  const at::Tensor y = scaled(op, op.gate == NormGate::before ? x * gate : x, in[1]);
  return {(op.gate == NormGate::after ? y * gate : y).to(in[0].scalar_type())};
}

}  // namespace sb::aten
