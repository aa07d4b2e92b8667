// Multiplication of each head by a number, and Mamba2's read-out.
#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/head_scale.h"
#include "kernels/cuda/norms.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

constexpr int64_t kMaxScaledWidth = 256, kLeastSkipWidth = 8;

// `token`: token stride; 0 if all tokens share the numbers
HeadScale scale_of(const Held& x, const Tensor& w, int64_t token) {
  HeadScale p;
  p.tokens = x.tokens, p.heads = x.heads, p.width = x.width, p.element = element_of(x.x), p.x = x.in();
  p.w = {float_data(w), token, 1};
  return p;
}

// Rows of all heads together, the gate before the norm
RowNorm norm_of(const op::SkipNorm& op, const Held& read, const Held& x, const Held& gate, const Tensor& skip,
                const Tensor& gain) {
  RowNorm p;
  p.tokens = read.tokens, p.width = gate.width, p.element = element_of(read.x);
  p.kind = NormKind::rms, p.gate = NormGate::before, p.eps = static_cast<float>(op.eps), p.gain = float_data(gain);
  p.x = read.in(), p.z = gate.in(), p.w = x.in();
  p.skip = float_data(skip), p.skip_width = x.width;
  return p;
}

// Heads side by side without gaps, as one row
Held whole_rows(const Tensor& x) {
  Held h = by_heads(x);
  if (h.heads > 1 && h.head != h.width) h = by_heads(x.contiguous());
  return h;
}

}  // namespace

bool supports_scale_heads(const op::ScaleHeads&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && in[0].dim() >= 4 && in[0].size(-1) <= kMaxScaledWidth;
}
// x, w -> x's type
Tensors scale_heads(const op::ScaleHeads&, const Tensors& in, Tensors* saved) {
  const Held x = by_heads(in[0]);
  const Tensor w = floats(in[1]), y = fresh_like(in[0]);
  const OnDevice on(y);
  on.check("scale_heads", head_scale_forward(scale_of(x, w, x.heads), by_heads(y).out(), on.stream()));
  if (saved) *saved = {x.x, w};
  return {y};
}
Tensors scale_heads_back(const op::ScaleHeads&, const Back& back) {
  const Held x = by_heads(back.saved[0]), dy = by_heads(back.d_out[0]);
  const Tensor &w = back.saved[1], dx = gradient_by_heads(back, 0, x.x), dw = fresh_like(w);
  HeadScaleGradients d;
  d.dy = dy.in(), d.dx = by_heads(dx).out(), d.dw = {float_data(dw), x.heads, 1};
  const OnDevice on(dx);
  on.check("scale_heads", head_scale_backward(scale_of(x, w, x.heads), d, on.stream()));
  return {dx, dw};
}

// k, beta -> k, beta k
bool supports_delta_keys(const op::DeltaKeys&, const Tensors& in) {
  return supports_scale_heads(op::ScaleHeads{}, in);
}
Tensors delta_keys(const op::DeltaKeys&, const Tensors& in, Tensors* saved) {
  return {in[0], scale_heads(op::ScaleHeads{}, in, saved)[0]};
}
Tensors delta_keys_back(const op::DeltaKeys&, const Back& back) {
  const Held x = by_heads(back.saved[0]);
  const auto given = [&](size_t i) {
    return by_heads(back.d_out[i].defined() ? back.d_out[i] : at::zeros(x.x.sizes(), x.x.options()));
  };
  const Held more = given(0), dy = given(1);
  const Tensor &w = back.saved[1], dx = gradient_by_heads(back, 0, x.x), dw = fresh_like(w);
  HeadScaleGradients d;
  d.dy = dy.in(), d.more = more.in();
  d.dx = by_heads(dx).out(), d.dw = {float_data(dw), x.heads, 1};
  const OnDevice on(dx);
  on.check("delta_keys", head_scale_backward(scale_of(x, w, x.heads), d, on.stream()));
  return {dx, dw};
}

bool supports_skip_norm(const op::SkipNorm&, const Tensors& in) {
  const Tensor &read = in[0], &x = in[1];
  for (const Tensor& each : in)
    if (!readable(each)) return false;
  return x.dim() >= 4 && same_type(read, x) && same_type(in[4], x) && x.size(-1) >= kLeastSkipWidth &&
         x.size(-1) <= kMaxScaledWidth && x.size(-1) * x.size(-2) <= kMaxNormWidth;
}
// read, x, skip, gain, gate
Tensors skip_norm(const op::SkipNorm& op, const Tensors& in, Tensors* saved) {
  const Held read = whole_rows(in[0]), x = whole_rows(in[1]), gate = by_rows(in[4]);
  const Tensor skip = floats(in[2]), gain = floats(in[3]), y = fresh_like(in[4]);
  const OnDevice on(y);
  on.check("skip_then_gate_then_rms_norm",
           row_norm_forward(norm_of(op, read, x, gate, skip, gain), by_rows(y).out(), on.stream()));
  if (saved) *saved = {read.x, x.x, skip, gain, gate.x};
  return {y};
}
Tensors skip_norm_back(const op::SkipNorm& op, const Back& back) {
  const Held read = whole_rows(back.saved[0]), x = whole_rows(back.saved[1]), gate = by_rows(back.saved[4]);
  const Tensor &skip = back.saved[2], &gain = back.saved[3];
  const Held gy = by_rows(back.d_out[0]);
  const Tensor d_read = fresh_like(read.x), dx = gradient_by_heads(back, 1, x.x),
               d_gate = gradient_by_rows(back, 4, gate.x);
  const Tensor d_gain = fresh_like(gain), d_skips = fresh({x.tokens, x.heads}, x.x, at::kFloat);
  const RowNorm p = norm_of(op, read, x, gate, skip, gain);
  const Tensor memory = scratch(row_norm_scratch_bytes(p), x.x);
  const OnDevice on(x.x);
  on.check("skip_then_gate_then_rms_norm",
           row_norm_backward(p, gy.in(), whole_rows(d_read).out(), by_rows(d_gate).out(), float_data(d_gain),
                             data(memory), on.stream()));
  // d_read is the gradient of read + skip x.
  HeadScaleGradients d;
  d.dy = by_heads(d_read).in(), d.dx = by_heads(dx).out(), d.dw = {float_data(d_skips), x.heads, 1};
  on.check("skip_then_gate_then_rms_norm", head_scale_backward(scale_of(x, skip, 0), d, on.stream()));
  return {d_read, dx, sum_of_rows(d_skips), d_gain, d_gate};
}

}  // namespace sb::cuda::bind
