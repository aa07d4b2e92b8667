#include "kernels/cuda/decayed_attention.h"

#include "kernels/cuda/bind/head_rows.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

struct Strides {
  int64_t batch = 0, time = 0, head = 0;
  explicit Strides(const Tensor& g) {
    if (!g.defined()) return;
    if (g.dim() == 1)
      head = g.stride(0);
    else
      batch = g.stride(0), time = g.stride(1), head = g.stride(2);
  }
};

Decay decay_of(const Tensor& g) {
  if (!g.defined()) return Decay::unit;
  return g.dim() == 1 ? Decay::fixed : g.dim() == 3 ? Decay::scalar : Decay::vector;
}

DecayedAttention problem(const op::DecayedAttention& op, const Tensors& c) {
  const Tensor &q = c[0], &v = c[2], &g = c[3];
  const Strides strides(g);
  return {v.size(0),
          v.size(1),
          v.size(2),
          q.size(2),
          q.size(3),
          v.size(3),
          precision_of(v),
          decay_of(g),
          static_cast<float>(op.scale),
          head_rows<const void>(q),
          head_rows<const void>(c[1]),
          head_rows<const void>(v),
          float_data(g),
          strides.batch,
          strides.time,
          strides.head,
          float_data(c[4])};
}

// c: q, k, x, g, state?, write, skip?, before?, all but the first three contiguous
DecayedAttention written_problem(double scale, const Tensors& c) {
  DecayedAttention p = problem(op::DecayedAttention{scale}, c);
  p.write = float_data(c[5]);
  p.write_batch = c[5].stride(0), p.write_time = c[5].stride(1), p.write_head = c[5].stride(2);
  p.skip = float_data(c[6]);
  p.before = float_data(c[7]);
  return p;
}

// Rows that TMA can read
Tensor at_16_bytes(const Tensor& x) {
  const bool fits = x.stride(3) == 1 && x.stride(0) % 8 == 0 && x.stride(1) % 8 == 0 && x.stride(2) % 8 == 0 &&
                    reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0;
  return fits ? x : x.contiguous();
}
Tensor gradient_at_16_bytes(const Back& back, size_t input, const Tensor& like) {
  const Tensor x = gradient_of(back, input, like);
  return at_16_bytes(x).is_same(x) ? x : fresh_like(like);
}

}  // namespace

bool supports_decayed_attention(const op::DecayedAttention& op, const Tensors& in) {
  for (const Tensor& x : in)
    if (!readable_or_absent(x)) return false;
  if (!same_type(in[0], in[2]) || !same_type(in[1], in[2]) || in[0].size(3) > 256 || in[2].size(3) > 256) return false;
  DecayedAttention p = problem(op, {in[0], in[1], in[2], Tensor(), Tensor()});
  p.decay = decay_of(in[3]);
  const c10::DeviceGuard on(in[2].device());
  return decayed_attention_fits(p);
}

// q, k, v, g?, state? -> out, state (float32)
Tensors decayed_attention(const op::DecayedAttention& op, const Tensors& in, Tensors* saved) {
  Tensor g = in[3].defined() ? in[3].to(at::kFloat) : in[3];
  if (g.defined() && g.dim() == 4) g = packed_last(g);
  const Tensors c{packed_last(in[0]), packed_last(in[1]), packed_last(in[2]), g, floats(in[4])};
  const DecayedAttention p = problem(op, c);
  const Tensor out = fresh(c[2].sizes(), c[2]);
  const Tensor last = fresh({p.batch, p.heads, p.key_width, p.value_width}, out, at::kFloat);
  const Tensor kept = saved || p.decay == Decay::vector ? scratch(decayed_attention_kept_bytes(p), out) : Tensor();
  const OnDevice on(out);
  const Tensor memory = scratch(decayed_attention_scratch_bytes(p), out);
  on.check("decayed_attention",
           decayed_attention_forward(p, head_rows<void>(out), float_data(last), data(kept), data(memory), on.stream()));
  if (saved) {
    *saved = c;
    saved->push_back(kept);
  }
  return {out, last};
}

Tensors decayed_attention_back(const op::DecayedAttention& op, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor &q = c[0], &v = c[2], &g = c[3], &state = c[4], &kept = c[5];
  const DecayedAttention p = problem(op, c);
  const Tensor d_out = back.d_out[0].defined() ? packed_last(back.d_out[0]) : at::zeros(v.sizes(), v.options());
  const Tensor d_last = floats(back.d_out[1]);
  const Tensor dq = gradient_of(back, 0, q), dk = gradient_of(back, 1, q), dv = gradient_of(back, 2, v);
  const Tensor dg = g.defined() ? fresh(g.sizes(), g) : Tensor();
  const Tensor d_state = state.defined() ? fresh_like(state) : Tensor();
  const Strides strides(dg);
  const DecayedAttentionGradients d{head_rows<const void>(d_out),
                                    float_data(d_last),
                                    head_rows<void>(dq),
                                    head_rows<void>(dk),
                                    head_rows<void>(dv),
                                    float_data(dg),
                                    strides.batch,
                                    strides.time,
                                    strides.head,
                                    float_data(d_state)};
  const OnDevice on(v);
  const Tensor memory = scratch(decayed_attention_workspace_bytes(p), v);
  on.check("decayed_attention", decayed_attention_backward(p, data(kept), d, data(memory), on.stream()));
  return {dq, dk, dv, dg, d_state};
}

