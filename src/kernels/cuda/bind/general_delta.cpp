#include "kernels/cuda/general_delta.h"

#include "kernels/cuda/bind/head_rows.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

// q, k, v, erase, write, g?, state?
GeneralDelta general_problem(const op::GeneralDelta& op, const Tensors& c) {
  const Tensor &q = c[0], &v = c[2], &g = c[5];
  const bool decays = g.defined();
  return {v.size(0),
          v.size(1),
          v.size(2),
          q.size(3),
          v.size(3),
          precision_of(v),
          op.erase_first,
          static_cast<float>(op.scale),
          head_rows<const void>(q),
          head_rows<const void>(c[1]),
          head_rows<const void>(v),
          head_rows<const void>(c[3]),
          head_rows<const void>(c[4]),
          float_data(g),
          decays ? g.stride(0) : 0,
          decays ? g.stride(1) : 0,
          decays ? g.stride(2) : 0,
          decays && g.dim() == 4 ? 1 : 0,
          float_data(c[6]),
          op.writes_keys};
}

}  // namespace

bool supports_general_delta(const op::GeneralDelta& op, const Tensors& in) {
  for (const Tensor& x : in)
    if (!readable_or_absent(x)) return false;
  for (const size_t i : {0, 1, 3, 4})
    if (!same_type(in[i], in[2])) return false;
  if (in[0].size(3) > 256 || in[2].size(3) > 256) return false;
  const c10::DeviceGuard on(in[2].device());
  return general_delta_fits(general_problem(op, {in[0], in[1], in[2], in[3], in[4], Tensor(), Tensor()}));
}

// -> out, state (float32)
Tensors general_delta(const op::GeneralDelta& op, const Tensors& in, Tensors* saved) {
  Tensor g = in[5].defined() ? in[5].to(at::kFloat) : in[5];
  if (g.defined() && g.dim() == 4) g = packed_last(g);
  const Tensors c{packed_last(in[0]), packed_last(in[1]), packed_last(in[2]), packed_last(in[3]), packed_last(in[4]), g,
                  floats(in[6])};
  const GeneralDelta p = general_problem(op, c);
  const Tensor out = fresh(c[2].sizes(), c[2]);
  const Tensor last = fresh({p.batch, p.heads, p.key_width, p.value_width}, out, at::kFloat);
  const OnDevice on(out);
  const Tensor kept = scratch(general_delta_kept_bytes(p, saved != nullptr), out);
  on.check("general_delta_rule",
           general_delta_forward(p, head_rows<void>(out), float_data(last), data(kept), saved != nullptr, on.stream()));
  if (saved) {
    *saved = c;
    saved->push_back(kept);
  }
  return {out, last};
}

Tensors general_delta_back(const op::GeneralDelta& op, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor &q = c[0], &v = c[2], &g = c[5], &state = c[6], &kept = c[7];
  const GeneralDelta p = general_problem(op, c);
  const Tensor d_out = back.d_out[0].defined() ? packed_last(back.d_out[0]) : at::zeros(v.sizes(), v.options());
  const Tensor d_last = floats(back.d_out[1]);
  const Tensor dq = gradient_of(back, 0, q), dk = gradient_of(back, 1, q), dv = gradient_of(back, 2, v);
  const Tensor d_erase = gradient_of(back, 3, q), d_write = op.writes_keys ? Tensor() : gradient_of(back, 4, q);
  const Tensor dg = g.defined() ? fresh(q.sizes(), g) : Tensor();  // per key channel
  const Tensor d_state = state.defined() ? fresh_like(state) : Tensor();
  const GeneralDeltaGradients d{head_rows<const void>(d_out),
                                float_data(d_last),
                                head_rows<void>(dq),
                                head_rows<void>(dk),
                                head_rows<void>(dv),
                                head_rows<void>(d_erase),
                                op.writes_keys ? Rows{} : head_rows<void>(d_write),
                                float_data(dg),
                                dg.defined() ? dg.stride(0) : 0,
                                dg.defined() ? dg.stride(1) : 0,
                                dg.defined() ? dg.stride(2) : 0,
                                float_data(d_state)};
  const OnDevice on(v);
  const Tensor memory = scratch(general_delta_workspace_bytes(p), v);
  on.check("general_delta_rule", general_delta_backward(p, data(kept), d, data(memory), on.stream()));
  return {dq, dk, dv, d_erase, d_write, g.defined() && g.dim() == 3 ? dg.sum(-1) : dg, d_state};
}

}  // namespace sb::cuda::bind
