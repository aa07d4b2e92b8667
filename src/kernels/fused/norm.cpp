// Norms over the last axis, with or without a SiLU gate before or after. One read of the inputs a pass; the factor s of
// a row is saved for the backward pass.
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/plain.h"
#include "kernels/poison.h"

namespace sb {
namespace {

using at::Tensor;
using cpu::Rows;
using simd::Vec;

enum class Norm : int64_t { rms, outer_eps, l2 };
enum class Gate : int64_t { none, after, before };

// y = s u gain with u the row: s of a row from the sum of its squares, and c in du = s t - u c, c = slope * (t . u).
template <class T>
struct RowScale {
  Norm norm;
  T eps, n;
  T scale(T squares) const {
    switch (norm) {
      case Norm::rms:
        return T(1) / std::sqrt(squares / n + eps);
      case Norm::outer_eps:
        return T(1) / (std::sqrt(squares / n) + eps);
      case Norm::l2:
        return T(1) / std::sqrt(squares + eps);
    }
    return 0;
  }
  T slope(T s) const {
    switch (norm) {
      case Norm::rms:
        return s * s * s / n;
      case Norm::outer_eps: {
        const T root = T(1) / s - eps;
        return root > 0 ? s * s / (n * root) : T(0);
      }
      case Norm::l2:
        return s * s * s;
    }
    return 0;
  }
};

template <class T, Gate G>
T norm_row(const RowScale<T>& row, int64_t n, const T* x, const T* gate, const T* gain, T* y) {
  const T squares = simd::sum_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        auto u = io.load(x + i);
        if constexpr (G == Gate::before) {
          const auto g = io.load(gate + i);
          u = u * g * simd::sigmoid(g);
          io.store(y + i, u);
        }
        return u * u;
      });
  const T s = row.scale(squares);
  simd::for_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        auto v = io.load((G == Gate::before ? y : x) + i) * io.load(gain + i) * Vec<T>(s);
        if constexpr (G == Gate::after) {
          const auto g = io.load(gate + i);
          v = v * g * simd::sigmoid(g);
        }
        io.store(y + i, v);
      });
  return s;
}

// d_gain is added to; d_gate is written unless G is none.
template <class T, Gate G>
void norm_row_back(const RowScale<T>& row, int64_t n, T s, const T* gy, const T* x, const T* gate, const T* gain, T* dx,
                   T* d_gate, T* d_gain) {
  const Vec<T> scale(s);
  const T dot = simd::sum_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        const auto g_out = io.load(gy + i);
        auto u = io.load(x + i), w = io.load(gain + i);
        auto into_gain = g_out;
        if constexpr (G != Gate::none) {
          const auto z = io.load(gate + i), sig = simd::sigmoid(z);
          if constexpr (G == Gate::after) {
            io.store(d_gate + i, g_out * w * u * scale * simd::silu_slope(z, sig));
            into_gain = into_gain * z * sig;
          } else {
            u = u * z * sig;
            io.store(d_gate + i, sig);
          }
        }
        const auto t = into_gain * w;
        io.store(d_gain + i, into_gain * u * scale + io.load(d_gain + i));
        io.store(dx + i, t);
        return t * u;
      });
  const Vec<T> c(row.slope(s) * dot);
  simd::for_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        const auto t = io.load(dx + i), raw = io.load(x + i);
        if constexpr (G == Gate::before) {
          const auto z = io.load(gate + i), sig = io.load(d_gate + i), silu = z * sig;
          const auto du = scale * t - raw * silu * c;
          io.store(dx + i, du * silu);
          io.store(d_gate + i, du * raw * simd::silu_slope(z, sig));
        } else {
          io.store(dx + i, scale * t - raw * c);
        }
      });
}

template <class Body>
void with_gate(Gate gate, const Body& body) {
  if (gate == Gate::none) body(std::integral_constant<Gate, Gate::none>{});
  if (gate == Gate::after) body(std::integral_constant<Gate, Gate::after>{});
  if (gate == Gate::before) body(std::integral_constant<Gate, Gate::before>{});
}

