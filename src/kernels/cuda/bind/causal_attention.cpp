// The library's flash kernels, in their deterministic mode: gradients of q are then summed in a fixed order.
#include "kernels/cuda/bind/operations.h"
#include "kernels/cuda/bind/tensors.h"

namespace sb::cuda::bind {
namespace {

// While one lives, the library's kernels give the same bytes on every run; memory that they take is not filled.
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

}  // namespace

bool takes_causal_attention(const op::CausalAttention& op, const Tensors& in) {
  const int64_t width = in[0].size(3);
  return op.offset == 0 && readable(in[0]) && is_low(in[0]) && same_type(in[0], in[1]) && same_type(in[0], in[2]) &&
         width % 8 == 0 && width <= 256;
}

Tensors causal_attention(const op::CausalAttention&, const Tensors& in, Tensors* saved) {
  const Tensor q = in[0].transpose(1, 2), k = in[1].transpose(1, 2), v = in[2].transpose(1, 2);
  const auto found = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, /*is_causal=*/true);
  const Tensor out = std::get<0>(found);
  if (saved) *saved = {q, k, v, out, std::get<1>(found), std::get<6>(found), std::get<7>(found)};
  return {out.transpose(1, 2)};
}

Tensors causal_attention_back(const op::CausalAttention&, const Back& back) {
  const Tensors& c = back.saved;
  const int64_t time = c[0].size(2);
  const Deterministic deterministic;
  const auto [dq, dk, dv] =
      at::_scaled_dot_product_flash_attention_backward(back.d_out[0].transpose(1, 2), c[0], c[1], c[2], c[3], c[4], {},
                                                       {}, time, time, 0.0, /*is_causal=*/true, c[5], c[6]);
  return {dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)};
}

}  // namespace sb::cuda::bind
