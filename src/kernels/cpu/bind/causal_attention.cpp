#include "kernels/cpu/causal_attention.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

template <class T>
HeadRows<T> head_rows(const Tensor& x) {
  return {x.data_ptr<T>(), x.size(1), {x.stride(0), x.stride(1), x.stride(2), x.stride(3)}};
}

template <class T>
AttentionInput<T> attention_input(int64_t offset, const Tensor& q, const Tensor& k, const Tensor& v) {
  return {{q.size(0), q.size(1), k.size(1), q.size(2), q.size(3), offset},
          head_rows<T>(q),
          head_rows<T>(k),
          head_rows<T>(v)};
}

}  // namespace

Tensors causal_attention(const op::CausalAttention& op, const Tensors& in, Tensors* saved) {
  const Tensor &q = in[0], &k = in[1], &v = in[2], out = fresh_like(q);
  const Tensor log_sums = fresh({q.size(0), q.size(2), q.size(1)}, q.options());
  with_type_of(q, [&](auto type) {
    using T = decltype(type);
    causal_attention_forward(attention_input<T>(op.offset, q, k, v), out.data_ptr<T>(), log_sums.data_ptr<T>());
  });
  if (saved) *saved = {q, k, v, out, log_sums};
  return {out};
}

Tensors causal_attention_back(const op::CausalAttention& op, const kernels::Back& back) {
  const Tensor &q = back.saved[0], &k = back.saved[1], &v = back.saved[2], &out = back.saved[3];
  const Tensor dq = fresh_like(q), dk = fresh_like(k), dv = fresh_like(v);
  with_type_of(q, [&](auto type) {
    using T = decltype(type);
    causal_attention_backward<T>(
        attention_input<T>(op.offset, q, k, v),
        {head_rows<T>(out), head_rows<T>(back.d_out[0]), dq.data_ptr<T>(), dk.data_ptr<T>(), dv.data_ptr<T>()},
        back.saved[4].data_ptr<T>());
  });
  return {dq, dk, dv};
}

// One query, as of a model that reads frame by frame, is two thin products: ATen's form does not pack all keys for it.
bool supports_forgetting_attention(const op::ForgettingAttention&, const Tensors& in) {
  return in[0].size(1) != 1 || kernels::records_gradient(in);
}
Tensors forgetting_attention(const op::ForgettingAttention& op, const Tensors& in, Tensors* saved) {
  const Tensor &q = in[0], &k = in[1], &v = in[2], out = fresh_like(q);
  const Tensor decay = in[3].to(at::kDouble).cumsum(1).contiguous();
  const Tensor log_sums = fresh({q.size(0), q.size(2), q.size(1)}, q.options());
  with_type_of(q, [&](auto type) {
    using T = decltype(type);
    auto input = attention_input<T>(op.offset, q, k, v);
    input.decay = decay.data_ptr<double>();
    causal_attention_forward(input, out.data_ptr<T>(), log_sums.data_ptr<T>());
  });
  if (saved) *saved = {q, k, v, decay, out, log_sums};
  return {out};
}

Tensors forgetting_attention_back(const op::ForgettingAttention& op, const kernels::Back& back) {
  const Tensor &q = back.saved[0], &k = back.saved[1], &v = back.saved[2], &decay = back.saved[3];
  const Tensor dq = fresh_like(q), dk = fresh_like(k), dv = fresh_like(v), dg = fresh(decay.sizes(), q.options());
  with_type_of(q, [&](auto type) {
    using T = decltype(type);
    auto input = attention_input<T>(op.offset, q, k, v);
    input.decay = decay.data_ptr<double>();
    causal_attention_backward<T>(input,
                                 {head_rows<T>(back.saved[4]), head_rows<T>(back.d_out[0]), dq.data_ptr<T>(),
                                  dk.data_ptr<T>(), dv.data_ptr<T>(), dg.data_ptr<T>()},
                                 back.saved[5].data_ptr<T>());
  });
  return {dq, dk, dv, dg};
}

}  // namespace sb::cpu
