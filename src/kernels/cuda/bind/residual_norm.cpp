#include "kernels/cuda/residual_norm.h"

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

DropoutPlace place_of(double p, const DropoutKey& key, bool tied) {
  return {p, key.seed, key.place, key.samples.data_ptr<int64_t>(), key.update.data_ptr<int64_t>(), tied};
}

struct ResidualInput {
  Held z, residual;
  ResidualNorm p;
  ResidualInput(const op::ResidualLayerNorm& op, const Tensor& z_in, const Tensor& residual_in, const Tensor& gain,
                const Tensor& bias)
      : z(by_rows(z_in)), residual(by_rows(residual_in)) {
    p.rows = z.tokens, p.width = z.width;
    p.time = z_in.dim() == 3 ? static_cast<int>(z_in.size(1)) : 1;
    p.element = element_of(z_in), p.stream = element_of(residual_in);
    p.gain = float_data(gain), p.bias = float_data(bias);
    if (op.p > 0) p.dropout = place_of(op.p, *op.key, false);
    p.z = z.in(), p.residual = residual.in();
  }
};

Tensor dropped(const op::Dropout& op, const Tensor& x) {
  const Held rows = by_rows(x);
  const Tensor y = fresh_like(x);
  Dropout p;
  p.rows = rows.tokens, p.time = static_cast<int>(x.size(1)), p.width = rows.width, p.element = element_of(x);
  p.dropout = place_of(op.p, op.key, op.tied_over_time), p.x = rows.in();
  const OnDevice on(x);
  on.check("dropout", dropout_forward(p, by_rows(y).out(), on.stream()));
  return y;
}

}  // namespace

bool supports_residual_layer_norm(const op::ResidualLayerNorm&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable(in[2]) && readable(in[3]) &&
         in[0].size(-1) <= kMaxResidualWidth && (is_low(in[0]) || !is_low(in[1]));
}

// z, residual, gain, bias -> y of the residual's type
Tensors residual_layer_norm(const op::ResidualLayerNorm& op, const Tensors& in, Tensors* saved) {
  const Tensor gain = floats(in[2]), bias = floats(in[3]), y = fresh_like(in[1]);
  const ResidualInput rows(op, in[0], in[1], gain, bias);
  const Tensor stats = saved ? fresh({rows.p.rows, 2}, y, at::kFloat) : Tensor();
  const OnDevice on(y);
  on.check("residual_layer_norm", residual_norm_forward(rows.p, by_rows(y).out(), float_data(stats), on.stream()));
  if (saved) *saved = {rows.z.x, rows.residual.x, gain, bias, stats};
  return {y};
}

Tensors residual_layer_norm_back(const op::ResidualLayerNorm& op, const Back& back) {
  const Tensor &z = back.saved[0], &residual = back.saved[1], &gain = back.saved[2], &bias = back.saved[3];
  const ResidualInput rows(op, z, residual, gain, bias);
  const Held gy = by_rows(back.d_out[0]);
  const Tensor d_residual = fresh_like(residual), d_gain = fresh_like(gain), d_bias = fresh_like(gain);
  const Tensor dz = op.p > 0 || !same_type(z, residual) ? fresh_like(z) : d_residual;
  ResidualNormGradients d;
  d.gy = gy.in(), d.d_residual = by_rows(d_residual).out();
  if (!dz.is_same(d_residual)) d.dz = by_rows(dz).out();
  d.d_gain = float_data(d_gain), d.d_bias = float_data(d_bias);
  const Tensor memory = scratch(residual_norm_scratch_bytes(rows.p), z);
  const OnDevice on(z);
  on.check("residual_layer_norm",
           residual_norm_backward(rows.p, float_data(back.saved[4]), d, data(memory), on.stream()));
  return {dz, d_residual, d_gain, d_bias};
}

bool supports_dropout(const op::Dropout&, const Tensors& in) {
  return readable(in[0]);
}
Tensors dropout(const op::Dropout& op, const Tensors& in, Tensors*) {
  return {dropped(op, in[0])};
}
Tensors dropout_back(const op::Dropout& op, const Back& back) {
  return {dropped(op, back.d_out[0])};
}

}  // namespace sb::cuda::bind
