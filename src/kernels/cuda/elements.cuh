// Conversion of tensor elements to and from float, and properties of the device.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace sb::cuda {

using bf16 = __nv_bfloat16;

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(bf16 x) {
  return __bfloat162float(x);
}
template <class E>
__device__ inline E from_float(float x) {
  if constexpr (sizeof(E) == 2)
    return __float2bfloat16_rn(x);
  else
    return x;
}

// 2^x, computed by the special-function unit (approximate)
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Number of multiprocessors of the current device
inline int multiprocessors() {
  int device = 0, count = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

}  // namespace sb::cuda
