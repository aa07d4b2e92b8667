#include "kernels/step.h"

#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/poison.h"
#include "kernels/recurrence.h"
#include "kernels/shapes.h"

namespace sb {
namespace {
using at::Tensor;

Tensor as_sequence(const Tensor& x) {
  return x.defined() ? x.unsqueeze(1) : x;
}

template <class T>
Tensor attention_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale, Tensor& state) {
  const int64_t B = v.size(0), H = v.size(1), V = v.size(2), K = q.size(2), per_group = H / q.size(1);
  Tensor out = kernels::fresh({B, H, V}, v.options());
  cpu::for_each_task(B * H, [&](int64_t task) {
    const int64_t b = task / H, h = task % H, group = h / per_group;
    const T* qh = q.data_ptr<T>() + b * q.stride(0) + group * q.stride(1);
    const T* kh = k.data_ptr<T>() + b * k.stride(0) + group * k.stride(1);
    const T* vh = v.data_ptr<T>() + b * v.stride(0) + h * v.stride(1);
    const T* gh = nullptr;
    if (g.defined()) gh = g.data_ptr<T>() + (g.dim() == 1 ? h * g.stride(0) : b * g.stride(0) + h * g.stride(1));
    T* S = state.data_ptr<T>() + task * K * V;
    T* o = out.data_ptr<T>() + task * V;
    std::fill_n(o, V, T(0));
    T a = gh ? std::exp(*gh) : T(1);
    for (int64_t i = 0; i < K; ++i) {
      if (gh && g.dim() == 3) a = std::exp(gh[i]);
      const T ki = kh[i], qi = static_cast<T>(scale) * qh[i];
      for (int64_t j = 0; j < V; ++j) {
        S[i * V + j] = a * S[i * V + j] + ki * vh[j];
        o[j] += qi * S[i * V + j];
      }
    }
  });
  return out;
}

template <class T>
Tensor delta_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g, double scale,
                  Tensor& state) {
  const int64_t B = q.size(0), H = q.size(1), K = q.size(2), V = v.size(3), n = k.size(1);
  Tensor out = kernels::fresh({B, H, V}, v.options());
  cpu::for_each_task<T>(B * H, cpu::Arena<T>::rounded(V), [&](int64_t task, cpu::Arena<T>& arena) {
    const int64_t b = task / H, h = task % H;
    T* S = state.data_ptr<T>() + task * K * V;
    T* write = arena.take(V);
    T a = g.defined() ? std::exp(g.data_ptr<T>()[b * g.stride(0) + h * g.stride(1)]) : T(1);
    for (int64_t f = 0; f < n; ++f) {
      const T* kf = k.data_ptr<T>() + b * k.stride(0) + f * k.stride(1) + h * k.stride(2);
      const T* vf = v.data_ptr<T>() + b * v.stride(0) + f * v.stride(1) + h * v.stride(2);
      const T strength = beta.data_ptr<T>()[b * beta.stride(0) + f * beta.stride(1) + h * beta.stride(2)];
      std::fill_n(write, V, T(0));
      for (int64_t i = 0; i < K; ++i) {
        for (int64_t j = 0; j < V; ++j) write[j] += kf[i] * (S[i * V + j] *= a);
      }
      for (int64_t j = 0; j < V; ++j) write[j] = strength * (vf[j] - write[j]);
      for (int64_t i = 0; i < K; ++i) {
        for (int64_t j = 0; j < V; ++j) S[i * V + j] += kf[i] * write[j];
      }
      a = 1;
    }
    const T* qh = q.data_ptr<T>() + b * q.stride(0) + h * q.stride(1);
    T* o = out.data_ptr<T>() + task * V;
    std::fill_n(o, V, T(0));
    for (int64_t i = 0; i < K; ++i) {
      for (int64_t j = 0; j < V; ++j) o[j] += static_cast<T>(scale) * qh[i] * S[i * V + j];
    }
  });
  return out;
}

bool steps_on_cpu(const Tensor& v, const Tensor& state) {
  return kernels::has_cpu_kernel(v) && state.is_contiguous();
}

}  // namespace

Tensor decayed_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, double scale,
                              Tensor& state) {
  const Tensor g_sequence = g.defined() && g.dim() > 1 ? g.unsqueeze(1) : g;
  kernels::check_decayed_attention(as_sequence(q), as_sequence(k), as_sequence(v), g_sequence, state);
  const at::NoGradGuard no_grad;
  if (steps_on_cpu(v, state)) {
    const Tensor g_rows = g.defined() && g.dim() == 3 ? cpu::rows_of(g) : g;
    return AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "decayed_attention_step", [&] {
      return attention_step<scalar_t>(cpu::rows_of(q), cpu::rows_of(k), cpu::rows_of(v), g_rows, scale, state);
    });
  }
  const Scan scan = loop::decayed_attention(as_sequence(q), as_sequence(k), as_sequence(v), g_sequence, scale, state);
  state.copy_(scan.state);
  return scan.out.select(1, 0);
}

Tensor gated_delta_rule_step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& g,
                             double scale, Tensor& state) {
  kernels::check_gated_delta_rule(as_sequence(q), as_sequence(k), as_sequence(v), as_sequence(beta), as_sequence(g),
                                  state);
  const at::NoGradGuard no_grad;
  if (steps_on_cpu(v, state)) {
    return AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "gated_delta_rule_step", [&] {
      return delta_step<scalar_t>(cpu::rows_of(q), cpu::rows_of(k), cpu::rows_of(v), beta, g, scale, state);
    });
  }
  const Scan scan = loop::gated_delta_rule(as_sequence(q), as_sequence(k), as_sequence(v), as_sequence(beta),
                                           as_sequence(g), scale, state);
  state.copy_(scan.state);
  return scan.out.select(1, 0);
}

}  // namespace sb
