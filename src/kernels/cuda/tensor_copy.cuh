// Copies of boxes of tensors to shared memory by the copy engine: one thread asks, a barrier in shared memory counts
// the bytes.
#pragma once
#include <cuda.h>

#include <initializer_list>

#include "kernels/cuda/ptx.cuh"

namespace sb::cuda {

struct CopyBarrier {
  alignas(8) uint64_t bits;
  // One thread, before all threads meet
  __device__ void init() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&bits)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&bits)), "r"(bytes)
                 : "memory");
  }
  // The copies of round 0, 1, ... are there
  __device__ void wait(int round) {
    asm volatile(
        "{.reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;}" ::"r"(shared_address(&bits)),
        "r"(round & 1)
        : "memory");
  }
};

// A box at (column, second, third, fourth) of a tensor of four axes; outside of it there are zeros.
__device__ inline void copy_box(uint32_t to, const CUtensorMap& map, int column, int second, int third, int fourth,
                                CopyBarrier& done) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(reinterpret_cast<uint64_t>(&map)), "r"(column), "r"(second), "r"(third), "r"(fourth),
      "r"(shared_address(&done.bits))
      : "memory");
}
// All panels of a tile
template <class Tile>
__device__ inline void copy_tile(uint32_t to, const CUtensorMap& map, int second, int third, int fourth,
                                 CopyBarrier& done) {
#pragma unroll
  for (int p = 0; p < Tile::panels; ++p)
    copy_box(to + static_cast<uint32_t>(p * Tile::panel), map, p * Tile::panel_columns, second, third, fourth, done);
}

// The map of a tensor of bf16 [fourth][third][second][column] for tiles of Tile, whose rows lie along `rows` (the
// second or the third axis). Strides in elements, multiples of 8.
struct TensorShape {
  int64_t columns, second, third, fourth, second_stride, third_stride, fourth_stride;
};
cudaError_t tensor_map(CUtensorMap& map, const void* data, const TensorShape& shape, int box_columns, int box_second,
                       int box_third, bool wide_rows);

}  // namespace sb::cuda
