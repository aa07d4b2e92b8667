#include "kernels/cuda/gated_delta.h"

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

// x [B,T,H,...] or [B,T,n,H,...]
DeltaView view(const Tensor& x, bool factors) {
  if (!x.defined()) return {};
  return {data(x), x.stride(0), x.stride(1), factors ? x.stride(2) : 0, x.stride(factors ? 3 : 2)};
}

DeltaShape shape_of(const op::GatedDelta& op, const Tensor& q, const Tensor& k, const Tensor& v) {
  DeltaShape s;
  s.batch = static_cast<int>(q.size(0)), s.time = static_cast<int>(q.size(1)), s.heads = static_cast<int>(q.size(2));
  s.factors = static_cast<int>(k.size(2)), s.K = static_cast<int>(q.size(3)), s.V = static_cast<int>(v.size(4));
  s.scale = static_cast<float>(op.scale);
  s.precision = is_low(v)                    ? DeltaPrecision::bf16
                : kernels::tf32_is_allowed() ? DeltaPrecision::tf32
                                             : DeltaPrecision::fp32;
  return s;
}

// q, k, v, beta, g?, state?
DeltaInputs inputs(const Tensors& c) {
  return {view(c[0], false), view(c[1], true), view(c[2], true), view(c[3], true), view(c[4], false), float_data(c[5])};
}

Tensor as_float(const Tensor& x) {
  return x.defined() ? x.to(at::kFloat) : x;
}

}  // namespace

bool supports_gated_delta(const op::GatedDelta& op, const Tensors& in) {
  for (const Tensor& x : in)
    if (!readable_or_absent(x)) return false;
  const c10::DeviceGuard on(in[2].device());
  return same_type(in[0], in[2]) && same_type(in[1], in[2]) && in[1].size(2) <= 4 && in[0].size(3) <= 256 &&
         in[2].size(4) <= 512 && gated_delta_fits(shape_of(op, in[0], in[1], in[2]));
}

// -> out, state (float32)
Tensors gated_delta(const op::GatedDelta& op, const Tensors& in, Tensors* saved) {
  const Tensors c{packed_last(in[0]), packed_last(in[1]), packed_last(in[2]),
                  as_float(in[3]),    as_float(in[4]),    floats(in[5])};
  const DeltaShape shape = shape_of(op, c[0], c[1], c[2]);
  const Tensor out = fresh({shape.batch, shape.time, shape.heads, shape.V}, c[2]);
  const Tensor last = fresh({shape.batch, shape.heads, shape.K, shape.V}, out, at::kFloat);
  const OnDevice on(out);
  const Tensor kept = saved ? scratch(gated_delta_kept_bytes(shape), out) : Tensor();
  const Tensor memory = saved ? Tensor() : scratch(gated_delta_scratch_bytes(shape, false), out);
  on.check("gated_delta_rule", gated_delta_forward(shape, inputs(c), {view(out, false), float_data(last)}, data(kept),
                                                   data(memory), on.stream()));
  if (saved) {
    *saved = c;
    saved->push_back(kept);
  }
  return {out, last};
}

Tensors gated_delta_back(const op::GatedDelta& op, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor &q = c[0], &k = c[1], &v = c[2], &g = c[4], &state = c[5], &kept = c[6];
  const DeltaShape shape = shape_of(op, q, k, v);
  const Tensor d_out = back.d_out[0].defined()
                           ? packed_last(back.d_out[0])
                           : at::zeros({shape.batch, shape.time, shape.heads, shape.V}, v.options());
  const Tensor d_last = floats(back.d_out[1]);
  const Tensor dq = gradient_of(back, 0, q), dk = gradient_of(back, 1, k), dv = gradient_of(back, 2, v);
  const Tensor dbeta = fresh(c[3].sizes(), c[3]), dg = g.defined() ? fresh(g.sizes(), g) : Tensor();
  const Tensor d_state = state.defined() ? fresh_like(state) : Tensor();
  const DeltaGradients d{view(d_out, false), float_data(d_last), view(dq, false), view(dk, true),
                         view(dv, true),     view(dbeta, true),  view(dg, false), float_data(d_state)};
  const OnDevice on(v);
  const Tensor memory = scratch(gated_delta_scratch_bytes(shape, true), v);
  on.check("gated_delta_rule", gated_delta_backward(shape, inputs(c), d, data(kept), data(memory), on.stream()));
  return {dq, dk, dv, dbeta, dg, d_state};
}

}  // namespace sb::cuda::bind
