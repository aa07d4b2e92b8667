#include "kernels/cuda/token_shift.h"

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

TokenShift shift_problem(const Tensor& x, const Tensor& mu, const Tensor& last) {
  TokenShift p;
  p.batch = static_cast<int>(x.size(0)), p.time = static_cast<int>(x.size(1)), p.channels = static_cast<int>(x.size(2));
  p.element = element_of(x), p.x = {data(x), x.stride(0), x.stride(1)};
  p.mu = float_data(mu), p.last = data(last);
  return p;
}

}  // namespace

bool supports_token_shift(const op::TokenShift&, const Tensors& in) {
  bool all =
      in.size() == 2 + kShifts && readable(in[0]) && (!in[1].defined() || (readable(in[1]) && same_type(in[1], in[0])));
  for (size_t i = 2; i < in.size(); ++i) all = all && in[i].scalar_type() == at::kFloat;
  return all;
}

// x, last?, six of mu
Tensors token_shift(const op::TokenShift&, const Tensors& in, Tensors* saved) {
  const Tensor x = packed_last(in[0]), last = contiguous(in[1]);
  const Tensor mu = at::cat(Tensors(in.begin() + 2, in.end()), 0);  // [6,1,C]
  Tensors out;
  void* y[kShifts];
  for (void*& each : y) {
    out.push_back(fresh(x.sizes(), x));
    each = data(out.back());
  }
  const OnDevice on(x);
  on.check("token_shift", token_shift_forward(shift_problem(x, mu, last), y, on.stream()));
  if (saved) *saved = {x, mu, last};
  return out;
}

Tensors token_shift_back(const op::TokenShift&, const Back& back) {
  const Tensor &x = back.saved[0], &mu = back.saved[1], &last = back.saved[2];
  Tensors grads;
  const void* dy[kShifts];
  for (size_t i = 0; i < kShifts; ++i) {
    const Tensor& given = back.d_out[i];
    grads.push_back(given.defined() ? given.contiguous() : at::zeros(x.sizes(), x.options()));
    dy[i] = data(grads.back());
  }
  const Tensor dx = gradient_of(back, 0, x), d_mu = fresh_like(mu);
  const Tensor d_last = last.defined() ? fresh_like(last) : Tensor();
  const TokenShift p = shift_problem(x, mu, last);
  const Tensor memory = scratch(token_shift_scratch_bytes(p), x);
  const OnDevice on(x);
  on.check("token_shift", token_shift_backward(p, dy, {data(dx), dx.stride(0), dx.stride(1)}, float_data(d_mu),
                                               data(d_last), data(memory), on.stream()));
  Tensors out{dx, d_last};
  for (int64_t i = 0; i < kShifts; ++i) out.push_back(d_mu.narrow(0, i, 1));
  return out;
}

}  // namespace sb::cuda::bind
