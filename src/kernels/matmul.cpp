#include "kernels/matmul.h"

#include "base/torch_pch.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/poison.h"

namespace sb {
namespace {

using at::Tensor;
using cpu::Start;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One stride must be 1 for the panels to be read in order.
Tensor readable(const Tensor& x) {
  return x.stride(0) == 1 || x.stride(1) == 1 ? x : x.contiguous();
}

template <class T>
cpu::Matrix<T> matrix_of(const Tensor& x) {
  // An axis of one element may carry any stride.
  return {x.data_ptr<T>(), x.size(0) == 1 ? x.size(1) : x.stride(0), x.size(1) == 1 ? 1 : x.stride(1)};
}

void multiply(const Tensor& out, const Tensor& a_in, const Tensor& b_in, Start start, const Tensor& bias_in = {}) {
  const at::NoGradGuard no_gradients;
  const Tensor a = readable(a_in), b = readable(b_in);
  const Tensor bias = bias_in.defined() ? bias_in.contiguous() : bias_in;
  TORCH_INTERNAL_ASSERT(out.stride(1) == 1 || out.size(1) == 1);
  cpu::with_type_of(out, [&](auto type) {
    using T = decltype(type);
    cpu::matmul<T>(out.size(0), out.size(1), a.size(1), matrix_of<T>(a), matrix_of<T>(b), out.data_ptr<T>(),
                   out.stride(0), start, bias.defined() ? bias.data_ptr<T>() : nullptr);
  });
}

Tensor each_product(const Tensor& a, const Tensor& b) {
  const at::NoGradGuard no_gradients;
  if (!kernels::has_cpu_kernel(a)) return at::bmm(a, b);
  const Tensor out = kernels::fresh({a.size(0), a.size(1), b.size(2)}, a.options());
  cpu::for_each_task(a.size(0),
                     [&](int64_t i) { multiply(out.select(0, i), a.select(0, i), b.select(0, i), Start::zero); });
  return out;
}

struct BatchedProduct : torch::autograd::Function<BatchedProduct> {
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->save_for_backward({a, b});
    return each_product(a, b);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {each_product(grads[0], saved[1].transpose(1, 2)), each_product(saved[0].transpose(1, 2), grads[0])};
  }
};

}  // namespace

Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias) {
  const Tensor out = kernels::fresh({a.size(0), b.size(1)}, a.options());
  product_into(out, a, b, bias);
  return out;
}

void product_into(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias) {
  if (kernels::has_cpu_kernel(a))
    return multiply(out, a.detach(), b.detach(), Start::zero, bias.defined() ? bias.detach() : bias);
  const at::NoGradGuard no_gradients;
  Tensor to = out;
  if (bias.defined())
    at::addmm_out(to, bias, a, b);
  else
    at::mm_out(to, a, b);
}

void add_product_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (kernels::has_cpu_kernel(a)) return multiply(out, a.detach(), b.detach(), Start::add);
  const at::NoGradGuard no_gradients;
  Tensor to = out;
  to.addmm_(a, b);
}

Tensor batched_product(const Tensor& a, const Tensor& b) {
  return BatchedProduct::apply(a, b);
}

}  // namespace sb
