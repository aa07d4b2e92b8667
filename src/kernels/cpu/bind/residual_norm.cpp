#include "kernels/cpu/residual_norm.h"

#include "kernels/cpu/bind/dropout.h"
#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

// The masks of a call with `frames` rows per sample; `samples` must be contiguous.
DropoutMask mask_of(double p, const DropoutKey& key, int64_t frames, int64_t channels) {
  return {key.seed,
          key.place,
          static_cast<uint32_t>(*key.update.data_ptr<int64_t>()),
          key.samples.data_ptr<int64_t>(),
          frames,
          channels,
          p};
}
DropoutMask mask_of(const op::ResidualLayerNorm& op, const Tensor& x) {
  if (op.p == 0) return {};
  return mask_of(op.p, *op.key, x.size(1), x.size(2));
}

Tensor dropped(const op::Dropout& op, const Tensor& x) {
  const Tensor y = fresh_like(x);
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    const Rows<T> rows(x);
    dropout_rows(mask_of(op.p, op.key, x.size(1), x.size(2)), rows.count(), rows.starts(), y.data_ptr<T>());
  });
  return y;
}

}  // namespace

Tensor dropout_factors(const op::Dropout& op, const Tensor& x) {
  const int64_t frames = op.tied_over_time ? 1 : x.size(1);
  const Tensor factors = fresh({x.size(0), frames, x.size(2)}, at::kDouble);
  dropout_scales(mask_of(op.p, op.key, frames, x.size(2)), x.size(0) * frames, factors.data_ptr<double>());
  return factors.to(x.scalar_type());
}

// z, residual, gain, bias
Tensors residual_layer_norm(const op::ResidualLayerNorm& op, const Tensors& in, Tensors* saved) {
  const Tensor &z = in[0], gain = in[2].contiguous(), bias = in[3].contiguous(), y = fresh_like(z);
  // Saved instead of z, which the backward pass does not need.
  const Tensor x = saved ? fresh_like(z) : Tensor();
  const Tensor scales = saved ? fresh({z.numel() / z.size(-1)}, z.options()) : Tensor();
  with_type_of(z, [&](auto type) {
    using T = decltype(type);
    const Rows<T> zs(z), residuals(in[1]);
    residual_norm_forward<T>({mask_of(op, z), zs.count(), zs.width(), zs.starts(), residuals.starts(),
                              gain.data_ptr<T>(), bias.data_ptr<T>()},
                             y.data_ptr<T>(), data_or_null<T>(x), data_or_null<T>(scales));
  });
  if (saved) *saved = {x, gain, scales};
  return {y};
}

Tensors residual_layer_norm_back(const op::ResidualLayerNorm& op, const kernels::Back& back) {
  const Tensor &x = back.saved[0], &gain = back.saved[1], &scales = back.saved[2];
  // Only this node uses x, so its gradient overwrites it, row by row.
  const Tensor d_residual = back.last ? x : fresh_like(x), dz = op.p == 0 ? d_residual : fresh_like(x);
  const Tensor d_gain = fresh_like(gain), d_bias = fresh_like(gain);
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    const Rows<T> gy(back.d_out[0]);
    residual_norm_backward<T>({mask_of(op, x), gy.count(), gy.width(), gy.starts(), x.data_ptr<T>(), gain.data_ptr<T>(),
                               scales.data_ptr<T>(), dz.data_ptr<T>(), d_residual.data_ptr<T>()},
                              d_gain.data_ptr<T>(), d_bias.data_ptr<T>());
  });
  return {dz, d_residual, d_gain, d_bias};
}

Tensors dropout(const op::Dropout& op, const Tensors& in, Tensors* saved) {
  if (!op.tied_over_time) return {dropped(op, in[0])};
  const Tensor factors = dropout_factors(op, in[0]);
  if (saved) *saved = {factors};
  return {in[0] * factors};
}
Tensors dropout_back(const op::Dropout& op, const kernels::Back& back) {
  return {op.tied_over_time ? back.d_out[0] * back.saved[0] : dropped(op, back.d_out[0])};
}

}  // namespace sb::cpu
