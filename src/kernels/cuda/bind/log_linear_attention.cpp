#include "kernels/cuda/log_linear_attention.h"

#include "kernels/cuda/bind/head_rows.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

LogLinearAttention log_linear_problem(const Tensor& q, const Tensor& k, const Tensor& v, int64_t levels) {
  return {v.size(0),
          v.size(1),
          v.size(2),
          q.size(2),
          q.size(3),
          v.size(3),
          levels,
          precision_of(v),
          head_rows<const void>(q),
          head_rows<const void>(k),
          head_rows<const void>(v),
          nullptr,
          nullptr};
}
// c: q, k, v, g, weights; the last two contiguous
LogLinearAttention log_linear_problem(const Tensors& c) {
  LogLinearAttention p = log_linear_problem(c[0], c[1], c[2], c[4].size(3));
  p.g = float_data(c[3]);
  p.weights = float_data(c[4]);
  return p;
}

// [B,T,H,w] with rows that are aligned to 16 bytes, which kernels copy fastest: x, or a copy with gaps behind its rows
Tensor log_linear_rows(const Tensor& x) {
  const int64_t part = 16 / x.element_size(), width = x.size(3);
  const auto aligned = [&](int axis) { return x.size(axis) == 1 || x.stride(axis) % part == 0; };
  if (x.stride(3) == 1 && aligned(0) && aligned(1) && aligned(2) && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0)
    return x;
  const Tensor copy = fresh({x.size(0), x.size(1), x.size(2), (width + part - 1) / part * part}, x).narrow(3, 0, width);
  copy.copy_(x);
  return copy;
}

}  // namespace

bool supports_log_linear_attention(const op::LogLinearAttention& op, const Tensors& in) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  if (op.final_state || op.position != 0 || in[5].defined()) return false;
  for (size_t i = 0; i < 5; ++i)
    if (!readable(in[i])) return false;
  if (!same_type(q, v) || !same_type(k, v) || q.size(3) > 256 || v.size(3) > 256) return false;
  const c10::DeviceGuard on(v.device());
  return log_linear_attention_fits(log_linear_problem(q, k, v, in[4].size(3)));
}

// q, k, v, g, weights -> out
Tensors log_linear_attention(const op::LogLinearAttention&, const Tensors& in, Tensors* saved) {
  const Tensors c{packed_last(in[0]), packed_last(in[1]), log_linear_rows(in[2]), floats(in[3]), floats(in[4])};
  const LogLinearAttention p = log_linear_problem(c);
  const Tensor out = fresh(in[2].sizes(), in[2]);
  const Tensor memory = scratch(log_linear_attention_workspace_bytes(p, false), out);
  const OnDevice on(out);
  on.check("log_linear_attention", log_linear_attention_forward(p, head_rows<void>(out), data(memory), on.stream()));
  if (saved) *saved = c;
  return {out};
}

Tensors log_linear_attention_back(const op::LogLinearAttention&, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor &q = c[0], &k = c[1], &v = c[2], &g = c[3], &weights = c[4];
  const LogLinearAttention p = log_linear_problem(c);
  const Tensor d_out = log_linear_rows(back.d_out[0]);
  const Tensor dq = gradient_of(back, 0, q), dk = gradient_of(back, 1, k), dv = gradient_of(back, 2, v);
  const Tensor dg = fresh(g.sizes(), g), d_weights = fresh(weights.sizes(), weights);
  const Tensor memory = scratch(log_linear_attention_workspace_bytes(p, true), v);
  const OnDevice on(v);
  on.check("log_linear_attention",
           log_linear_attention_backward(p,
                                         {head_rows<const void>(d_out), head_rows<void>(dq), head_rows<void>(dk),
                                          head_rows<void>(dv), float_data(dg), float_data(d_weights)},
                                         data(memory), on.stream()));
  return {dq, dk, dv, dg, d_weights, Tensor()};
}

}  // namespace sb::cuda::bind
