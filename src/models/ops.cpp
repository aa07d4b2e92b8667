#include "models/ops.h"

#include "base/torch_pch.h"
#include "kernels/compat.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/cpu/vec_math.h"

namespace sb {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Sum over the first axis of a contiguous [rows, columns]: threads own columns, blocks of rows bound the rounding.
template <class T>
void sum_rows(const T* x, int64_t rows, int64_t columns, T* out) {
  constexpr int64_t block = 64;
  at::parallel_for(0, columns, std::max<int64_t>(16, 65536 / std::max<int64_t>(1, rows)),
                   [&](int64_t begin, int64_t end) {
                     std::fill(out + begin, out + end, T(0));
                     std::vector<T> part(static_cast<size_t>(end - begin));
                     for (int64_t first = 0; first < rows; first += block) {
                       std::fill(part.begin(), part.end(), T(0));
                       for (int64_t r = first; r < std::min(rows, first + block); ++r)
                         for (int64_t c = begin; c < end; ++c)
                           part[static_cast<size_t>(c - begin)] += x[r * columns + c];
                       for (int64_t c = begin; c < end; ++c) out[c] += part[static_cast<size_t>(c - begin)];
                     }
                   });
}

}  // namespace

at::Tensor column_sums(const at::Tensor& x) {
  if (!cpu::has_kernel(x)) return x.sum(0);
  const auto rows = x.contiguous();
  auto out = at::empty({x.size(1)}, x.options());
  cpu::with_type_of(x, [&](auto type) {
    using T = decltype(type);
    sum_rows(rows.data_ptr<T>(), rows.size(0), rows.size(1), out.data_ptr<T>());
  });
  return out;
}

namespace {

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["input"] = x.requires_grad();
    ctx->saved_data["bias"] = bias.defined();
    auto shape = x.sizes().vec();
    shape.back() = weight.size(0);
    const auto rows = x.reshape({-1, x.size(-1)});
    return (bias.defined() ? at::addmm(bias, rows, weight.t()) : at::mm(rows, weight.t())).view(shape);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const auto grad = grads[0].reshape({-1, grads[0].size(-1)});
    const auto rows = saved[0].reshape({-1, saved[0].size(-1)});
    at::Tensor d_x, d_bias;
    if (ctx->saved_data["input"].toBool()) d_x = at::mm(grad, saved[1]).view(saved[0].sizes());
    if (ctx->saved_data["bias"].toBool()) d_bias = column_sums(grad);
    return {d_x, at::mm(grad.t(), rows), d_bias};
  }
};

template <class T>
void gated_product_forward(const cpu::Rows<T>& x, T beta, T* out) {
  const int64_t n = x.width() / 2;
  at::parallel_for(0, x.count(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t r = begin; r < end; ++r) {
                       const T* a = x[r];
                       simd::for_vectors<T>(n, [&](int64_t i, const auto& io) {
                         const auto av = io.load(a + i);
                         io.store(out + r * n + i, av * simd::sigmoid<T>(av * beta) * io.load(a + n + i));
                       });
                     }
                   });
}

// d_x as x; d_beta: one partial sum a row
template <class T>
void gated_product_backward(const cpu::Rows<T>& x, T beta, const cpu::Rows<T>& d_out, T* d_x, T* d_beta) {
  using Vec = simd::Vec<T>;
  const int64_t n = x.width() / 2;
  at::parallel_for(0, x.count(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t r = begin; r < end; ++r) {
                       const T* a = x[r];
                       T* da = d_x + r * 2 * n;
                       Vec sum(T(0));
                       simd::for_vectors<T>(n, [&](int64_t i, const auto& io) {
                         const Vec av = io.load(a + i), bv = io.load(a + n + i), grad = io.load(d_out[r] + i);
                         const Vec s = simd::sigmoid<T>(av * beta);
                         const Vec slope = s * (Vec(T(1)) - s);
                         io.store(da + i, grad * bv * (s + av * Vec(beta) * slope));
                         io.store(da + n + i, grad * av * s);
                         sum += grad * bv * av * av * slope;
                       });
                       d_beta[r] = simd::horizontal_sum<T>(sum);
                     }
                   });
}

struct GatedProductFunction : torch::autograd::Function<GatedProductFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& beta) {
    ctx->save_for_backward({x, beta});
    auto shape = x.sizes().vec();
    shape.back() /= 2;
    auto out = at::empty(shape, x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      gated_product_forward<T>(cpu::Rows<T>(x), beta.item<T>(), out.template data_ptr<T>());
    });
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const auto &x = saved[0], &beta = saved[1];
    auto d_x = at::empty(x.sizes(), x.options());
    auto partial = at::empty({x.numel() / x.size(-1), 1}, x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      gated_product_backward<T>(cpu::Rows<T>(x), beta.item<T>(), cpu::Rows<T>(grads[0]), d_x.template data_ptr<T>(),
                                partial.template data_ptr<T>());
    });
    return {d_x, column_sums(partial)};
  }
};

}  // namespace

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return LinearFunction::apply(x, weight, bias);
}

std::vector<at::Tensor> split_last(const at::Tensor& x, std::vector<int64_t> widths) {
  return x.split_with_sizes(widths, -1);
}

at::Tensor heads_of(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(-1) / heads});
}

at::Tensor flat_heads(const at::Tensor& x) {
  return x.flatten(-2);
}

at::Tensor short_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Context& context) {
  if (!weight.defined()) return at::silu(x);
  const auto tail = context.carried("conv");
  if (context.state) {
    const auto before = tail.defined() ? tail : at::zeros({x.size(0), 3, x.size(2)}, x.options());
    const int64_t length = x.size(1);
    context.carry("conv", length >= 3 ? x.narrow(1, length - 3, 3).contiguous()
                                      : at::cat({before.narrow(1, length, 3 - length), x}, 1));
  }
  return conv4(x, weight, bias, true, tail);
}

at::Tensor gated_product(const at::Tensor& x, const at::Tensor& beta) {
  if (cpu::has_kernel(x)) return GatedProductFunction::apply(x, beta);
  const auto halves = x.chunk(2, -1);
  return halves[0] * at::sigmoid(beta * halves[0]) * halves[1];
}

at::Tensor bounded_below(const at::Tensor& log_decay, double a_min) {
  return a_min > 0 ? log_decay.clamp_min(std::log(a_min)) : log_decay;
}

at::Tensor log_decay(const at::Tensor& a, const at::Tensor& dt_bias, const at::Tensor& A_log, double a_min) {
  return bounded_below(-A_log.exp() * at::softplus(a + dt_bias), a_min);
}

}  // namespace sb
