// Philox4x32-10 on the device, with the same bits as random/philox.h.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace sb::cuda {

__device__ __forceinline__ uint4 philox(uint4 c, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t a_high = __umulhi(0xD2511F53u, c.x), a_low = 0xD2511F53u * c.x;
    const uint32_t b_high = __umulhi(0xCD9E8D57u, c.z), b_low = 0xCD9E8D57u * c.z;
    c = make_uint4(b_high ^ c.y ^ key.x, b_low, a_high ^ c.w ^ key.y, a_low);
    key.x += 0x9E3779B9u, key.y += 0xBB67AE85u;
  }
  return c;
}

// Purposes of streams (random/philox.h)
constexpr uint32_t kNoisePurpose = 4, kDropoutPurpose = 5;

}  // namespace sb::cuda
