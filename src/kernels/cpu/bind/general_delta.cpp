#include "kernels/cpu/general_delta.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

int64_t general_delta_chunks(const Tensor& q) {
  return (q.size(1) + kGeneralDeltaChunk - 1) / kGeneralDeltaChunk;
}

// in: q, k, v, erase, write, g
template <class T>
GeneralDeltaHead<T> general_delta_head(const op::GeneralDelta& op, const Tensors& in, int64_t task,
                                       const Tensor& states) {
  const int64_t H = in[0].size(2), b = task / H, h = task % H;
  const auto start = [&](const Tensor& x) { return x.data_ptr<T>() + b * x.stride(0) + h * x.stride(2); };
  GeneralDeltaHead<T> head;
  head.steps = in[0].size(1);
  head.K = in[0].size(3);
  head.V = in[2].size(3);
  head.scale = op.scale;
  head.erase_first = op.erase_first;
  head.writes_keys = op.writes_keys;
  head.q = start(in[0]);
  head.k = start(in[1]);
  head.v = start(in[2]);
  head.erase = start(in[3]);
  head.write = start(in[4]);
  head.g = start(in[5]);
  head.q_stride = in[0].stride(1);
  head.k_stride = in[1].stride(1);
  head.v_stride = in[2].stride(1);
  head.erase_stride = in[3].stride(1);
  head.write_stride = in[4].stride(1);
  head.g_stride = in[5].stride(1);
  head.states = states.data_ptr<T>() + task * states.stride(0);
  head.keep_states = states.size(1) > 1;
  return head;
}

}  // namespace

bool supports_general_delta(const op::GeneralDelta&, const Tensors& in) {
  return in[5].defined() && in[5].dim() == 4 && in[0].size(1) > 0;
}

// q, k, v, erase, write, g, state?
Tensors general_delta(const op::GeneralDelta& op, const Tensors& given, Tensors* saved) {
  Tensors in;
  for (size_t i = 0; i < 6; ++i) in.push_back(rows_of(given[i]));
  const Tensor &q = in[0], &v = in[2];
  const int64_t B = q.size(0), steps = q.size(1), H = q.size(2), K = q.size(3), V = v.size(3);
  const Tensor out = fresh({B, steps, H, V}, v.options());
  const int64_t chunks = general_delta_chunks(q);
  const Tensor states = start_states(given[6], B, H, K, V, saved ? chunks + 1 : 1, v.options());
  with_type_of(v, [&](auto type) {
    using T = decltype(type);
    T* const o = out.data_ptr<T>();
    for_each_task<T>(B * H, general_delta_scratch<T>(K, V), [&](int64_t task, Arena<T>& arena) {
      T* rows = o + (task / H * steps * H + task % H) * V;
      general_delta_forward(general_delta_head<T>(op, in, task, states), rows, H * V, arena);
    });
  });
  if (saved) {
    *saved = in;
    saved->push_back(states);
  }
  return {out, unpadded_state(states, saved ? chunks : 0, B, H, K, V)};
}

Tensors general_delta_back(const op::GeneralDelta& op, const kernels::Back& back) {
  const Tensors in(back.saved.begin(), back.saved.begin() + 6);
  const Tensor &q = in[0], &v = in[2], &states = back.saved[6];
  const int64_t B = q.size(0), steps = q.size(1), H = q.size(2), K = q.size(3), V = v.size(3);
  const Tensor d_out = back.d_out[0].defined() ? rows_of(back.d_out[0]) : at::zeros({B, steps, H, V}, v.options());
  const Tensor d_state = start_states(back.d_out[1], B, H, K, V, 1, v.options());
  Tensors grads;
  for (size_t i = 0; i < 6; ++i)
    grads.push_back(i == 4 && op.writes_keys ? Tensor() : gradient_of(back, i, in[i].sizes(), v.options()));
  with_type_of(v, [&](auto type) {
    using T = decltype(type);
    for_each_task<T>(B * H, general_delta_scratch<T>(K, V), [&](int64_t task, Arena<T>& arena) {
      const int64_t b = task / H, h = task % H;
      const auto start = [&](const Tensor& x) { return x.data_ptr<T>() + b * x.stride(0) + h * x.stride(2); };
      GeneralDeltaHeadGradients<T> grad;
      grad.d_out = start(d_out);
      grad.d_out_stride = d_out.stride(1);
      grad.d_state = d_state.data_ptr<T>() + task * d_state.stride(0);
      grad.dq = start(grads[0]);
      grad.dk = start(grads[1]);
      grad.dv = start(grads[2]);
      grad.d_erase = start(grads[3]);
      grad.d_write = op.writes_keys ? nullptr : start(grads[4]);
      grad.dg = start(grads[5]);
      grad.dq_stride = grads[0].stride(1);
      grad.dk_stride = grads[1].stride(1);
      grad.dv_stride = grads[2].stride(1);
      grad.d_erase_stride = grads[3].stride(1);
      grad.d_write_stride = op.writes_keys ? 0 : grads[4].stride(1);
      grad.dg_stride = grads[5].stride(1);
      general_delta_backward(general_delta_head<T>(op, in, task, states), grad, arena);
    });
  });
  grads.push_back(unpadded_state(d_state, 0, B, H, K, V));
  return grads;
}

}  // namespace sb::cpu
