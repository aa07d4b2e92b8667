// Products of bf16 activations and the bf16 copy of a weight, with fp32 sums. The gradient of the weight is fp32.
#include <cublas_v2.h>

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

Tensor as_matrix(const Tensor& x) {
  const Tensor rows = x.reshape({-1, x.size(-1)});
  return packed_last(rows);
}

// out (+)= a^T b in fp32 without gaps; a [K,M], b [K,N] in bf16 with rows that lie without gaps
void multiply_transposed(const Tensor& a, const Tensor& b, const Tensor& out, bool add) {
  const OnDevice on(out);
  const float one = 1, kept = add ? 1 : 0;
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  const auto step = [&](const Tensor& x) { return size(x.size(0) == 1 ? x.size(1) : x.stride(0)); };
  // in columns: out^T = b^T a
  const cublasStatus_t status =
      cublasGemmEx(blas_handle(), CUBLAS_OP_N, CUBLAS_OP_T, size(b.size(1)), size(a.size(1)), size(a.size(0)), &one,
                   data(b), CUDA_R_16BF, step(b), data(a), CUDA_R_16BF, step(a), &kept, data(out), CUDA_R_32F,
                   size(b.size(1)), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  on.check("project", status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown);
}

// Undefined if the gradient was added to an existing tensor instead.
Tensor weight_gradient(const Back& back, const Tensor& grad, const Tensor& x) {
  const Tensor sum = back.sum(1);
  if (sum.defined() && sum.scalar_type() == at::kFloat && sum.is_contiguous() && sum.dim() == 2) {
    multiply_transposed(grad, x, sum, true);
    return {};
  }
  const Tensor out = fresh({grad.size(1), x.size(1)}, grad, at::kFloat);
  multiply_transposed(grad, x, out, false);
  return out;
}

}  // namespace

bool supports_project(const op::Project&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable_or_absent(in[2]) && readable(in[3]) && is_low(in[3]);
}

// x [...,d], weight [n,d], bias? [n], copy [n,d] -> bf16
Tensors project(const op::Project&, const Tensors& in, Tensors* saved) {
  const Tensor x = as_matrix(in[0].to(at::kBFloat16)), &copy = in[3];
  auto shape = in[0].sizes().vec();
  shape.back() = copy.size(0);
  const Tensor y = in[2].defined() ? at::addmm(in[2].to(at::kBFloat16), x, copy.t()) : at::mm(x, copy.t());
  if (saved) *saved = {x, copy};
  return {y.view(shape)};
}

Tensors project_back(const op::Project&, const Back& back) {
  const Tensor &x = back.saved[0], &copy = back.saved[1], grad = as_matrix(back.d_out[0]);
  Tensors out(4);
  if (back.wanted[0]) {
    auto shape = back.d_out[0].sizes().vec();
    shape.back() = copy.size(1);
    out[0] = gradient_of(back, 0, shape, grad);
    if (!by_rows(out[0]).x.is_same(out[0])) out[0] = fresh(shape, grad);
    Tensor rows = out[0].view({grad.size(0), shape.back()});
    at::mm_out(rows, grad, copy);
  }
  if (back.wanted[1]) out[1] = weight_gradient(back, grad, x);
  if (back.wanted[2]) out[2] = sum_of_rows(grad);
  return out;
}

}  // namespace sb::cuda::bind
