#include <ATen/ATen.h>

#include <cmath>

#include "kernels/aten/chunks.h"
#include "kernels/elementwise.h"
#include "kernels/operations.h"

namespace sb::aten {

// decay, rate, key, key_scale, key_rate -> g, k, erase, write
kernels::Tensors rwkv7_keys(const op::Rwkv7Keys& op, const kernels::Tensors& in, kernels::Tensors*) {
  const auto type = in[2].scalar_type(), inner = compute_type(in[2]);
  const auto by_head = [&](const at::Tensor& x) { return x.unflatten(-1, {op.heads, x.size(-1) / op.heads}); };
  const at::Tensor g = -std::exp(-0.5) * sb::sigmoid(in[0].to(inner));
  const at::Tensor a = sb::sigmoid(in[1].to(inner)), key = in[2].to(inner);
  const at::Tensor direction = by_head(key * in[3]);
  const at::Tensor erase = direction / direction.norm(2, {-1}, true).clamp_min(1e-12);
  const at::Tensor k = (key * (1 + (a - 1) * in[4])).to(type);
  return {by_head(g), by_head(k), erase.to(type), (erase * by_head(a)).to(type)};
}

// o, r, k, v, bonus, gain, bias, gate -> y
kernels::Tensors rwkv7_read(const op::Rwkv7Read& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor normed = at::layer_norm(in[0], {in[0].size(-1)}, {}, {}, op.eps);
  const at::Tensor bonus = (in[1] * in[2] * in[4]).sum(-1, true) * in[3];
  const at::Tensor read = normed.flatten(2) * in[5] + in[6] + bonus.flatten(2);
  return {(read * in[7]).to(in[0].scalar_type())};
}

}  // namespace sb::aten
