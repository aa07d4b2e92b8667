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
template <Gate G>
inline constexpr int abreast = G == Gate::none ? 4 : simd::kWide;  // vectors that go through a formula together

// y = s u gain with u the row: s of a row from the sum of its squares, and c in du = s t - u c, c = slope * (t . u).
template <class T>
struct RowScale {
  Norm norm;
  T eps, n;
  // Sums of squares become scales, in place.
  void scale(int64_t rows, T* s) const {
    const auto each = [&](auto norm_of) {
      simd::for_vectors<T>(rows, [=](int64_t i, auto io) { io.store(s + i, Vec<T>(T(1)) / norm_of(io.load(s + i))); });
    };
    const Vec<T> add(eps), count(n);
    if (norm == Norm::rms) each([&](const Vec<T>& squares) { return xsimd::sqrt(squares / count + add); });
    if (norm == Norm::outer_eps) each([&](const Vec<T>& squares) { return xsimd::sqrt(squares / count) + add; });
    if (norm == Norm::l2) each([&](const Vec<T>& squares) { return xsimd::sqrt(squares + add); });
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

// What the second walk of a row starts from: the sum of its squares, gated first where the gate comes first (kept in
// y).
template <class T, Gate G>
inline __attribute__((always_inline)) T sum_of_squares(int64_t n, const T* x, const T* gate, T* y) {
  return simd::sum_packs<T, abreast<G>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        auto u = io.load(x + i);
        if constexpr (G == Gate::before) {
          const auto g = io.load(gate + i);
          u = u * g * simd::sigmoid(g);
          io.store(y + i, u);
        }
        return u * u;
      });
}

template <class T, Gate G, bool has_gain>
inline __attribute__((always_inline)) void scale_row(int64_t n, T s, const T* x, const T* gate, const T* gain, T* y) {
  simd::for_packs<T, abreast<G>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        auto v = io.load((G == Gate::before ? y : x) + i) * Vec<T>(s);
        if constexpr (has_gain) v = v * io.load(gain + i);
        if constexpr (G == Gate::after) {
          const auto g = io.load(gate + i);
          v = v * g * simd::sigmoid(g);
        }
        io.store(y + i, v);
      });
}

template <class T>
struct Forward {
  RowScale<T> row;
  int64_t n;
  Rows<T> x, gate;
  const T* gain;
  T *y, *scales;

  template <Gate G, bool has_gain>
  void rows(int64_t begin, int64_t end) const {
    const auto xs = x.starts(), gates = gate.starts();
    cpu::for_row_blocks(
        begin, end, cpu::rows_of_block(4096, n),
        [ =, row = row, n = n, gain = gain, y = y, s = scales ](int64_t first, int64_t last)
            __attribute__((always_inline)) {
              for (int64_t r = first; r < last; ++r) s[r] = sum_of_squares<T, G>(n, xs[r], gates[r], y + r * n);
              row.scale(last - first, s + first);
              for (int64_t r = first; r < last; ++r)
                scale_row<T, G, has_gain>(n, s[r], xs[r], gates[r], gain, y + r * n);
            });
  }
};

// First walk of a row backwards: t . u, and d_gain, which is added to. Keeps for the second one gy silu(gate) in dx
// (gate after) or the sigmoid in d_gate (gate before).
template <class T, Gate G, bool has_gain>
inline __attribute__((always_inline)) T dot_of_row(int64_t n, T s, const T* gy, const T* x, const T* gate,
                                                   const T* gain, T* dx, T* d_gate, T* d_gain) {
  return simd::sum_packs<T, abreast<G>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        auto t = io.load(gy + i), u = io.load(x + i);
        if constexpr (G == Gate::after) {
          const auto z = io.load(gate + i), sig = simd::sigmoid(z);
          io.store(d_gate + i, t * u * Vec<T>(s) * io.load(gain + i) * simd::silu_slope(z, sig));
          t = t * z * sig;
          io.store(dx + i, t);
        }
        if constexpr (G == Gate::before) {
          const auto z = io.load(gate + i), sig = simd::sigmoid(z);
          u = u * z * sig;
          io.store(d_gate + i, sig);
        }
        const auto product = t * u;
        if constexpr (!has_gain) return product;
        io.store(d_gain + i, io.load(d_gain + i) + product * Vec<T>(s));
        return product * io.load(gain + i);
      });
}

// t: gy, or what the first walk kept of it.
template <class T, Gate G, bool has_gain>
inline __attribute__((always_inline)) void back_row(int64_t n, T s, T c, const T* t, const T* x, const T* gate,
                                                    const T* gain, T* dx, T* d_gate) {
  simd::for_packs<T, G == Gate::after ? simd::kWide : 4>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto raw = io.load(x + i);
        auto du = io.load(t + i) * Vec<T>(s);
        if constexpr (has_gain) du = du * io.load(gain + i);
        if constexpr (G == Gate::before) {
          const auto z = io.load(gate + i), sig = io.load(d_gate + i), silu = z * sig;
          du = du - raw * silu * Vec<T>(c);
          io.store(dx + i, du * silu);
          io.store(d_gate + i, du * raw * simd::silu_slope(z, sig));
        } else {
          io.store(dx + i, du - raw * Vec<T>(c));
        }
      });
}

