#include "kernels/cpu/step.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

bool supports_decayed_attention_step(const op::DecayedAttentionStep&, const Tensors& in) {
  return in[4].is_contiguous();
}
// q, k [B,G,K], v [B,H,V], g?, state [B,H,K,V]
Tensors decayed_attention_step(const op::DecayedAttentionStep& op, const Tensors& in, Tensors*) {
  const Tensor q = rows_of(in[0]), k = rows_of(in[1]), v = rows_of(in[2]);
  const Tensor g = in[3].defined() && in[3].dim() == 3 ? rows_of(in[3]) : in[3];
  const int64_t B = v.size(0), H = v.size(1), V = v.size(2), K = q.size(2), per_group = H / q.size(1);
  const Tensor out = fresh({B, H, V}, v.options());
  with_type_of(v, [&](auto type) {
    using T = decltype(type);
    for_each_task(B * H, [&](int64_t task) {
      const int64_t b = task / H, h = task % H, group = h / per_group;
      const T* decay = nullptr;
      if (g.defined()) decay = g.data_ptr<T>() + (g.dim() == 1 ? h * g.stride(0) : b * g.stride(0) + h * g.stride(1));
      attention_step<T>({K, V, static_cast<T>(op.scale), q.data_ptr<T>() + b * q.stride(0) + group * q.stride(1),
                         k.data_ptr<T>() + b * k.stride(0) + group * k.stride(1),
                         v.data_ptr<T>() + b * v.stride(0) + h * v.stride(1), decay, g.defined() && g.dim() == 3,
                         in[4].data_ptr<T>() + task * K * V, out.data_ptr<T>() + task * V});
    });
  });
  return {out};
}

bool supports_gated_delta_step(const op::GatedDeltaStep&, const Tensors& in) {
  return in[5].is_contiguous();
}
// q [B,H,K], k [B,n,H,K], v [B,n,H,V], beta [B,n,H], g?, state [B,H,K,V]
Tensors gated_delta_step(const op::GatedDeltaStep& op, const Tensors& in, Tensors*) {
  const Tensor q = rows_of(in[0]), k = rows_of(in[1]), v = rows_of(in[2]), &beta = in[3], &g = in[4];
  const int64_t B = q.size(0), H = q.size(1), K = q.size(2), V = v.size(3);
  const Tensor out = fresh({B, H, V}, v.options());
  with_type_of(v, [&](auto type) {
    using T = decltype(type);
    for_each_task<T>(B * H, Arena<T>::rounded(V), [&](int64_t task, Arena<T>& arena) {
      const int64_t b = task / H, h = task % H;
      delta_step<T>(
          {k.size(1), K, V, static_cast<T>(op.scale), q.data_ptr<T>() + b * q.stride(0) + h * q.stride(1),
           k.data_ptr<T>() + b * k.stride(0) + h * k.stride(2), v.data_ptr<T>() + b * v.stride(0) + h * v.stride(2),
           beta.data_ptr<T>() + b * beta.stride(0) + h * beta.stride(2),
           g.defined() ? g.data_ptr<T>() + b * g.stride(0) + h * g.stride(1) : nullptr, k.stride(1), v.stride(1),
           beta.stride(1), in[5].data_ptr<T>() + task * K * V, out.data_ptr<T>() + task * V, arena.take(V)});
    });
  });
  return {out};
}

}  // namespace sb::cpu
