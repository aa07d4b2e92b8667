#include "kernels/cpu/decayed_attention.h"
#include "kernels/check.h"
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

struct Sizes {
  int64_t B, T, H, G, K, V;
  cpu::Decay decay;
  Sizes(const Tensor& q, const Tensor& v, const Tensor& g)
      : B(v.size(0)),
        T(v.size(1)),
        H(v.size(2)),
        G(q.size(2)),
        K(q.size(3)),
        V(v.size(3)),
        decay(!g.defined()   ? cpu::Decay::unit
              : g.dim() == 1 ? cpu::Decay::fixed
              : g.dim() == 3 ? cpu::Decay::scalar
                             : cpu::Decay::vector) {}
  int64_t chunks() const { return (T + cpu::kChunk - 1) / cpu::kChunk; }
  template <class T_>
  int64_t scratch() const {
    return decay == cpu::Decay::vector ? cpu::vector_attention_scratch<T_>(K, V)
                                       : cpu::scalar_attention_scratch<T_>(K, V);
  }
};

template <class T>
cpu::AttentionHead<T> head_of(const Sizes& z, int64_t task, const Tensor& q, const Tensor& k, const Tensor& v,
                              const Tensor& g, double scale, const Tensor& states) {
  const int64_t b = task / z.H, h = task % z.H, group = h / (z.H / z.G);
  cpu::AttentionHead<T> head;
  head.steps = z.T;
  head.K = z.K;
  head.V = z.V;
  head.scale = scale;
  head.q = q.data_ptr<T>() + b * q.stride(0) + group * q.stride(2);
  head.k = k.data_ptr<T>() + b * k.stride(0) + group * k.stride(2);
  head.v = v.data_ptr<T>() + b * v.stride(0) + h * v.stride(2);
  head.q_stride = q.stride(1);
  head.k_stride = k.stride(1);
  head.v_stride = v.stride(1);
  head.g = nullptr;
  head.g_stride = 0;
  if (z.decay == cpu::Decay::fixed) {
    head.g = g.data_ptr<T>() + h * g.stride(0);
  } else if (z.decay != cpu::Decay::unit) {
    head.g = g.data_ptr<T>() + b * g.stride(0) + h * g.stride(2);
    head.g_stride = g.stride(1);
  }
  head.states = states.data_ptr<T>() + task * states.stride(0);
  head.keep_states = states.size(1) > 1;
  return head;
}

// out and the states: [B H, chunks + 1 (or 1), padded K, padded V]
template <class T>
std::pair<Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                                  const Tensor& state, bool keep) {
  const Sizes z(q, v, g);
  Tensor out = kernels::fresh({z.B, z.T, z.H, z.V}, v.options());
  Tensor states = kernels::start_states<T>(state, z.B, z.H, z.K, z.V, keep ? z.chunks() + 1 : 1, v.options());
  T* o = out.data_ptr<T>();
  cpu::for_each_task<T>(z.B * z.H, z.scratch<T>(), [&](int64_t task, cpu::Arena<T>& arena) {
    const auto head = head_of<T>(z, task, q, k, v, g, scale, states);
    T* rows = o + task / z.H * z.T * z.H * z.V + task % z.H * z.V;
    if (z.decay == cpu::Decay::vector) {
      cpu::vector_attention_forward(head, rows, z.H * z.V, arena);
    } else {
      cpu::scalar_attention_forward(z.decay, head, rows, z.H * z.V, arena);
    }
  });
  return {out, states};
}

// Sum over the heads of a group, in their order: [B,T,H,K] to [B,T,G,K].
template <class T>
Tensor sum_groups(const Tensor& x, int64_t groups) {
  if (x.size(2) == groups) return x;
  const int64_t per = x.size(2) / groups, K = x.size(3);
  Tensor sum = kernels::fresh({x.size(0), x.size(1), groups, K}, x.options());
  const T* src = x.data_ptr<T>();
  T* dst = sum.data_ptr<T>();
  at::parallel_for(0, x.size(0) * x.size(1) * groups, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(src + i * per * K, K, dst + i * K);
      for (int64_t h = 1; h < per; ++h) {
        for (int64_t j = 0; j < K; ++j) dst[i * K + j] += src[(i * per + h) * K + j];
      }
    }
  });
  return sum;
}

