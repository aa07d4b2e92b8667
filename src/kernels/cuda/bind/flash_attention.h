// What the operations on libtorch's flash-attention kernels share. Deterministic mode sums the gradients of q in a
// fixed order.
#pragma once
#include <cmath>

#include "kernels/cuda/bind/tensors.h"

namespace sb::cuda::bind {

constexpr int64_t kMaxFlashWidth = 256;

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

inline double flash_scale(int64_t width) {
  return 1 / std::sqrt(static_cast<double>(width));
}

// The kernels require widths that are multiples of 8. Zeros behind the rows of q, k and v do not change the output;
// its further columns are removed.
inline int64_t flash_width(int64_t width) {
  return (width + 7) / 8 * 8;
}
// [B,T,H,w] as [B,H,T,padded], with zeros behind the rows
inline Tensor heads_first(const Tensor& x, int64_t padded) {
  const int64_t behind = padded - x.size(3);
  return (behind == 0 ? x : at::constant_pad_nd(x, {0, behind})).transpose(1, 2);
}
inline Tensor frames_first(const Tensor& x, int64_t width) {
  return x.transpose(1, 2).narrow(3, 0, width);
}

// q, k, v [B,H,T,padded] -> these, the output, its log-sum-exps [B,H,T], and the two tensors of the dropout's state,
// which the backward pass asks for
inline Tensors flash_forward(const Tensor& q, const Tensor& k, const Tensor& v, double scale, bool causal = true) {
  const auto found = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, causal, false, scale);
  return {q, k, v, std::get<0>(found), std::get<1>(found), std::get<6>(found), std::get<7>(found)};
}

// q [B,H,T,w] behind `offset` keys of earlier frames, which every query sees. The frames of q attend to each other
// causally. The log-sums of both parts give their weights.
inline Tensor attend_behind(int64_t offset, const Tensor& q, const Tensor& k, const Tensor& v, double scale) {
  const int64_t time = q.size(2);
  const Tensors past = flash_forward(q, k.narrow(2, 0, offset), v.narrow(2, 0, offset), scale, false);
  const Tensors own = flash_forward(q, k.narrow(2, offset, time), v.narrow(2, offset, time), scale);
  const Tensor weight = at::sigmoid(past[4] - own[4]).unsqueeze(-1);
  return at::lerp(own[3].to(at::kFloat), past[3].to(at::kFloat), weight).to(q.scalar_type());
}

// The gradients of q, k and v [B,H,T,padded]. `kept` begins with the tensors of flash_forward.
inline Tensors flash_backward(const Tensor& d_out, const Tensors& kept, double scale) {
  const int64_t time = kept[0].size(2);
  const Deterministic deterministic;
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(d_out, kept[0], kept[1], kept[2], kept[3],
                                                                       kept[4], {}, {}, time, time, 0.0,
                                                                       /*is_causal=*/true, kept[5], kept[6], scale);
  return {dq, dk, dv};
}

}  // namespace sb::cuda::bind
