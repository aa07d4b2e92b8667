#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/mlstm_rows.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

constexpr float kReadEps = 1e-6f;

// A problem and the tensors that hold its rows. c: read, m, gain, gate?
struct ReadInput {
  Held read, gate;
  MlstmRead p;
  explicit ReadInput(const Tensors& c) : read(by_heads(c[0])) {
    p.tokens = read.tokens, p.heads = read.heads, p.read_width = read.width;
    p.width = static_cast<int>(c[2].size(0)) / p.heads;
    p.element = element_of(c[0]), p.eps = kReadEps;
    p.read = read.in(), p.m = float_data(c[1]), p.gain = float_data(c[2]);
    if (c[3].defined()) {
      gate = by_heads(by_head(c[3]));
      p.gate = gate.in();
    }
  }
  // [B,T,h V] as [B,T,h,V]
  Tensor by_head(const Tensor& x) const { return x.unflatten(-1, {p.heads, p.width}); }
};

}  // namespace

bool supports_mlstm_read(const op::MlstmRead&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable(in[2]) && in[2].size(0) / in[0].size(2) <= kMaxReadWidth &&
         (!in[3].defined() || (readable(in[3]) && same_type(in[3], in[0])));
}

Tensors mlstm_read(const op::MlstmRead&, const Tensors& in, Tensors* saved) {
  const Tensors c{in[0], floats(in[1]), floats(in[2]), in[3]};
  const ReadInput rows(c);
  const Tensor y = fresh({in[0].size(0), in[0].size(1), in[2].size(0)}, in[0]);
  const OnDevice on(y);
  on.check("mlstm_read", mlstm_read_forward(rows.p, by_heads(rows.by_head(y)).out(), on.stream()));
  if (saved) *saved = {rows.read.x, c[1], c[2], c[3]};
  return {y};
}

Tensors mlstm_read_back(const op::MlstmRead&, const Back& back) {
  const Tensors& c = back.saved;
  const ReadInput rows(c);
  const Held dy = by_heads(rows.by_head(back.d_out[0]));
  const Tensor d_read = fresh_like(c[0]), d_gain = fresh_like(c[2]);
  Tensor d_gate;
  MlstmReadGradients d{dy.in(), by_heads(d_read).out(), {}, float_data(d_gain)};
  if (c[3].defined()) {
    d_gate = gradient_by_rows(back, 3, c[3]);
    d.d_gate = by_heads(rows.by_head(d_gate)).out();
  }
  const Tensor memory = scratch(mlstm_read_scratch_bytes(rows.p), d_read);
  const OnDevice on(d_read);
  on.check("mlstm_read", mlstm_read_backward(rows.p, d, data(memory), on.stream()));
  return {d_read, Tensor(), d_gain, d_gate};
}

}  // namespace sb::cuda::bind
