// Elementwise functions of one or two tensors, read and written once.
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
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// body(row) for the rows of a range, in parallel
template <class Body>
void for_rows(int64_t rows, int64_t width, const Body& body) {
  cpu::Ranges(rows, width).split([&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

class GateSilu : public torch::autograd::Function<GateSilu> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& y, const Tensor& z) {
    const Tensor out = kernels::fresh(y.sizes(), y.options());
    cpu::with_type_of(y, [&](auto type) {
      using T = decltype(type);
      const Rows<T> ys(y), zs(z);
      const int64_t n = ys.width();
      T* to = out.data_ptr<T>();
      for_rows(ys.count(), n, [&](int64_t r) {
        const T *a = ys[r], *b = zs[r];
        simd::for_packs<T, simd::kWide>(
            n, [=](int64_t i, auto io) __attribute__((always_inline)) {
              const auto g = io.load(b + i);
              io.store(to + r * n + i, io.load(a + i) * g * simd::sigmoid(g));
            });
      });
    });
    ctx->save_for_backward({y, z});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &y = saved[0], &z = saved[1];
    const Tensor dy = kernels::fresh(y.sizes(), y.options()), dz = kernels::fresh(y.sizes(), y.options());
    cpu::with_type_of(y, [&](auto type) {
      using T = decltype(type);
      const Rows<T> gs(grads[0]), ys(y), zs(z);
      const int64_t n = ys.width();
      T *to_y = dy.data_ptr<T>(), *to_z = dz.data_ptr<T>();
      for_rows(ys.count(), n, [&](int64_t r) {
        const T *g = gs[r], *a = ys[r], *b = zs[r];
        simd::for_packs<T, simd::kWide>(
            n, [=](int64_t i, auto io) __attribute__((always_inline)) {
              const auto go = io.load(g + i), gate = io.load(b + i), sig = simd::sigmoid(gate);
              io.store(to_y + r * n + i, go * gate * sig);
              io.store(to_z + r * n + i, go * io.load(a + i) * simd::silu_slope(gate, sig));
            });
      });
    });
    return {dy, dz};
  }
};

class GateSwish : public torch::autograd::Function<GateSwish> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& ab, const Tensor& beta) {
    std::vector<int64_t> sizes = ab.sizes().vec();
    sizes.back() /= 2;
    const Tensor out = kernels::fresh(sizes, ab.options());
    cpu::with_type_of(ab, [&](auto type) {
      using T = decltype(type);
      const Rows<T> rows(ab);
      const int64_t n = rows.width() / 2;
      const Vec<T> slope(*beta.data_ptr<T>());
      T* to = out.data_ptr<T>();
      for_rows(rows.count(), n, [&](int64_t r) {
        const T *a = rows[r], *b = a + n;
        simd::for_packs<T, simd::kWide>(
            n, [=](int64_t i, auto io) __attribute__((always_inline)) {
              const auto v = io.load(a + i);
              io.store(to + r * n + i, v * simd::sigmoid(slope * v) * io.load(b + i));
            });
      });
    });
    ctx->save_for_backward({ab, beta});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &ab = saved[0], &beta = saved[1];
    const Tensor d_ab = kernels::fresh(ab.sizes(), ab.options());
    Tensor d_beta;
    cpu::with_type_of(ab, [&](auto type) {
      using T = decltype(type);
      const Rows<T> gs(grads[0]), rows(ab);
      const int64_t n = rows.width() / 2;
      const Vec<T> slope(*beta.data_ptr<T>());
      const cpu::Ranges ranges(rows.count(), n);
      const Tensor parts = at::zeros({ranges.count}, at::kDouble);
      double* part_sum = parts.data_ptr<double>();
      T* to = d_ab.data_ptr<T>();
      ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T *g = gs[r], *a = rows[r], *b = a + n;
          T *da = to + 2 * r * n, *db = da + n;
          part_sum[part] += simd::sum_packs<T>(
              n, [=](int64_t i, auto io) __attribute__((always_inline)) {
                const auto go = io.load(g + i), v = io.load(a + i), z = slope * v, sig = simd::sigmoid(z);
                const auto into = go * io.load(b + i);
                io.store(db + i, go * v * sig);
                io.store(da + i, into * simd::silu_slope(z, sig));
                return into * v * v * sig * (Vec<T>(T(1)) - sig);
              });
        }
      });
      d_beta = cpu::sum_in_order(parts).to(beta.options()).reshape(beta.sizes());
    });
    return {d_ab, d_beta};
  }
};

