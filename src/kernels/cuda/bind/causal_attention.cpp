#include "kernels/cuda/bind/flash_attention.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

// q [B,H,T,w] behind `offset` keys of earlier frames, which every query sees. The frames of q attend to each other
// causally. The log-sums of both parts give their weights.
Tensor attend_behind(int64_t offset, const Tensor& q, const Tensor& k, const Tensor& v, double scale) {
  const int64_t time = q.size(2);
  const Tensors past = flash_forward(q, k.narrow(2, 0, offset), v.narrow(2, 0, offset), scale, false);
  const Tensors own = flash_forward(q, k.narrow(2, offset, time), v.narrow(2, offset, time), scale);
  const Tensor weight = at::sigmoid(past[4] - own[4]).unsqueeze(-1);
  return at::lerp(own[3].to(at::kFloat), past[3].to(at::kFloat), weight).to(q.scalar_type());
}

}  // namespace

// With an offset, without gradients only: that is a carried cache.
bool supports_causal_attention(const op::CausalAttention& op, const Tensors& in) {
  return (op.offset == 0 || !kernels::records_gradient(in)) && readable(in[0]) && is_low(in[0]) &&
         same_type(in[0], in[1]) && same_type(in[0], in[2]) && in[0].size(3) <= kMaxFlashWidth;
}

Tensors causal_attention(const op::CausalAttention& op, const Tensors& in, Tensors* saved) {
  const int64_t width = in[0].size(3), padded = flash_width(width);
  const Tensor q = heads_first(in[0], padded), k = heads_first(in[1], padded), v = heads_first(in[2], padded);
  if (op.offset > 0) return {frames_first(attend_behind(op.offset, q, k, v, flash_scale(width)), width)};
  const Tensors kept = flash_forward(q, k, v, flash_scale(width));
  if (saved) *saved = kept;
  return {frames_first(kept[3], width)};
}

Tensors causal_attention_back(const op::CausalAttention&, const Back& back) {
  const int64_t width = back.d_out[0].size(3);
  const Tensors d = flash_backward(heads_first(back.d_out[0], flash_width(width)), back.saved, flash_scale(width));
  return {frames_first(d[0], width), frames_first(d[1], width), frames_first(d[2], width)};
}

}  // namespace sb::cuda::bind
