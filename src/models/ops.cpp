#include "models/ops.h"

#include "base/torch_pch.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/matmul.h"
#include "kernels/plain_mode.h"

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
  if (!kernels::has_cpu_kernel(x)) return x.sum(0);
  const auto rows = x.contiguous();
  auto out = at::empty({x.size(1)}, x.options());
  cpu::with_type_of(x, [&](auto type) {
    using T = decltype(type);
    sum_rows(rows.data_ptr<T>(), rows.size(0), rows.size(1), out.data_ptr<T>());
  });
  return out;
}

namespace {

at::Tensor rows_of(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  auto shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return product(rows_of(x), weight.t(), bias).view(shape);
}

// Gradients of x (undefined where it needs none) and weight.
variable_list projection_gradients(AutogradContext* ctx, const at::Tensor& grad) {
  const auto saved = ctx->get_saved_variables();
  at::Tensor d_x;
  if (ctx->saved_data["input"].toBool()) d_x = product(grad, saved[1]).view(saved[0].sizes());
  return {d_x, product(grad.t(), rows_of(saved[0]))};
}

struct ProjectFunction : torch::autograd::Function<ProjectFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["input"] = x.requires_grad();
    return projected(x, weight, {});
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return projection_gradients(ctx, rows_of(grads[0]));
  }
};

struct BiasedProjectFunction : torch::autograd::Function<BiasedProjectFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["input"] = x.requires_grad();
    return projected(x, weight, bias);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto grad = rows_of(grads[0]);
    auto out = projection_gradients(ctx, grad);
    out.push_back(column_sums(grad));
    return out;
  }
};

}  // namespace

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (kernels::plain_mode()) return at::linear(x, weight, bias);
  return bias.defined() ? BiasedProjectFunction::apply(x, weight, bias) : ProjectFunction::apply(x, weight);
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

at::Tensor bounded_below(const at::Tensor& log_decay, double a_min) {
  return a_min > 0 ? log_decay.clamp_min(std::log(a_min)) : log_decay;
}

}  // namespace sb