namespace {

// Whether the kernels that write values support q, k, x, g and these float32 factors
bool supports_writes(double scale, const Tensors& in, std::initializer_list<Tensor> factors) {
  for (const Tensor& x : in)
    if (!readable_or_absent(x)) return false;
  const Tensor &q = in[0], &k = in[1], &x = in[2], &g = in[3];
  for (const Tensor& operand : {q, k, x})
    if (!is_low(operand) || operand.stride(-1) != 1) return false;
  for (const Tensor& number : factors)
    if (number.defined() && number.scalar_type() != at::kFloat) return false;
  const c10::DeviceGuard on(x.device());
  return g.dim() == 3 && q.size(3) <= 256 && x.size(3) <= 256 &&
         decayed_attention_writes(problem(op::DecayedAttention{scale}, {q, k, x, g, Tensor()}));
}

// in: as of written_problem()
Tensors written_forward(const char* where, double scale, const Tensors& in, Tensors* saved) {
  Tensors c{packed_last(in[0]), packed_last(in[1]), packed_last(in[2])};
  for (size_t i = 3; i < in.size(); ++i) c.push_back(floats(in[i]));
  const DecayedAttention p = written_problem(scale, c);
  const Tensor out = fresh(c[2].sizes(), c[2]);
  const Tensor last = fresh({p.batch, p.heads, p.key_width, p.value_width}, out, at::kFloat);
  const Tensor kept = saved ? scratch(decayed_attention_kept_bytes(p), out) : Tensor();
  const OnDevice on(out);
  const Tensor memory = scratch(decayed_attention_scratch_bytes(p), out);
  on.check(where,
           decayed_attention_forward(p, head_rows<void>(out), float_data(last), data(kept), data(memory), on.stream()));
  if (saved) {
    *saved = c;
    saved->push_back(kept);
  }
  return {out, last};
}

struct WrittenGradients {
  Tensor q, k, x, g, write, skip, state, before;
};
WrittenGradients written_backward(const char* where, double scale, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor &q = c[0], &x = c[2], &g = c[3], &kept = c[8];
  const DecayedAttention p = written_problem(scale, c);
  const Tensor d_out = back.d_out[0].defined() ? at_16_bytes(back.d_out[0]) : at::zeros(x.sizes(), x.options());
  const Tensor d_last = floats(back.d_out[1]);
  const auto like = [](const Tensor& given) { return given.defined() ? fresh_like(given) : Tensor(); };
  const WrittenGradients to{gradient_at_16_bytes(back, 0, q),
                            gradient_at_16_bytes(back, 1, q),
                            gradient_at_16_bytes(back, 2, x),
                            like(g),
                            like(c[5]),
                            like(c[6]),
                            like(c[4]),
                            like(c[7])};
  const Strides strides(to.g), write_strides(to.write);
  const DecayedAttentionGradients d{head_rows<const void>(d_out),
                                    float_data(d_last),
                                    head_rows<void>(to.q),
                                    head_rows<void>(to.k),
                                    head_rows<void>(to.x),
                                    float_data(to.g),
                                    strides.batch,
                                    strides.time,
                                    strides.head,
                                    float_data(to.state),
                                    float_data(to.write),
                                    write_strides.batch,
                                    write_strides.time,
                                    write_strides.head,
                                    float_data(to.skip),
                                    float_data(to.before)};
  const OnDevice on(x);
  const Tensor memory = scratch(decayed_attention_workspace_bytes(p), x);
  on.check(where, decayed_attention_backward(p, data(kept), d, data(memory), on.stream()));
  return to;
}

}  // namespace

// q, k, x, g, write, skip, state? -> out, state
bool supports_written_attention(const op::WrittenAttention& op, const Tensors& in) {
  return supports_writes(op.scale, in, {in[3], in[4], in[5]});
}
Tensors written_attention(const op::WrittenAttention& op, const Tensors& in, Tensors* saved) {
  return written_forward("written_attention", op.scale, {in[0], in[1], in[2], in[3], in[6], in[4], in[5], Tensor()},
                         saved);
}
Tensors written_attention_back(const op::WrittenAttention& op, const Back& back) {
  const WrittenGradients d = written_backward("written_attention", op.scale, back);
  return {d.q, d.k, d.x, d.g, d.write, d.skip, d.state};
}

// q, k, v, g, here, before, skip?, state?, last k?, last v? -> out, state
bool supports_trapezoid_attention(const op::TrapezoidAttention& op, const Tensors& in) {
  return !in[8].defined() && supports_writes(op.scale, in, {in[3], in[4], in[5], in[6]});
}
Tensors trapezoid_attention(const op::TrapezoidAttention& op, const Tensors& in, Tensors* saved) {
  return written_forward("trapezoid_attention", op.scale, {in[0], in[1], in[2], in[3], in[7], in[4], in[6], in[5]},
                         saved);
}
Tensors trapezoid_attention_back(const op::TrapezoidAttention& op, const Back& back) {
  const WrittenGradients d = written_backward("trapezoid_attention", op.scale, back);
  return {d.q, d.k, d.x, d.g, d.write, d.before, d.skip, d.state, Tensor(), Tensor()};
}

}  // namespace sb::cuda::bind
