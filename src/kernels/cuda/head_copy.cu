#include "kernels/cuda/head_copy.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

template <Access A>
__global__ void __launch_bounds__(kThreads)
    copy_rows(const __grid_constant__ HeadCopies p, const __grid_constant__ PackCount count, Division by_head,
              Division by_time) {
  const ConstRows from = p.from[blockIdx.y];
  const Rows to = p.to[blockIdx.y];
  const Columns<A, 1> at{0, static_cast<int>(p.width), static_cast<int>(p.padded)};
  for_packs(count, [&](int row, int pack) {
    const auto token = static_cast<int64_t>(by_head(static_cast<uint32_t>(row))), h = row - token * p.heads;
    const auto b = static_cast<int64_t>(by_time(static_cast<uint32_t>(token))), t = token - b * p.time;
    Raw<bf16> x;
    at.load(x, static_cast<const bf16*>(from.data) + b * from.batch + t * from.time + h * from.head, pack);
    float v[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = x[j];
    at.store(static_cast<bf16*>(to.data) + b * to.batch + t * to.time + h * to.head, pack, v);
  });
}

template <class Void>
bool aligned(const RowsOf<Void>& rows) {
  return on_vectors(rows.data, rows.time, rows.head, 2, sizeof(bf16)) &&
         on_vectors(rows.data, rows.batch, 0, 1, sizeof(bf16));
}

}  // namespace

cudaError_t copy_heads(const HeadCopies& p, cudaStream_t stream) {
  const PackCount count(p.batch * p.time * p.heads, static_cast<int>(p.padded));
  if (p.width < 1 || p.padded < p.width || p.count < 1 || p.count > kMaxHeadCopies || !count.valid())
    return cudaErrorInvalidValue;
  if (count.all == 0) return cudaSuccess;
  bool vectors = true;
  for (int i = 0; i < p.count; ++i) vectors = vectors && aligned(p.from[i]) && aligned(p.to[i]);
  const auto run = [&](auto kernel) {
    const dim3 grid(static_cast<unsigned>(walking_blocks(kernel, count.blocks(), 1 << 30)),
                    static_cast<unsigned>(p.count));
    kernel<<<grid, kThreads, 0, stream>>>(p, count, Division(static_cast<uint32_t>(p.heads)),
                                          Division(static_cast<uint32_t>(p.time)));
    return cudaGetLastError();
  };
  return vectors ? run(copy_rows<Access::vectors>) : run(copy_rows<Access::neighbours>);
}

}  // namespace sb::cuda
