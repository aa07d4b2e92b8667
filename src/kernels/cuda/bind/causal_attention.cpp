// Uses libtorch's flash-attention kernels in deterministic mode, which sums the gradients of q in a fixed order.
#include <cmath>

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

// RAII guard: makes libtorch's kernels deterministic, without filling their uninitialised memory.
class Deterministic {
 public:
  Deterministic()
      : on_(at::globalContext().deterministicAlgorithms()),
        warns_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        fills_(at::globalContext().deterministicFillUninitializedMemory()) {
    at::globalContext().setDeterministicAlgorithms(true, false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  }
  ~Deterministic() {
    at::globalContext().setDeterministicAlgorithms(on_, warns_);
    at::globalContext().setDeterministicFillUninitializedMemory(fills_);
  }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  bool on_, warns_, fills_;
};

// [B,T,H,w] as [B,H,T,w'], with w' the next multiple of 8, which the kernels require. The padding zeros do not change
// q . k; the padded columns of the output are removed.
Tensor heads_first(const Tensor& x) {
  const int64_t width = x.size(3), behind = (width + 7) / 8 * 8 - width;
  return (behind == 0 ? x : at::constant_pad_nd(x, {0, behind})).transpose(1, 2);
}
Tensor frames_first(const Tensor& x, int64_t width) {
  return x.transpose(1, 2).narrow(3, 0, width);
}
double scale_of(int64_t width) {
  return 1 / std::sqrt(static_cast<double>(width));
}

}  // namespace

bool supports_causal_attention(const op::CausalAttention& op, const Tensors& in) {
  return op.offset == 0 && readable(in[0]) && is_low(in[0]) && same_type(in[0], in[1]) && same_type(in[0], in[2]) &&
         in[0].size(3) <= 256;
}

Tensors causal_attention(const op::CausalAttention&, const Tensors& in, Tensors* saved) {
  const int64_t width = in[0].size(3);
  const Tensor q = heads_first(in[0]), k = heads_first(in[1]), v = heads_first(in[2]);
  const auto found = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, /*is_causal=*/true, false, scale_of(width));
  const Tensor out = std::get<0>(found);
  if (saved) *saved = {q, k, v, out, std::get<1>(found), std::get<6>(found), std::get<7>(found)};
  return {frames_first(out, width)};
}

Tensors causal_attention_back(const op::CausalAttention&, const Back& back) {
  const Tensors& c = back.saved;
  const int64_t time = c[0].size(2), width = back.d_out[0].size(3);
  const Deterministic deterministic;
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
      heads_first(back.d_out[0]), c[0], c[1], c[2], c[3], c[4], {}, {}, time, time, 0.0, /*is_causal=*/true, c[5], c[6],
      scale_of(width));
  return {frames_first(dq, width), frames_first(dk, width), frames_first(dv, width)};
}

}  // namespace sb::cuda::bind
