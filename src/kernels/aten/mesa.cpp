#include "kernels/aten/chunks.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"

#include <torch/csrc/autograd/autograd.h>

namespace sb::aten {
namespace {

using at::Tensor;
using kernels::Tensors;

enum MesaInput : size_t { kMesaQ, kMesaK, kMesaV, kMesaBeta, kMesaG, kMesaRidge, kMesaState, kMesaInputs };

// Below this, squared residuals count as 0: rows that have converged stay as they are.
constexpr double kMesaTiny = 1e-30;

// [G_t x_t, S_t^T x_t] for every frame, and the last state: both are reads of one decayed attention.
OutAndState mesa_read(const Tensors& in, const Tensor& x, const Tensor& values) {
  return sb::decayed_attention(x, in[kMesaK], sb::scale_heads(values, in[kMesaBeta]), in[kMesaG], 1, in[kMesaState]);
}

// (G_t + ridge)^{-1} b_t by conjugate gradients from 0, for all frames at once.
Tensor mesa_solve(const op::Mesa& op, const Tensors& in, const Tensor& b) {
  const at::NoGradGuard no_gradients;
  Tensors squares = in;
  if (in[kMesaState].defined()) squares[kMesaState] = in[kMesaState].narrow(-1, 0, b.size(3));
  const auto dot = [](const Tensor& a, const Tensor& c) { return (a * c).sum(-1, true); };
  Tensor x = at::zeros_like(b), residual = b, direction = b, square = dot(b, b);
  for (int64_t i = 0; i < op.steps; ++i) {
    const Tensor image = mesa_read(squares, direction, in[kMesaK]).out + in[kMesaRidge] * direction;
    const Tensor step = square / (dot(direction, image) + kMesaTiny);
    x = x + step * direction;
    residual = residual - step * image;
    const Tensor next = dot(residual, residual);
    direction = residual + next / (square + kMesaTiny) * direction;
    square = next;
  }
  return x;
}

Tensors mesa_in_compute_type(const Tensors& in) {
  Tensors out;
  const auto type = compute_type(in[kMesaV]);
  for (const Tensor& x : in) out.push_back(x.defined() ? x.to(type) : x);
  return out;
}

}  // namespace

// q, k, v, beta, g, ridge, state?
Tensors mesa(const op::Mesa& op, const Tensors& given, Tensors* saved) {
  const Tensors in = mesa_in_compute_type(given);
  const int64_t K = in[kMesaQ].size(3), V = in[kMesaV].size(3);
  const Tensor x = mesa_solve(op, in, in[kMesaQ]);
  const OutAndState read = mesa_read(in, x, at::cat({in[kMesaK], in[kMesaV]}, -1));
  if (saved) {
    *saved = in;
    saved->push_back(x);
  }
  return {read.out.narrow(-1, K, V).to(given[kMesaV].scalar_type()), read.state};
}

// With d the gradient of an output, y = (G + ridge)^{-1} S d is that of the query, and G_t x_t has gradient -y.
Tensors mesa_back(const op::Mesa& op, const kernels::Back& back) {
  const Tensors in(back.saved.begin(), back.saved.begin() + kMesaInputs);
  const Tensor& x = back.saved[kMesaInputs];
  const int64_t K = in[kMesaQ].size(3);
  const Tensor d_out = back.d_out[0].defined() ? back.d_out[0].to(x.scalar_type()) : at::zeros_like(in[kMesaV]);
  Tensor state;
  if (in[kMesaState].defined()) state = in[kMesaState].narrow(-1, K, in[kMesaV].size(3)).transpose(-1, -2).contiguous();
  const Tensor d_x =
      sb::decayed_attention(d_out, in[kMesaV], sb::scale_heads(in[kMesaK], in[kMesaBeta]), in[kMesaG], 1, state).out;
  const Tensor y = mesa_solve(op, in, d_x);
  Tensors gradients(kMesaInputs);
  {
    const at::AutoGradMode with_gradients(true);
    Tensors leaves = in, wanted;
    for (const size_t i : {kMesaK, kMesaV, kMesaBeta, kMesaG, kMesaState}) {
      if (!in[i].defined()) continue;
      leaves[i] = in[i].detach().requires_grad_();
      wanted.push_back(leaves[i]);
    }
    const OutAndState read = mesa_read(leaves, x.detach(), at::cat({leaves[kMesaK], leaves[kMesaV]}, -1));
    const Tensor d_state = back.d_out[1].defined() ? back.d_out[1].to(x.scalar_type()) : at::zeros_like(read.state);
    const Tensors found = torch::autograd::grad({read.out, read.state}, wanted, {at::cat({-y, d_out}, -1), d_state});
    size_t next = 0;
    for (const size_t i : {kMesaK, kMesaV, kMesaBeta, kMesaG, kMesaState})
      if (in[i].defined()) gradients[i] = found[next++];
  }
  gradients[kMesaQ] = y;
  gradients[kMesaRidge] = -(y * x).sum(at::IntArrayRef{0, 1});
  return gradients;
}

}  // namespace sb::aten
