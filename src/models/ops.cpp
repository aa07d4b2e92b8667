#include "models/ops.h"

#include "base/torch_pch.h"
#include "kernels/elementwise.h"

namespace sb {

at::Tensor project(const at::Tensor& x, Param weight, Param bias) {
  // A convolution of one frame is a product.
  const auto matrix = [](const at::Tensor& w) { return w.defined() && w.dim() > 2 ? w.flatten(1) : w; };
  return project(x, matrix(weight->value), bias ? bias->value : at::Tensor(), matrix(weight->copy));
}

at::Tensor project(const at::Tensor& x, const Joined& weight, const Joined& bias, const Padding& padding) {
  const at::Tensor copy = weight.copy(padding), offset = bias.empty() ? at::Tensor() : bias.value(padding);
  return project(x, projects_copies(x, copy, offset) ? weight.stand_in(padding) : weight.value(padding), offset, copy);
}

at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf ? at::kFloat : x.scalar_type();
}

at::Tensor wide(const at::Tensor& x) {
  return x.to(wide_type(x));
}

PaddedNorm::PaddedNorm(Param real_gain, const PaddedRows& row, double real_eps)
    : gain(real_gain->value), eps(real_eps) {
  if (row.padded == row.width) return;
  const double share = static_cast<double>(row.width) / static_cast<double>(row.padded);
  gain = Joined(real_gain).value(Padding::of_rows({row}), std::sqrt(share));
  eps = real_eps * share;
}

at::Tensor heads_of(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(-1) / heads});
}

at::Tensor rope_at(const at::Tensor& x, double base, const at::Tensor& positions) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor rate = rope_rates(base, half, x.options());
  const at::Tensor angle = (positions.to(at::kDouble).unsqueeze(-1) * rate).unsqueeze(2);  // [B,T,1,K/2]
  const at::Tensor c = angle.cos().to(wide_type(x)), s = angle.sin().to(wide_type(x));
  const at::Tensor x1 = wide(x.narrow(-1, 0, half)), x2 = wide(x.narrow(-1, half, half));
  return at::cat({x1 * c + x2 * s, x2 * c - x1 * s}, -1).to(x.scalar_type());
}

at::Tensor flat_heads(const at::Tensor& x) {
  return x.flatten(-2);
}

at::Tensor carried_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Context& context,
                        Activation activation, const std::string& slot) {
  const auto tail = context.carried(slot);
  if (context.state) {
    const auto before = tail.defined() ? tail : at::zeros({x.size(0), 3, x.size(2)}, x.options());
    const int64_t length = x.size(1);
    context.carry(slot, length >= 3 ? x.narrow(1, length - 3, 3).contiguous()
                                    : at::cat({before.narrow(1, length, 3 - length), x}, 1));
  }
  return conv4(x, weight, bias, activation == Activation::silu, tail);
}

at::Tensor short_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Context& context,
                      const std::string& slot) {
  return weight.defined() ? carried_conv(x, weight, bias, context, Activation::silu, slot) : sb::silu(x);
}

at::Tensor bounded_below(const at::Tensor& log_decay, double a_min) {
  return a_min > 0 ? at::log1p((1 - a_min) * at::expm1(log_decay)) : log_decay;
}

}  // namespace sb
