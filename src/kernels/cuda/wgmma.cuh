// Warp-group products (wgmma) of bf16 tiles in shared memory, and the layout of these tiles. A group has four warps.
// Warp w holds the 16 rows from 16 w on of the product's 64 rows, in the layout of Sum (tiles.cuh).
#pragma once
#include "kernels/cuda/ptx.cuh"

namespace sb::cuda {

// Defined in code for sm_90a, the only architecture with wgmma, and on the host. In code for other architectures, the
// kernels that use it are empty, and by_wgmma() keeps the host from launching them.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SB_WGMMA 1
#endif

inline constexpr int kGroupThreads = 128;

// Call before the first product, and after changing registers that a product uses
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most the last `Pending` commits are unfinished. `acc` must belong to a finished one.
template <int Pending, int N>
__device__ inline void wgmma_wait(float (&acc)[N][4]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
#pragma unroll
  for (int n = 0; n < N; ++n)  // keeps the compiler from reading them earlier
    asm volatile("" : "+f"(acc[n][0]), "+f"(acc[n][1]), "+f"(acc[n][2]), "+f"(acc[n][3])::"memory");
}
// Makes this thread's writes to shared memory visible to products after the next barrier.
__device__ inline void shared_writes_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define SB_ACC(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define SB_ACC8(n) \
  SB_ACC(n), SB_ACC(n + 1), SB_ACC(n + 2), SB_ACC(n + 3), SB_ACC(n + 4), SB_ACC(n + 5), SB_ACC(n + 6), SB_ACC(n + 7)
#define SB_R8(a, b, c, d, e, f, g, h) "%" #a ",%" #b ",%" #c ",%" #d ",%" #e ",%" #f ",%" #g ",%" #h
#define SB_R32                                                                                                        \
  SB_R8(0, 1, 2, 3, 4, 5, 6, 7)                                                                                       \
  "," SB_R8(8, 9, 10, 11, 12, 13, 14, 15) "," SB_R8(16, 17, 18, 19, 20, 21, 22, 23) "," SB_R8(24, 25, 26, 27, 28, 29, \
                                                                                              30, 31)
#define SB_R48 SB_R32 "," SB_R8(32, 33, 34, 35, 36, 37, 38, 39) "," SB_R8(40, 41, 42, 43, 44, 45, 46, 47)
#define SB_R64 SB_R48 "," SB_R8(48, 49, 50, 51, 52, 53, 54, 55) "," SB_R8(56, 57, 58, 59, 60, 61, 62, 63)

// d[64, N] = (add ? d : 0) + a b, over a depth of 16. In memory, the depth of an operand is along its rows, or down its
// columns (a_down, b_down: transposed).
template <int N>
struct GroupProduct;

#define SB_ACC64 SB_ACC8(0)
#define SB_ACC96 SB_ACC64, SB_ACC(8), SB_ACC(9), SB_ACC(10), SB_ACC(11)
#define SB_ACC128 SB_ACC64, SB_ACC8(8)

// i0 to i6: numbers of the operands after the accumulators
#define SB_GROUP_PRODUCT(N, registers, accumulators, i0, i1, i2, i3, i4, i5, i6)                            \
  template <>                                                                                               \
  struct GroupProduct<N> {                                                                                  \
    template <int a_down, int b_down>                                                                       \
    __device__ static void tiles(float (&d)[N / 8][4], uint64_t a, uint64_t b, bool add) {                  \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %" #i2 ", 0; wgmma.mma_async.sync.aligned.m64n" #N        \
                   "k16.f32.bf16.bf16 {" registers "}, %" #i0 ", %" #i1 ", p, 1, 1, %" #i3 ", %" #i4 ";}"   \
                   : accumulators                                                                           \
                   : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(a_down), "n"(b_down));                 \
    }                                                                                                       \
    /* a as the accumulators of two neighbouring 8 columns, rounded */                                      \
    template <int b_down>                                                                                   \
    __device__ static void registers_times_tile(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b) { \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %" #i5 ", 0; wgmma.mma_async.sync.aligned.m64n" #N        \
                   "k16.f32.bf16.bf16 {" registers "}, {%" #i0 ",%" #i1 ",%" #i2 ",%" #i3 "}, %" #i4        \
                   ", p, 1, 1, %" #i6 ";}"                                                                  \
                   : accumulators                                                                           \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1), "n"(b_down));              \
    }                                                                                                       \
  };
