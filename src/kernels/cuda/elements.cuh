// Conversion of tensor elements and pairs of them to and from float, properties of the device, and launches.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

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

// Two floats as bf16 in one register, and back
__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, 4);
  return bits;
}
__device__ inline float2 unpack(uint32_t bits) {
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}

// Two adjacent elements, aligned as one
__device__ inline float2 load_pair(const bf16* p) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(p));
}
__device__ inline float2 load_pair(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}
__device__ inline void store_pair(bf16* p, float x, float y) {
  *reinterpret_cast<uint32_t*>(p) = pack(x, y);
}
__device__ inline void store_pair(float* p, float x, float y) {
  *reinterpret_cast<float2*>(p) = make_float2(x, y);
}

// Bounds that keep a NaN; fmaxf and fminf would return the bound
__device__ inline float at_least(float x, float least) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(least));
  return x;
}
__device__ inline float at_most(float x, float most) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(most));
  return x;
}

// log2(e)
inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr float kLog2EFloat = static_cast<float>(kLog2E);

// 2^x, computed by the special-function unit (approximate)
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// e^x for x <= 0, without bias near 1: products of thousands of such factors stay as accurate as their number's square
// root allows, while expf, off by up to one unit in the same direction, adds up to 1e-5 over a thousand
__device__ inline float exp_near_one(float x) {
  return x > -0.25f ? 1.f + expm1f(x) : expf(x);
}

// Whether the current device has compute capability 9.0 (Hopper), whose code has wgmma and TMA (cmake/cuda.cmake).
inline bool is_hopper() {
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return major == 9 && minor == 0;
}

// Number of multiprocessors of the current device
inline int multiprocessors() {
  int device = 0, count = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

// Whether the current device has code for a kernel, and the shared memory and registers of one block
inline bool fits(const void* kernel, int threads, size_t dynamic_shared) {
  cudaFuncAttributes needs{};
  int device = 0, most_shared = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
      cudaFuncGetAttributes(&needs, kernel) == cudaSuccess;
  if (!known) cudaGetLastError();  // clears the error
  return known && needs.sharedSizeBytes + dynamic_shared <= static_cast<size_t>(most_shared) &&
         threads <= needs.maxThreadsPerBlock;
}

// Destination of launch(): a stream, or none, to learn whether the kernels of a pass fit on the current device
struct Target {
  cudaStream_t stream = nullptr;
  bool none = false;
  Target(cudaStream_t to) : stream(to) {}  // a stream is a target
  static Target nowhere() {
    Target out(nullptr);
    out.none = true;
    return out;
  }
};

// Launches a kernel with `shared` bytes of dynamic shared memory
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared, Target to,
                   const Arguments&... arguments) {
  if (to.none) {
    return fits(reinterpret_cast<const void*>(kernel), threads, shared) ? cudaSuccess : cudaErrorInvalidConfiguration;
  }
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (status != cudaSuccess) return status;
  kernel<<<grid, threads, shared, to.stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace sb::cuda
