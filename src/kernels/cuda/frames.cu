#include "kernels/cuda/frames.h"

#include "kernels/cuda/philox.cuh"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr int16_t kPadding = -2;

// Four elements of a sequence a thread: one block of the generator
template <class E>
__global__ void __launch_bounds__(kThreads) expand(const __grid_constant__ FrameRows p, E* out) {
  const int64_t length = static_cast<int64_t>(p.time) * p.vocab, blocks = (length + 3) / 4;
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, b = id / blocks,
                block = id - b * blocks;
  if (b >= p.batch) return;
  uint32_t word[4] = {};
  if (p.noise > 0) {
    const auto sample = static_cast<uint64_t>(p.samples[b]);
    const uint4 words = philox(make_uint4(static_cast<uint32_t>(block), static_cast<uint32_t>(sample),
                                          static_cast<uint32_t>(sample >> 32) ^ p.split << 24, kNoisePurpose),
                               make_uint2(static_cast<uint32_t>(p.seed), static_cast<uint32_t>(p.seed >> 32)));
    word[0] = words.x, word[1] = words.y, word[2] = words.z, word[3] = words.w;
  }
  int64_t t = block * 4 / p.vocab;
  int c = static_cast<int>(block * 4 - t * p.vocab);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (block * 4 + i >= length) return;
    const int16_t symbol = p.symbol[b * p.time + t];
    // rounded before the sum, as on the CPU
    float v = p.noise > 0 && symbol != kPadding
                  ? __fmul_rn(p.noise, __fmul_rn(static_cast<float>(word[i] >> 8), 0x1p-24f))
                  : 0.f;
    if (symbol == c) v = __fadd_rn(v, 1.f);
    out[b * length + block * 4 + i] = from_float<E>(v);
    if (++c == p.vocab) c = 0, ++t;
  }
}

}  // namespace

cudaError_t expand_frames(const FrameRows& p, void* out, cudaStream_t stream) {
  if (p.batch < 0 || p.time < 0 || p.vocab <= 0 || (p.noise > 0 && !p.samples)) return cudaErrorInvalidValue;
  const int64_t blocks = (static_cast<int64_t>(p.time) * p.vocab + 3) / 4 * p.batch;
  if (blocks == 0) return cudaSuccess;
  return with_element(p.element, [&]<class E>() {
    expand<E>
        <<<static_cast<unsigned>((blocks + kThreads - 1) / kThreads), kThreads, 0, stream>>>(p, static_cast<E*>(out));
    return cudaGetLastError();
  });
}

}  // namespace sb::cuda
