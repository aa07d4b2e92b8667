// Shared parts of the gates: kernels in which a thread processes any pack of any row.
#pragma once
#include "kernels/cuda/gates.h"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda {

template <Access A>
using Pack = Columns<A, 1>;  // a thread's pack is any of a row

// body(columns, row, pack) for every pack of every row
template <Access A, class Body>
__global__ void __launch_bounds__(kThreads)
    each_pack(const __grid_constant__ PackCount count, int width, const __grid_constant__ Body body) {
  const Pack<A> at{0, width, width};
  for_packs(count, [&](int row, int pack) { body(at, row, pack); });
}

template <Access A, class Body>
cudaError_t run_packs(const GateRows& p, const Body& body, cudaStream_t stream) {
  const PackCount count(p.rows, p.width);
  if (count.all == 0) return cudaSuccess;
  const auto kernel = each_pack<A, Body>;
  kernel<<<walking_blocks(kernel, count.blocks(), 1 << 30), kThreads, 0, stream>>>(count, p.width, body);
  return cudaGetLastError();
}
template <class Body>
cudaError_t launch_packs(const GateRows& p, bool vectors, const Body& body, cudaStream_t stream) {
  return vectors ? run_packs<Access::vectors>(p, body, stream) : run_packs<Access::neighbours>(p, body, stream);
}

__device__ inline float log_sigmoid(float v) {
  return fminf(v, 0.f) - log1pf(expf(-fabsf(v)));
}

inline bool valid(const GateRows& p) {
  return p.rows >= 0 && p.width > 0 && PackCount(p.rows, p.width).valid();
}

}  // namespace sb::cuda