template <class T>
variable_list backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                       const Tensor& states, const Tensor& d_out, const Tensor& d_final) {
  const Sizes z(q, v, g);
  Tensor dq = kernels::fresh({z.B, z.T, z.H, z.K}, v.options()), dk = kernels::fresh({z.B, z.T, z.H, z.K}, v.options());
  Tensor dv = kernels::fresh({z.B, z.T, z.H, z.V}, v.options());
  Tensor d_state = kernels::start_states<T>(d_final, z.B, z.H, z.K, z.V, 1, v.options());
  Tensor dg;
  if (z.decay == cpu::Decay::fixed) dg = kernels::fresh({z.B, z.H, z.T}, v.options());
  if (z.decay == cpu::Decay::scalar) dg = kernels::fresh({z.B, z.T, z.H}, v.options());
  if (z.decay == cpu::Decay::vector) dg = kernels::fresh({z.B, z.T, z.H, z.K}, v.options());
  cpu::for_each_task<T>(z.B * z.H, z.scratch<T>(), [&](int64_t task, cpu::Arena<T>& arena) {
    const int64_t b = task / z.H, h = task % z.H;
    const auto head = head_of<T>(z, task, q, k, v, g, scale, states);
    cpu::AttentionHeadGradients<T> grad;
    grad.d_out = d_out.data_ptr<T>() + b * d_out.stride(0) + h * d_out.stride(2);
    grad.d_out_stride = d_out.stride(1);
    grad.d_state = d_state.data_ptr<T>() + task * d_state.stride(0);
    grad.dq = dq.data_ptr<T>() + (b * z.T * z.H + h) * z.K;
    grad.dk = dk.data_ptr<T>() + (b * z.T * z.H + h) * z.K;
    grad.dv = dv.data_ptr<T>() + (b * z.T * z.H + h) * z.V;
    grad.dq_stride = grad.dk_stride = z.H * z.K;
    grad.dv_stride = z.H * z.V;
    grad.dg = nullptr;
    grad.dg_stride = 0;
    if (z.decay == cpu::Decay::fixed) {
      grad.dg = dg.data_ptr<T>() + task * z.T;
      grad.dg_stride = 1;
    } else if (dg.defined()) {
      grad.dg = dg.data_ptr<T>() + b * dg.stride(0) + h * dg.stride(2);
      grad.dg_stride = dg.stride(1);
    }
    if (z.decay == cpu::Decay::vector) {
      cpu::vector_attention_backward(head, grad, arena);
    } else {
      cpu::scalar_attention_backward(z.decay, head, grad, arena);
    }
  });
  if (z.decay == cpu::Decay::fixed) {
    Tensor sum = at::zeros({z.H}, v.options());
    const T* x = dg.data_ptr<T>();
    T* s = sum.data_ptr<T>();
    for (int64_t b = 0; b < z.B; ++b) {
      for (int64_t i = 0; i < z.H * z.T; ++i) s[i / z.T] += x[b * z.H * z.T + i];
    }
    dg = sum;
  }
  return {sum_groups<T>(dq, z.G), sum_groups<T>(dk, z.G), dv, dg,
          kernels::unpadded_state(d_state, 0, z.B, z.H, z.K, z.V)};
}

class Function : public torch::autograd::Function<Function> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                               const Tensor& maybe_g, const Tensor& maybe_state, double scale) {
    const Tensor g = compat::absent_if_empty(maybe_g), state = compat::absent_if_empty(maybe_state);
    const Sizes z(q, v, g);
    return AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "decayed_attention", [&]() -> variable_list {
      const auto [out, states] = sb::forward<scalar_t>(q, k, v, g, scale, state, true);
      ctx->save_for_backward({q, k, v, g, states});
      ctx->saved_data["scale"] = scale;
      ctx->saved_data["from_state"] = state.defined();
      ctx->set_materialize_grads(false);
      return {out, kernels::unpadded_state(states, z.chunks(), z.B, z.H, z.K, z.V)};
    });
  }
  static variable_list backward(AutogradContext* ctx, variable_list d) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &g = saved[3], &states = saved[4];
    const Sizes z(q, v, g);
    const Tensor d_out = d[0].defined() ? cpu::rows_of(d[0]) : at::zeros({z.B, z.T, z.H, z.V}, v.options());
    variable_list grads = AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "decayed_attention", [&] {
      return sb::backward<scalar_t>(q, k, v, g, ctx->saved_data["scale"].toDouble(), states, d_out, d[1]);
    });
    if (!ctx->saved_data["from_state"].toBool()) grads[4] = Tensor();
    grads.emplace_back();
    return grads;
  }
};

}  // namespace

Scan decayed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                       const Tensor& state) {
  kernels::check_decayed_attention(q, k, v, g, state);
  if (!kernels::has_cpu_kernel(v)) return chunked::decayed_attention(q, k, v, g, scale, state);
  const Tensor q_rows = cpu::rows_of(q), k_rows = cpu::rows_of(k), v_rows = cpu::rows_of(v);
  const Tensor g_rows = g.defined() && g.dim() == 4 ? cpu::rows_of(g) : g;
  if (compat::records_gradient(q, k, v, g, state)) {
    const variable_list result =
        Function::apply(q_rows, k_rows, v_rows, compat::present(g_rows, v), compat::present(state, v), scale);
    return {result[0], result[1]};
  }
  const Sizes z(q, v, g);
  return AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "decayed_attention", [&]() -> Scan {
    const auto [out, states] = forward<scalar_t>(q_rows, k_rows, v_rows, g_rows, scale, state, false);
    return {out, kernels::unpadded_state(states, 0, z.B, z.H, z.K, z.V)};
  });
}

}  // namespace sb