class RowNorm : public torch::autograd::Function<RowNorm> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x, const Tensor& gain_in,
                        const Tensor& gate, int64_t norm, int64_t gate_kind, double eps) {
    const int64_t n = x.size(-1);
    const Tensor gain = cpu::is_absent(gain_in) ? at::ones({n}, x.options()) : gain_in.contiguous();
    const Tensor y = kernels::fresh(x.sizes(), x.options());
    const Tensor scales = kernels::fresh({n == 0 ? 0 : x.numel() / n}, x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const RowScale<T> row{static_cast<Norm>(norm), static_cast<T>(eps), static_cast<T>(n)};
      const Rows<T> xs(x), gates(gate_kind == 0 ? x : gate);
      const T* w = gain.data_ptr<T>();
      T *out = y.data_ptr<T>(), *s = scales.data_ptr<T>();
      with_gate(static_cast<Gate>(gate_kind), [&](auto kind) {
        cpu::Ranges(xs.count(), n).parallel([&](int64_t, int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) s[r] = norm_row<T, kind>(row, n, xs[r], gates[r], w, out + r * n);
        });
      });
    });
    ctx->save_for_backward({x, gain_in, gate, scales});
    ctx->saved_data["norm"] = norm;
    ctx->saved_data["gate"] = gate_kind;
    ctx->saved_data["eps"] = eps;
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &gate = saved[2], &scales = saved[3];
    const Gate gate_kind = static_cast<Gate>(ctx->saved_data["gate"].toInt());
    const int64_t n = x.size(-1);
    const bool has_gain = !cpu::is_absent(saved[1]);
    const Tensor gain = has_gain ? saved[1].contiguous() : at::ones({n}, x.options());
    const Norm norm = static_cast<Norm>(ctx->saved_data["norm"].toInt());
    const double eps = ctx->saved_data["eps"].toDouble();
    const Tensor dx = kernels::fresh(x.sizes(), x.options());
    const Tensor d_gate = gate_kind == Gate::none ? Tensor() : kernels::fresh(x.sizes(), x.options());
    Tensor d_gain;
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const RowScale<T> row{norm, static_cast<T>(eps), static_cast<T>(n)};
      const Rows<T> gys(grads[0]), xs(x), gates(gate_kind == Gate::none ? x : gate);
      const cpu::Ranges ranges(xs.count(), n);
      d_gain = at::zeros({ranges.count, n}, x.options());
      T *out = dx.data_ptr<T>(), *out_gate = d_gate.defined() ? d_gate.data_ptr<T>() : nullptr;
      const T *s = scales.data_ptr<T>(), *w = gain.data_ptr<T>();
      T* parts = d_gain.data_ptr<T>();
      with_gate(gate_kind, [&](auto kind) {
        ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r)
            norm_row_back<T, kind>(row, n, s[r], gys[r], xs[r], gates[r], w, out + r * n,
                                   out_gate ? out_gate + r * n : nullptr, parts + part * n);
        });
      });
    });
    return {dx, has_gain ? cpu::sum_in_order(d_gain) : Tensor(), d_gate, Tensor(), Tensor(), Tensor()};
  }
};

void check(const char* name, const Tensor& x, const Tensor& gain, const Tensor& gate) {
  if (x.dim() == 0) throw bad_input(name, "x, expected at least one axis, got a scalar");
  if (gain.defined() && gain.sizes() != at::IntArrayRef{x.size(-1)})
    throw bad_input(name,
                    "gain, expected " + c10::str(x.sizes().slice(x.dim() - 1)) + ", got " + c10::str(gain.sizes()));
  if (gate.defined() && gate.sizes() != x.sizes())
    throw bad_input(name, "gate, expected " + c10::str(x.sizes()) + ", got " + c10::str(gate.sizes()));
}

Tensor apply(const Tensor& x, const Tensor& gain, const Tensor& gate, Norm norm, Gate kind, double eps) {
  return RowNorm::apply(x, cpu::or_empty(gain, x), cpu::or_empty(gate, x), static_cast<int64_t>(norm),
                        static_cast<int64_t>(kind), eps);
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  check("rms_norm", x, gain, {});
  return kernels::has_cpu_kernel(x) ? apply(x, gain, {}, Norm::rms, Gate::none, eps) : plain::rms_norm(x, gain, eps);
}
Tensor rms_norm_then_gate(const Tensor& x, const Tensor& gain, const Tensor& gate, double eps) {
  check("rms_norm_then_gate", x, gain, gate);
  return kernels::has_cpu_kernel(x) ? apply(x, gain, gate, Norm::rms, Gate::after, eps)
                                    : plain::rms_norm_then_gate(x, gain, gate, eps);
}
Tensor gate_then_rms_norm(const Tensor& x, const Tensor& gain, const Tensor& gate, double eps) {
  check("gate_then_rms_norm", x, gain, gate);
  return kernels::has_cpu_kernel(x) ? apply(x, gain, gate, Norm::rms, Gate::before, eps)
                                    : plain::gate_then_rms_norm(x, gain, gate, eps);
}
Tensor rms_norm_outer_eps(const Tensor& x, const Tensor& gain, double eps) {
  check("rms_norm_outer_eps", x, gain, {});
  return kernels::has_cpu_kernel(x) ? apply(x, gain, {}, Norm::outer_eps, Gate::none, eps)
                                    : plain::rms_norm_outer_eps(x, gain, eps);
}
Tensor l2_normalise(const Tensor& x) {
  check("l2_normalise", x, {}, {});
  return kernels::has_cpu_kernel(x) ? apply(x, {}, {}, Norm::l2, Gate::none, 1e-6) : plain::l2_normalise(x);
}

}  // namespace sb
