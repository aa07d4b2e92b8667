// Copies of tensor boxes to shared memory by the Tensor Memory Accelerator (TMA). One thread starts a copy; a barrier
// in shared memory counts the bytes that have arrived.
#pragma once
#include <cuda.h>

#include <initializer_list>

#include "kernels/cuda/ptx.cuh"

namespace sb::cuda {

struct CopyBarrier {
  alignas(8) uint64_t bits;
  // Call from one thread, before a barrier of all threads
  __device__ void init() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&bits)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&bits)), "r"(bytes)
                 : "memory");
  }
  // Waits for the copies of this round (0, 1, ...)
  __device__ void wait(int round) {
    asm volatile(
        "{.reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;}" ::"r"(shared_address(&bits)),
        "r"(round & 1)
        : "memory");
  }
};

// Copies the box at (column, second, third, fourth) of a tensor. Elements outside the tensor become zero.
__device__ inline void copy_box(uint32_t to, const CUtensorMap& map, int column, int second, int third, int fourth,
                                CopyBarrier& done) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(reinterpret_cast<uint64_t>(&map)), "r"(column), "r"(second), "r"(third), "r"(fourth),
      "r"(shared_address(&done.bits))
      : "memory");
}
// Copies all panels of a tile
template <class Tile>
__device__ inline void copy_tile(uint32_t to, const CUtensorMap& map, int second, int third, int fourth,
                                 CopyBarrier& done) {
#pragma unroll
  for (int p = 0; p < Tile::panels; ++p)
    copy_box(to + static_cast<uint32_t>(p * Tile::panel), map, p * Tile::panel_columns, second, third, fourth, done);
}

// Shape of a bf16 tensor [fourth][third][second][column]; strides in elements, multiples of 8.
struct TensorShape {
  int64_t columns, second, third, fourth, second_stride, third_stride, fourth_stride;
};
// Creates the TMA descriptor for boxes of this size. wide_rows: 128-byte swizzle, as in PanelTile<., ., 128>; else 64.
cudaError_t tensor_map(CUtensorMap& map, const void* data, const TensorShape& shape, int box_columns, int box_second,
                       int box_third, bool wide_rows);

}  // namespace sb::cuda