SB_GROUP_PRODUCT(64, SB_R32, SB_ACC64, 32, 33, 34, 35, 36, 37, 38)
SB_GROUP_PRODUCT(96, SB_R48, SB_ACC96, 48, 49, 50, 51, 52, 53, 54)
SB_GROUP_PRODUCT(128, SB_R64, SB_ACC128, 64, 65, 66, 67, 68, 69, 70)
#undef SB_GROUP_PRODUCT
#undef SB_ACC
#undef SB_ACC8
#undef SB_ACC64
#undef SB_ACC96
#undef SB_ACC128
#undef SB_R8
#undef SB_R32
#undef SB_R48
#undef SB_R64

// A bf16 tile in shared memory, as panels with rows of `Bytes` bytes (64 or 128). The 16-byte parts of a row are
// swizzled by the row number, so that neither rows nor columns have bank conflicts. Must be aligned to 8 * Bytes.
template <int Rows, int Columns, int Bytes>
struct PanelTile {
  static_assert(Bytes == 64 || Bytes == 128);
  static constexpr int panel = Rows * Bytes, panels = (Columns * 2 + Bytes - 1) / Bytes, bytes = panels * panel;
  static constexpr int panel_columns = Bytes / 2, rows = Rows;
  // Byte offset of a 16-byte part of a row. With e = Bytes / 16 parts per panel row,
  // place(row, part) = part / e * panel + (place(row, 0) ^ 16 * (part % e)).
  __device__ static int place(int row, int part) {
    constexpr int each = Bytes / 16;
    const int turn = Bytes == 128 ? row % 8 : row / 2 % 4;
    return part / each * panel + row * Bytes + ((part % each ^ turn) << 4);
  }
  // Descriptors of an operand for the depths 16 step .. 16 step + 15, which are along the rows or down the columns
  __device__ static uint64_t along(uint32_t tile, int step) {
    constexpr int steps = Bytes / 32;
    return descriptor(tile + static_cast<uint32_t>(step / steps * panel + step % steps * 32), 16);
  }
  __device__ static uint64_t down(uint32_t tile, int step) {
    return descriptor(tile + static_cast<uint32_t>(step * 16 * Bytes), panel);
  }

 private:
  // Address, offset between panels, and offset between groups of eight rows, all in units of 16 bytes; kind of swizzle
  __device__ static uint64_t descriptor(uint32_t address, int leading) {
    constexpr uint64_t stride = 8 * Bytes / 16, exchange = Bytes == 128 ? 1 : 2;
    return (address & 0x3ffff) >> 4 | static_cast<uint64_t>(leading >> 4) << 16 | stride << 32 | exchange << 62;
  }
};

// Operand of a product: a tile at a shared address, whose depth is along its rows or down its columns
template <class Tile>
struct Along {
  static constexpr int down = 0;
  uint32_t tile;
  __device__ uint64_t operator()(int step) const { return Tile::along(tile, step); }
};
template <class Tile>
struct Down {
  static constexpr int down = 1;
  uint32_t tile;
  __device__ uint64_t operator()(int step) const { return Tile::down(tile, step); }
};

// Starts d = (add ? d : 0) + a b over a depth of 16 Steps
template <int Steps, int Tiles, class A, class B>
__device__ __forceinline__ void start_product(float (&d)[Tiles][4], A a, B b, bool add = false) {
#pragma unroll
  for (int s = 0; s < Steps; ++s)
    GroupProduct<8 * Tiles>::template tiles<A::down, B::down>(d, a(s), b(s), add || s > 0);
}
// Starts d += a b, with a in registers
template <int Steps, int Tiles, class B>
__device__ __forceinline__ void start_product(float (&d)[Tiles][4], const uint32_t (&a)[Steps][4], B b) {
#pragma unroll
  for (int s = 0; s < Steps; ++s) GroupProduct<8 * Tiles>::template registers_times_tile<B::down>(d, a[s], b(s));
}

}  // namespace sb::cuda
