#include "kernels/cuda/rope.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

__global__ void fill_table(float* table, int time, int half, double base, int64_t offset) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, t = at / half, j = at - t * half;
  if (t >= time) return;
  const float exponent = static_cast<float>(j) / static_cast<float>(half);
  const double rate = 1.f / static_cast<float>(pow(base, static_cast<double>(exponent)));
  double sine, cosine;
  sincos(static_cast<double>(offset + t) * rate, &sine, &cosine);
  table[(2 * t) * half + j] = static_cast<float>(cosine);
  table[(2 * t + 1) * half + j] = static_cast<float>(sine);
}

// A thread turns a pack of the first half with the same pack of the second.
template <class E, Access A>
__global__ void __launch_bounds__(kThreads)
    turn(const __grid_constant__ Rope p, const __grid_constant__ PackCount count, Division by_heads, Division by_time,
         RowsOut y) {
  const int half = p.width / 2;
  const Columns<A, 1> at{0, half, half};
  const float sense = static_cast<float>(p.sense);
  for_packs(count, [&](int row, int pack) {
    const auto token = static_cast<int>(by_heads(static_cast<uint32_t>(row))), head = row - token * p.heads;
    const int position = token - static_cast<int>(by_time(static_cast<uint32_t>(token))) * p.time;
    const E* const x = static_cast<const E*>(p.x.data) + token * p.x.token + head * p.x.head;
    E* const to = static_cast<E*>(y.data) + token * y.token + head * y.head;
    const float* const table = p.table + position * p.width;
    Raw<E> a, b;
    Raw<float> c, s;
    float first[kPack], second[kPack];
    at.load(a, x, pack);
    at.load(b, x + half, pack);
    at.load(c, table, pack);
    at.load(s, table + half, pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      first[j] = a[j] * c[j] + sense * (b[j] * s[j]);
      second[j] = b[j] * c[j] - sense * (a[j] * s[j]);
    }
    at.store(to, pack, first);
    at.store(to + half, pack, second);
  });
}

}  // namespace

cudaError_t rope_table(float* table, int time, int half, double base, int64_t offset, cudaStream_t stream) {
  if (time <= 0 || half <= 0) return cudaErrorInvalidValue;
  fill_table<<<(time * half + kThreads - 1) / kThreads, kThreads, 0, stream>>>(table, time, half, base, offset);
  return cudaGetLastError();
}

cudaError_t rope(const Rope& p, const RowsOut& y, cudaStream_t stream) {
  if (p.tokens < 0 || p.time <= 0 || p.heads <= 0 || p.width <= 0 || p.width % 2 || !p.table ||
      (p.sense != 1 && p.sense != -1))
    return cudaErrorInvalidValue;
  if (p.tokens == 0) return cudaSuccess;
  const PackCount count(p.tokens * p.heads, p.width / 2);
  if (!count.valid()) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    const Division by_heads(static_cast<uint32_t>(p.heads)), by_time(static_cast<uint32_t>(p.time));
    const auto run = [&](auto kernel) {
      kernel<<<walking_blocks(kernel, count.blocks(), 1 << 30), kThreads, 0, stream>>>(p, count, by_heads, by_time, y);
      return cudaGetLastError();
    };
    const bool vectors = on_vectors(p.x.data, p.x.token, p.x.head, p.heads, sizeof(E)) &&
                         on_vectors(y.data, y.token, y.head, p.heads, sizeof(E)) && p.width / 2 % kPack == 0 &&
                         on_vectors(p.table, 0, 0, 1, 4);
    return vectors ? run(turn<E, Access::vectors>) : run(turn<E, Access::neighbours>);
  });
}

}  // namespace sb::cuda