template <class T>
struct Backward {
  RowScale<T> row;
  int64_t n;
  Rows<T> gy, x, gate;
  const T *gain, *scales;
  T *dx, *d_gate;

  template <Gate G, bool has_gain>
  void rows(int64_t begin, int64_t end, T* d_gain) const {
    const auto gs = gy.starts(), xs = x.starts(), gates = gate.starts();
    cpu::for_row_blocks(
        begin, end, cpu::rows_of_block(2048, n),
        [ =, row = row, n = n, gain = gain, s = scales, dx = dx, d_gate = d_gate ](int64_t first, int64_t last)
            __attribute__((always_inline)) {
              T c[cpu::kBlockRows];
              for (int64_t r = first; r < last; ++r)
                c[r - first] = row.slope(s[r]) * dot_of_row<T, G, has_gain>(n, s[r], gs[r], xs[r], gates[r], gain,
                                                                            dx + r * n, d_gate + r * n, d_gain);
              for (int64_t r = first; r < last; ++r)
                back_row<T, G, has_gain>(n, s[r], c[r - first], G == Gate::after ? dx + r * n : gs[r], xs[r], gates[r],
                                         gain, dx + r * n, d_gate + r * n);
            });
  }
};

// body(gate, whether there is a gain); a gated norm always has one.
template <class Body>
void with_kind(Gate gate, bool has_gain, const Body& body) {
  if (gate == Gate::none && has_gain) body(std::integral_constant<Gate, Gate::none>{}, std::true_type{});
  if (gate == Gate::none && !has_gain) body(std::integral_constant<Gate, Gate::none>{}, std::false_type{});
  if (gate == Gate::after) body(std::integral_constant<Gate, Gate::after>{}, std::true_type{});
  if (gate == Gate::before) body(std::integral_constant<Gate, Gate::before>{}, std::true_type{});
}
// The gain as the kernels read it: absent stays absent only where no gate asks for one.
Tensor gain_for(const Tensor& gain, Gate gate, const Tensor& x) {
  if (!cpu::is_absent(gain)) return gain.contiguous();
  return gate == Gate::none ? gain : at::ones({x.size(-1)}, x.options());
}

class RowNorm : public torch::autograd::Function<RowNorm> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x, const Tensor& gain_in,
                        const Tensor& gate, int64_t norm, int64_t gate_kind, double eps) {
    const int64_t n = x.size(-1);
    const Gate kind = static_cast<Gate>(gate_kind);
    const Tensor gain = gain_for(gain_in, kind, x);
    const Tensor y = kernels::fresh(x.sizes(), x.options());
    const Tensor scales = kernels::fresh({n == 0 ? 0 : x.numel() / n}, x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Forward<T> pass{{static_cast<Norm>(norm), static_cast<T>(eps), static_cast<T>(n)},
                            n,
                            Rows<T>(x),
                            Rows<T>(kind == Gate::none ? x : gate),
                            gain.data_ptr<T>(),
                            y.data_ptr<T>(),
                            scales.data_ptr<T>()};
      with_kind(kind, !cpu::is_absent(gain), [&](auto G, auto has_gain) {
        cpu::Ranges(pass.x.count(), n).split([&](int64_t begin, int64_t end) {
          pass.template rows<G, has_gain>(begin, end);
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
    const Gate kind = static_cast<Gate>(ctx->saved_data["gate"].toInt());
    const int64_t n = x.size(-1);
    const Tensor gain = gain_for(saved[1], kind, x);
    const Tensor dx = kernels::fresh(x.sizes(), x.options());
    const Tensor d_gate = kind == Gate::none ? Tensor() : kernels::fresh(x.sizes(), x.options());
    Tensor d_gain;
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Backward<T> pass{{static_cast<Norm>(ctx->saved_data["norm"].toInt()),
                              static_cast<T>(ctx->saved_data["eps"].toDouble()), static_cast<T>(n)},
                             n,
                             Rows<T>(grads[0]),
                             Rows<T>(x),
                             Rows<T>(kind == Gate::none ? x : gate),
                             gain.data_ptr<T>(),
                             scales.data_ptr<T>(),
                             dx.data_ptr<T>(),
                             (d_gate.defined() ? d_gate : dx).data_ptr<T>()};
      const cpu::Ranges ranges(pass.x.count(), n);
      const cpu::PartSums<T> parts(ranges.count, gain.size(0));
      with_kind(kind, !cpu::is_absent(gain), [&](auto G, auto has_gain) {
        ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
          pass.template rows<G, has_gain>(begin, end, parts.start(part));
        });
      });
      if (!cpu::is_absent(saved[1])) d_gain = parts.total(x.options());
    });
    return {dx, d_gain, d_gate, Tensor(), Tensor(), Tensor()};
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
