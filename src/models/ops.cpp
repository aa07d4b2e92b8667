#include "models/ops.h"

#include "base/torch_pch.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/matmul.h"
#include "kernels/plain_mode.h"

namespace sb {

at::Tensor column_sums(const at::Tensor& x) {
  return kernels::has_cpu_kernel(x) ? cpu::sum_in_order(x) : x.sum(0);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