class SoftplusBias : public torch::autograd::Function<SoftplusBias> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& bias_in) {
    const Tensor bias = bias_in.contiguous(), out = kernels::fresh(x.sizes(), x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Rows<T> xs(x);
      const int64_t n = xs.width();
      const T* c = bias.data_ptr<T>();
      T* to = out.data_ptr<T>();
      for_rows(xs.count(), n, [&](int64_t r) {
        const T* a = xs[r];
        simd::for_packs<T, simd::kWide>(
            n, [=](int64_t i, auto io) __attribute__((always_inline)) {
              io.store(to + r * n + i, simd::softplus(io.load(a + i) + io.load(c + i)));
            });
      });
    });
    ctx->save_for_backward({x, bias});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &bias = saved[1];
    const Tensor dx = kernels::fresh(x.sizes(), x.options());
    Tensor d_bias;
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Rows<T> gs(grads[0]), xs(x);
      const int64_t n = xs.width();
      const cpu::Ranges ranges(xs.count(), n);
      const cpu::PartSums<T> parts(ranges.count, n);
      const T* c = bias.data_ptr<T>();
      T* const to = dx.data_ptr<T>();
      ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
        T* const sum = parts.start(part);
        for (int64_t r = begin; r < end; ++r) {
          const T *g = gs[r], *a = xs[r];
          simd::for_packs<T, simd::kWide>(
              n, [=](int64_t i, auto io) __attribute__((always_inline)) {
                const auto v = io.load(a + i) + io.load(c + i), go = io.load(g + i);
                auto d = go * simd::sigmoid(v);
                for (size_t j = 0; j < std::size(d.v); ++j)
                  d.v[j] = xsimd::select(v.v[j] > Vec<T>(T(20)), go.v[j], d.v[j]);
                io.store(to + r * n + i, d);
                io.store(sum + i, io.load(sum + i) + d);
              });
        }
      });
      d_bias = parts.total(x.options());
    });
    return {dx, d_bias};
  }
};

class LogSigmoid : public torch::autograd::Function<LogSigmoid> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double scale) {
    const Tensor out = kernels::fresh(x.sizes(), x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Rows<T> xs(x);
      const int64_t n = xs.width();
      const Vec<T> factor(static_cast<T>(scale));
      T* to = out.data_ptr<T>();
      for_rows(xs.count(), n, [&](int64_t r) {
        const T* a = xs[r];
        simd::for_packs<T, simd::kWide>(
            n, [=](int64_t i, auto io) __attribute__((always_inline)) {
              const auto v = io.load(a + i);
              auto low = v;
              for (auto& part : low.v) part = xsimd::min(part, Vec<T>(T(0)));
              io.store(to + r * n + i, factor * (low - simd::log1p_exp_of_minus_abs(v)));
            });
      });
    });
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    const Tensor dx = kernels::fresh(x.sizes(), x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Rows<T> gs(grads[0]), xs(x);
      const int64_t n = xs.width();
      const Vec<T> factor(static_cast<T>(ctx->saved_data["scale"].toDouble()));
      T* to = dx.data_ptr<T>();
      for_rows(xs.count(), n, [&](int64_t r) {
        const T *g = gs[r], *a = xs[r];
        simd::for_packs<T, simd::kWide>(
            n, [=](int64_t i, auto io) __attribute__((always_inline)) {
              io.store(to + r * n + i, factor * io.load(g + i) * simd::sigmoid(-io.load(a + i)));
            });
      });
    });
    return {dx, Tensor()};
  }
};

}  // namespace

Tensor gate_silu(const Tensor& y, const Tensor& z) {
  if (y.sizes() != z.sizes())
    throw bad_input("gate_silu", "gate, expected " + c10::str(y.sizes()) + ", got " + c10::str(z.sizes()));
  return kernels::has_cpu_kernel(y) ? GateSilu::apply(y, z) : plain::gate_silu(y, z);
}

Tensor gate_swish(const Tensor& ab, const Tensor& beta) {
  if (ab.dim() == 0 || ab.size(-1) % 2 != 0)
    throw bad_input("gate_swish", "ab, expected an even last axis, got " + c10::str(ab.sizes()));
  if (beta.numel() != 1) throw bad_input("gate_swish", "beta, expected one element, got " + c10::str(beta.sizes()));
  return kernels::has_cpu_kernel(ab) ? GateSwish::apply(ab, beta) : plain::gate_swish(ab, beta);
}

Tensor softplus_bias(const Tensor& x, const Tensor& bias) {
  if (x.dim() == 0 || bias.sizes() != at::IntArrayRef{x.size(-1)})
    throw bad_input("softplus_bias",
                    "bias, expected the last axis of " + c10::str(x.sizes()) + ", got " + c10::str(bias.sizes()));
  return kernels::has_cpu_kernel(x) ? SoftplusBias::apply(x, bias) : plain::softplus_bias(x, bias);
}

Tensor softplus_decay(const Tensor& x, const Tensor& bias, const Tensor& A_log) {
  return softplus_bias(x, bias) * -A_log.exp();
}

Tensor log_sigmoid(const Tensor& x, double scale) {
  return kernels::has_cpu_kernel(x) ? LogSigmoid::apply(x, scale) : plain::log_sigmoid(x, scale);
}

}  // namespace sb
