#include "kernels/cpu/gated_delta.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

struct DeltaInput {
  Tensor q, k, v, beta, g;
  double scale;
  int64_t B() const { return q.size(0); }
  int64_t T() const { return q.size(1); }
  int64_t H() const { return q.size(2); }
  int64_t n() const { return k.size(2); }
  int64_t K() const { return q.size(3); }
  int64_t V() const { return v.size(4); }
  int64_t chunks() const {
    const int64_t tokens = delta_chunk_tokens(n());
    return (T() + tokens - 1) / tokens;
  }
};

template <class T>
DeltaHead<T> delta_head(const DeltaInput& x, int64_t task, const Tensor& states) {
  const int64_t b = task / x.H(), h = task % x.H();
  DeltaHead<T> head;
  head.steps = x.T();
  head.factors = x.n();
  head.K = x.K();
  head.V = x.V();
  head.scale = x.scale;
  head.q = x.q.data_ptr<T>() + b * x.q.stride(0) + h * x.q.stride(2);
  head.k = x.k.data_ptr<T>() + b * x.k.stride(0) + h * x.k.stride(3);
  head.v = x.v.data_ptr<T>() + b * x.v.stride(0) + h * x.v.stride(3);
  head.beta = x.beta.data_ptr<T>() + b * x.beta.stride(0) + h * x.beta.stride(3);
  head.g = x.g.defined() ? x.g.data_ptr<T>() + b * x.g.stride(0) + h * x.g.stride(2) : nullptr;
  head.q_stride = x.q.stride(1);
  head.g_stride = x.g.defined() ? x.g.stride(1) : 0;
  head.k_stride = x.k.stride(1);
  head.v_stride = x.v.stride(1);
  head.beta_stride = x.beta.stride(1);
  head.k_factor = x.k.stride(2);
  head.v_factor = x.v.stride(2);
  head.beta_factor = x.beta.stride(2);
  head.states = states.data_ptr<T>() + task * states.stride(0);
  head.keep_states = states.size(1) > 1;
  return head;
}

}  // namespace

// q, k, v, beta, g?, state?
Tensors gated_delta(const op::GatedDelta& op, const Tensors& in, Tensors* saved) {
  const DeltaInput x{rows_of(in[0]), rows_of(in[1]), rows_of(in[2]), in[3], in[4], op.scale};
  const Tensor out = fresh({x.B(), x.T(), x.H(), x.V()}, x.v.options());
  // [B H, chunks + 1 (or 1), padded K, padded V]
  const Tensor states = start_states(in[5], x.B(), x.H(), x.K(), x.V(), saved ? x.chunks() + 1 : 1, x.v.options());
  with_type_of(x.v, [&](auto type) {
    using T = decltype(type);
    T* o = out.data_ptr<T>();
    const int64_t scratch = delta_scratch<T>(x.n(), x.K(), x.V());
    for_each_task<T>(x.B() * x.H(), scratch, [&](int64_t task, Arena<T>& arena) {
      T* rows = o + (task / x.H() * x.T() * x.H() + task % x.H()) * x.V();
      delta_forward(delta_head<T>(x, task, states), rows, x.H() * x.V(), arena);
    });
  });
  if (saved) *saved = {x.q, x.k, x.v, x.beta, x.g, states};
  return {out, unpadded_state(states, saved ? x.chunks() : 0, x.B(), x.H(), x.K(), x.V())};
}

Tensors gated_delta_back(const op::GatedDelta& op, const kernels::Back& back) {
  const DeltaInput x{back.saved[0], back.saved[1], back.saved[2], back.saved[3], back.saved[4], op.scale};
  const Tensor& states = back.saved[5];
  const int64_t B = x.B(), steps = x.T(), H = x.H(), n = x.n(), K = x.K(), V = x.V();
  const at::TensorOptions options = x.v.options();
  const auto make = [&](at::IntArrayRef sizes) { return fresh(sizes, options); };
  const Tensor d_out = back.d_out[0].defined() ? rows_of(back.d_out[0]) : at::zeros({B, steps, H, V}, x.v.options());
  // Rows of all factors, one behind the other at one stride
  const auto by_rows = [&](size_t input, at::IntArrayRef sizes) {
    const Tensor place = gradient_of(back, input, sizes, options);
    return n == 1 || place.stride(1) == n * place.stride(2) ? place : make(sizes);
  };
  const Tensor dq = gradient_of(back, 0, {B, steps, H, K}, options);
  const Tensor dk = by_rows(1, {B, steps, n, H, K}), dv = by_rows(2, {B, steps, n, H, V});
  const Tensor dbeta = make({B, steps, n, H}), dg = x.g.defined() ? make({B, steps, H}) : Tensor();
  const Tensor d_state = start_states(back.d_out[1], B, H, K, V, 1, x.v.options());
  with_type_of(x.v, [&](auto type) {
    using T = decltype(type);
    for_each_task<T>(B * H, delta_scratch<T>(n, K, V), [&](int64_t task, Arena<T>& arena) {
      const int64_t b = task / H, h = task % H;
      DeltaHeadGradients<T> grad;
      grad.d_out = d_out.data_ptr<T>() + b * d_out.stride(0) + h * d_out.stride(2);
      grad.d_out_stride = d_out.stride(1);
      grad.d_state = d_state.data_ptr<T>() + task * d_state.stride(0);
      grad.dq = dq.data_ptr<T>() + b * dq.stride(0) + h * dq.stride(2);
      grad.dk = dk.data_ptr<T>() + b * dk.stride(0) + h * dk.stride(3);
      grad.dv = dv.data_ptr<T>() + b * dv.stride(0) + h * dv.stride(3);
      grad.dbeta = dbeta.data_ptr<T>() + b * steps * n * H + h;
      grad.dg = dg.defined() ? dg.data_ptr<T>() + b * steps * H + h : nullptr;
      grad.dq_stride = dq.stride(1);
      grad.dk_stride = dk.stride(n == 1 ? 1 : 2);
      grad.dv_stride = dv.stride(n == 1 ? 1 : 2);
      grad.dbeta_stride = grad.dg_stride = H;
      delta_backward(delta_head<T>(x, task, states), grad, arena);
    });
  });
  return {dq, dk, dv, dbeta, dg, unpadded_state(d_state, 0, B, H, K, V)};
}

}  // namespace sb::cpu
