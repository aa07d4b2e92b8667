// Selective scan in ATen operations, in chunks of time. Within a chunk it uses an associative scan by doubling:
// (a1, b1) followed by (a2, b2) is (a1 a2, a2 b1 + b2). Tensors [B,T,D,N] exist for only one chunk at a time. The
// backward pass recomputes each chunk from its saved initial state.
#include "base/torch_pch.h"
#include "kernels/operations.h"

namespace sb::aten {
namespace {

using at::Tensor;
using kernels::Tensors;

constexpr size_t kInputs = 8;
enum Input : size_t { kX, kDelta, kALog, kB, kC, kSkip, kState, kWrite };

// Steps per chunk: 4 to 32, as many as keep [B,steps,D,N] within 2^25 elements.
int64_t steps_of(const Tensors& in) {
  const int64_t states = std::max<int64_t>(1, in[kX].size(0) * in[kALog].numel());
  return std::clamp<int64_t>((int64_t{1} << 25) / states, 4, 32);
}

// The inputs of one chunk, including its initial state.
Tensors one_chunk(const Tensors& in, double a_min) {
  const Tensor &x = in[kX], &delta = in[kDelta];
  const Tensor& write = in[kWrite].defined() ? in[kWrite] : delta;
  Tensor a = (delta.unsqueeze(-1) * -in[kALog].exp()).exp();
  if (a_min > 0) a = a.clamp_min(a_min);
  Tensor b = (write * x).unsqueeze(-1) * in[kB].unsqueeze(2);
  const int64_t time = x.size(1);
  for (int64_t reach = 1; reach < time; reach *= 2) {
    const Tensor head_a = a.narrow(1, 0, reach), head_b = b.narrow(1, 0, reach);
    const Tensor tail_a = a.narrow(1, reach, time - reach), tail_b = b.narrow(1, reach, time - reach);
    b = at::cat({head_b, at::addcmul(tail_b, tail_a, b.narrow(1, 0, time - reach))}, 1);
    a = at::cat({head_a, tail_a * a.narrow(1, 0, time - reach)}, 1);
  }
  const Tensor h = at::addcmul(b, a, in[kState].unsqueeze(1));
  return {at::matmul(h, in[kC].unsqueeze(-1)).squeeze(-1) + in[kSkip] * x, h.select(1, time - 1)};
}

bool has_time(size_t input) {
  return input != kALog && input != kSkip && input != kState;
}

Tensors slice(Tensors in, int64_t from, int64_t time, const Tensor& state) {
  for (size_t i = 0; i < kInputs; ++i)
    if (has_time(i) && in[i].defined()) in[i] = in[i].narrow(1, from, time);
  in[kState] = state;
  return in;
}

// If steps or states are float and other inputs are not, everything is computed in float.
Tensors of_one_type(Tensors in) {
  auto type = in[kX].scalar_type();
  for (const Tensor& x : in)
    if (x.defined()) type = c10::promoteTypes(type, x.scalar_type());
  for (Tensor& x : in)
    if (x.defined()) x = x.to(type);
  return in;
}

}  // namespace

Tensors selective_scan(const op::SelectiveScan& op, const Tensors& given, Tensors* saved) {
  const Tensors in = of_one_type(given);
  const Tensor& x = in[kX];
  Tensor h = in[kState].defined() ? in[kState] : at::zeros({x.size(0), x.size(2), in[kALog].size(1)}, x.options());
  if (saved) *saved = in;  // then the state before every chunk
  Tensors out;
  const int64_t most = steps_of(in);
  for (int64_t from = 0; from < x.size(1); from += most) {
    if (saved) saved->push_back(h);
    Tensors part = one_chunk(slice(in, from, std::min(most, x.size(1) - from), h), op.a_min);
    out.push_back(part[0]);
    h = part[1].contiguous();
  }
  return {at::cat(out, 1).to(given[kX].scalar_type()), h};
}

Tensors selective_scan_back(const op::SelectiveScan& op, const kernels::Back& back) {
  const Tensors in(back.saved.begin(), back.saved.begin() + kInputs);
  std::vector<Tensors> parts(kInputs);
  const int64_t time = in[kX].size(1), most = steps_of(in);
  const Tensor d_out = back.d_out[0].defined() ? back.d_out[0].to(in[kX].scalar_type()) : at::zeros_like(in[kX]);
  Tensor d_state = back.d_out[1].defined() ? back.d_out[1] : at::zeros_like(back.saved[kInputs]);
  {
    const at::AutoGradMode with_gradients(true);
    for (int64_t chunk = (time - 1) / most; chunk >= 0; --chunk) {
      const int64_t from = chunk * most, steps = std::min(most, time - from);
      Tensors leaves = slice(in, from, steps, back.saved[kInputs + static_cast<size_t>(chunk)]), wanted;
      for (Tensor& x : leaves) {
        if (!x.defined()) continue;
        x = x.detach().requires_grad_();
        wanted.push_back(x);
      }
      const Tensors part = one_chunk(leaves, op.a_min);
      const Tensors found = torch::autograd::grad(part, wanted, {d_out.narrow(1, from, steps), d_state});
      size_t next = 0;
      for (size_t i = 0; i < kInputs; ++i)
        if (leaves[i].defined()) parts[i].push_back(found[next++]);
      d_state = parts[kState].back();
    }
  }
  Tensors total(kInputs);
  for (size_t i = 0; i < kInputs; ++i) {
    if (i == kState || parts[i].empty()) continue;
    std::reverse(parts[i].begin(), parts[i].end());
    total[i] = has_time(i) ? at::cat(parts[i], 1) : at::stack(parts[i]).sum(0);
  }
  total[kState] = d_state;
  return total;
}

}  // namespace sb::aten
