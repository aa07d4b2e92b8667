// Converts tensors [B,T,heads,width] to the row arguments of the recurrence kernels.
#pragma once
#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/decayed_attention.h"

namespace sb::cuda::bind {

template <class Void>
RowsOf<Void> head_rows(const Tensor& x) {
  return {data(x), x.stride(0), x.stride(1), x.stride(2)};
}
inline Precision precision_of(const Tensor& x) {
  if (is_low(x)) return Precision::bf16;
  return kernels::tf32_is_allowed() ? Precision::tf32 : Precision::fp32;
}

}  // namespace sb::cuda::bind
