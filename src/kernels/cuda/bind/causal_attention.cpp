#include "kernels/cuda/bind/flash_attention.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {

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
