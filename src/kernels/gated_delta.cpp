#include "kernels/cpu/gated_delta.h"
#include "kernels/compat.h"
#include "kernels/cpu/rows.h"
#include "kernels/poison.h"
#include "kernels/recurrence.h"
#include "kernels/shapes.h"

namespace sb {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Inputs {
  Tensor q, k, v, beta, g;
  double scale;
  int64_t B() const { return q.size(0); }
  int64_t T() const { return q.size(1); }
  int64_t H() const { return q.size(2); }
  int64_t n() const { return k.size(2); }
  int64_t K() const { return q.size(3); }
  int64_t V() const { return v.size(4); }
  int64_t chunks() const {
    const int64_t tokens = cpu::delta_chunk_tokens(n());
    return (T() + tokens - 1) / tokens;
  }
};

template <class T>
cpu::DeltaHead<T> head_of(const Inputs& x, int64_t task, const Tensor& states) {
  const int64_t b = task / x.H(), h = task % x.H();
  cpu::DeltaHead<T> head;
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

// out and the states: [B H, chunks + 1 (or 1), padded K, padded V]
template <class T>
std::pair<Tensor, Tensor> forward(const Inputs& x, const Tensor& state, bool keep) {
  Tensor out = kernels::fresh({x.B(), x.T(), x.H(), x.V()}, x.v.options());
  Tensor states = kernels::start_states<T>(state, x.B(), x.H(), x.K(), x.V(), keep ? x.chunks() + 1 : 1, x.v.options());
  T* o = out.data_ptr<T>();
  const int64_t scratch = cpu::delta_scratch<T>(x.n(), x.K(), x.V());
  cpu::for_each_task<T>(x.B() * x.H(), scratch, [&](int64_t task, cpu::Arena<T>& arena) {
    T* rows = o + (task / x.H() * x.T() * x.H() + task % x.H()) * x.V();
    cpu::delta_forward(head_of<T>(x, task, states), rows, x.H() * x.V(), arena);
  });
  return {out, states};
}

template <class T>
variable_list backward(const Inputs& x, const Tensor& states, const Tensor& d_out, const Tensor& d_final) {
  const int64_t B = x.B(), steps = x.T(), H = x.H(), n = x.n(), K = x.K(), V = x.V();
  const auto options = x.v.options();
  Tensor dq = kernels::fresh({B, steps, H, K}, options), dk = kernels::fresh({B, steps, n, H, K}, options);
  Tensor dv = kernels::fresh({B, steps, n, H, V}, options), dbeta = kernels::fresh({B, steps, n, H}, options);
  Tensor dg = x.g.defined() ? kernels::fresh({B, steps, H}, options) : Tensor();
  Tensor d_state = kernels::start_states<T>(d_final, B, H, K, V, 1, options);
  cpu::for_each_task<T>(B * H, cpu::delta_scratch<T>(n, K, V), [&](int64_t task, cpu::Arena<T>& arena) {
    const int64_t b = task / H, h = task % H;
    cpu::DeltaHeadGradients<T> grad;
    grad.d_out = d_out.data_ptr<T>() + b * d_out.stride(0) + h * d_out.stride(2);
    grad.d_out_stride = d_out.stride(1);
    grad.d_state = d_state.data_ptr<T>() + task * d_state.stride(0);
    grad.dq = dq.data_ptr<T>() + (b * steps * H + h) * K;
    grad.dk = dk.data_ptr<T>() + (b * steps * n * H + h) * K;
    grad.dv = dv.data_ptr<T>() + (b * steps * n * H + h) * V;
    grad.dbeta = dbeta.data_ptr<T>() + b * steps * n * H + h;
    grad.dg = dg.defined() ? dg.data_ptr<T>() + b * steps * H + h : nullptr;
    grad.dq_stride = grad.dk_stride = H * K;
    grad.dv_stride = H * V;
    grad.dbeta_stride = grad.dg_stride = H;
    cpu::delta_backward(head_of<T>(x, task, states), grad, arena);
  });
  return {dq, dk, dv, dbeta, dg, kernels::unpadded_state(d_state, 0, B, H, K, V)};
}

class Function : public torch::autograd::Function<Function> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                               const Tensor& beta, const Tensor& maybe_g, const Tensor& maybe_state, double scale) {
    const Tensor g = compat::absent_if_empty(maybe_g), state = compat::absent_if_empty(maybe_state);
    const Inputs x{q, k, v, beta, g, scale};
    return AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "gated_delta_rule", [&]() -> variable_list {
      const auto [out, states] = sb::forward<scalar_t>(x, state, true);
      ctx->save_for_backward({q, k, v, beta, g, states});
      ctx->saved_data["scale"] = scale;
      ctx->saved_data["from_state"] = state.defined();
      ctx->set_materialize_grads(false);
      return {out, kernels::unpadded_state(states, x.chunks(), x.B(), x.H(), x.K(), x.V())};
    });
  }
  static variable_list backward(AutogradContext* ctx, variable_list d) {
    const auto saved = ctx->get_saved_variables();
    const Inputs x{saved[0], saved[1], saved[2], saved[3], saved[4], ctx->saved_data["scale"].toDouble()};
    const Tensor d_out = d[0].defined() ? cpu::rows_of(d[0]) : at::zeros({x.B(), x.T(), x.H(), x.V()}, x.v.options());
    variable_list grads = AT_DISPATCH_FLOATING_TYPES(x.v.scalar_type(), "gated_delta_rule",
                                                     [&] { return sb::backward<scalar_t>(x, saved[5], d_out, d[1]); });
    if (!ctx->saved_data["from_state"].toBool()) grads[5] = Tensor();
    grads.emplace_back();
    return grads;
  }
};

}  // namespace

Scan gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                      double scale, const Tensor& state) {
  kernels::check_gated_delta_rule(q, k, v, beta, g, state);
  if (!kernels::has_cpu_kernel(v)) return chunked::gated_delta_rule(q, k, v, beta, g, scale, state);
  const Inputs x{cpu::rows_of(q), cpu::rows_of(k), cpu::rows_of(v), beta, g, scale};
  if (compat::records_gradient(q, k, v, beta, g, state)) {
    const variable_list result =
        Function::apply(x.q, x.k, x.v, x.beta, compat::present(x.g, v), compat::present(state, v), scale);
    return {result[0], result[1]};
  }
  return AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "gated_delta_rule", [&]() -> Scan {
    const auto [out, states] = forward<scalar_t>(x, state, false);
    return {out, kernels::unpadded_state(states, 0, x.B(), x.H(), x.K(), x.V())};
  });
}

}  // namespace sb
