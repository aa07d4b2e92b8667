// Selective scan in ATen operations: time in chunks, inside a chunk the associative scan
// (a1, b1) then (a2, b2) = (a1 a2, a2 b1 + b2) by doubling. [B,T,D,N] exists for one chunk at a time: the backward pass
// runs each chunk again from the state that was kept before it.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/compat.h"
#include "kernels/recurrence.h"

namespace sb::chunked {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

// Steps of a chunk: fewer where the batch is large, so that one [B,steps,D,N] stays within 2^25 elements if four steps
// do.
int64_t steps_of(const Tensor& x, const Tensor& A_log) {
  const int64_t states = std::max<int64_t>(1, x.size(0) * A_log.numel());
  return std::clamp<int64_t>((int64_t{1} << 25) / states, 4, 32);
}

// x, delta, A_log, B, C, skip, write of one chunk and the state before it
Scan one_chunk(const variable_list& in, const Tensor& state, double a_min) {
  const Tensor &x = in[0], &delta = in[1], &A_log = in[2], &B = in[3], &C = in[4], &skip = in[5];
  const Tensor& write = in[6].defined() ? in[6] : delta;
  Tensor a = (delta.unsqueeze(-1) * -A_log.exp()).exp();
  if (a_min > 0) a = a.clamp_min(a_min);
  Tensor b = (write * x).unsqueeze(-1) * B.unsqueeze(2);
  const int64_t time = x.size(1);
  for (int64_t reach = 1; reach < time; reach *= 2) {
    const Tensor head_a = a.narrow(1, 0, reach), head_b = b.narrow(1, 0, reach);
    const Tensor tail_a = a.narrow(1, reach, time - reach), tail_b = b.narrow(1, reach, time - reach);
    b = at::cat({head_b, at::addcmul(tail_b, tail_a, b.narrow(1, 0, time - reach))}, 1);
    a = at::cat({head_a, tail_a * a.narrow(1, 0, time - reach)}, 1);
  }
  const Tensor h = at::addcmul(b, a, state.unsqueeze(1));
  return {at::matmul(h, C.unsqueeze(-1)).squeeze(-1) + skip * x, h.select(1, time - 1)};
}

variable_list slice(const variable_list& in, int64_t from, int64_t time) {
  const auto cut = [&](const Tensor& x) { return x.defined() ? x.narrow(1, from, time) : x; };
  return {cut(in[0]), cut(in[1]), in[2], cut(in[3]), cut(in[4]), in[5], cut(in[6])};
}

class ChunkedScan : public torch::autograd::Function<ChunkedScan> {
 public:
  static variable_list forward(torch::autograd::AutogradContext* ctx, const Tensor& x, const Tensor& delta,
                               const Tensor& A_log, const Tensor& B, const Tensor& C, const Tensor& skip,
                               const Tensor& write, const Tensor& state, double a_min, bool keep) {
    variable_list saved{x, delta, A_log, B, C, skip, write.numel() == 0 ? Tensor() : write}, out;
    Tensor h = state;
    const variable_list in = saved;
    const int64_t most = steps_of(x, A_log);
    for (int64_t from = 0; from < x.size(1); from += most) {
      if (keep) saved.push_back(h);
      const Scan part = one_chunk(slice(in, from, std::min(most, x.size(1) - from)), h, a_min);
      out.push_back(part.out);
      h = part.state.contiguous();
    }
    if (keep) ctx->save_for_backward(saved);
    ctx->saved_data["a_min"] = a_min;
    return {at::cat(out, 1), h.is_same(state) ? h.clone() : h};
  }

  static variable_list backward(torch::autograd::AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    variable_list in(saved.begin(), saved.begin() + 7), total(7);
    for (Tensor& x : in)
      if (x.defined()) x = x.detach();
    std::vector<variable_list> parts(7);
    const int64_t time = in[0].size(1), most = steps_of(in[0], in[2]);
    Tensor d_state = grads[1].defined() ? grads[1] : at::zeros_like(saved[7]);
    const Tensor d_out = grads[0].defined() ? grads[0] : at::zeros_like(in[0]);
    const at::AutoGradMode with_gradients(true);
    for (int64_t chunk = (time - 1) / most; chunk >= 0; --chunk) {
      const int64_t from = chunk * most, steps = std::min(most, time - from);
      variable_list leaves = slice(in, from, steps);
      for (Tensor& x : leaves)
        if (x.defined()) x = x.detach().requires_grad_();
      const Tensor before = saved[static_cast<size_t>(7 + chunk)].detach().requires_grad_();
      const Scan part = one_chunk(leaves, before, ctx->saved_data["a_min"].toDouble());
      variable_list wanted;
      for (const Tensor& x : leaves)
        if (x.defined()) wanted.push_back(x);
      wanted.push_back(before);
      const variable_list found =
          torch::autograd::grad({part.out, part.state}, wanted, {d_out.narrow(1, from, steps), d_state});
      size_t next = 0;
      for (size_t i = 0; i < 7; ++i)
        if (leaves[i].defined()) parts[i].push_back(found[next++]);
      d_state = found[next];
    }
    const at::NoGradGuard no_gradients;
    for (size_t i = 0; i < 7; ++i) {
      if (parts[i].empty()) continue;
      const bool per_step = i != 2 && i != 5;
      if (per_step) {
        std::reverse(parts[i].begin(), parts[i].end());
        total[i] = at::cat(parts[i], 1);
      } else {
        total[i] = at::stack(parts[i]).sum(0);
      }
    }
    total.push_back(d_state);
    total.resize(total.size() + 2);
    return total;
  }
};

}  // namespace

Scan selective_scan(const Tensor& x, const Tensor& delta, const Tensor& A_log, const Tensor& B, const Tensor& C,
                    const Tensor& skip, const Tensor& state, const Tensor& write, double a_min) {
  const Tensor first = state.defined() ? state : at::zeros({x.size(0), x.size(2), A_log.size(1)}, x.options());
  const bool keep = compat::records_gradient(x, delta, A_log, B, C, skip, first, write);
  const variable_list out = ChunkedScan::apply(
      x, delta, A_log, B, C, skip, write.defined() ? write : at::empty({0}, x.options()), first, a_min, keep);
  return {out[0], out[1]};
}

}  // namespace sb::chunked
