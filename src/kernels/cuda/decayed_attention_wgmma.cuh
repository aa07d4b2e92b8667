// Shared parts of the kernels that use warp groups: tiles of 64 steps x 128 keys and of 64 steps (or 128 keys) x VP
// values, the decays of a chunk, and a state in the accumulators of two groups.
#pragma once
#include <type_traits>

#include "kernels/cuda/decayed_attention_kernels.cuh"
#include "kernels/cuda/tensor_copy.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace sb::cuda::attention {

inline constexpr int kGroupKeys = 128;

using KeyTile = PanelTile<kChunk, kGroupKeys, 128>;
using PairTile = PanelTile<kChunk, kChunk, 128>;
template <int VP>
using ValueTile = PanelTile<kChunk, VP, 64>;
template <int VP>
using GroupStateTile = PanelTile<kGroupKeys, VP, 64>;

__device__ inline void threads_barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

__device__ inline void threads_arrive(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// Address of a pair of adjacent elements in a tile. `at`: Tile::place(row, 0) plus four bytes per pair within the part.
// `part` should be a compile-time constant.
template <class Tile>
__device__ inline uint32_t* pair_of(unsigned char* tile, int at, int part) {
  constexpr int each = Tile::panel_columns / 8;
  return reinterpret_cast<uint32_t*>(tile + part / each * Tile::panel + (at ^ part % each * 16));
}

// Multiplies the thread's two rows of a product
template <int Tiles>
__device__ __forceinline__ void scale_rows(float (&x)[Tiles][4], const float (&by)[2]) {
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) x[n][e] *= by[e / 2];
}

// Decays of a chunk in base 2 (like StepDecays for bf16 products), and the write factors of its steps.
struct GroupSteps {
  float sum[kChunk], since[kChunk], until[kChunk], write[kChunk];
  __device__ float total() const { return since[kChunk - 1]; }
  // Executed by one warp. g and factors start at the chunk's first step; `steps` of them are valid, more than 64 if
  // other chunks follow. again: factors with which a step writes the one before again. own: factors without them.
  __device__ void scan(const float* g, int64_t g_time, const float* factors, const float* again, int64_t factor_time,
                       float* own, int steps, int lane) {
    float x[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = 2 * lane + i;
      x[i] = g && t < steps ? at_least(g[t * g_time], kLeastLogDecayFloat) * kLog2EFloat : 0.f;
      write[t] = t >= steps ? 0.f : factors ? factors[t * factor_time] : 1.f;
      if (own) own[t] = write[t];
      if (again && t + 1 < steps) write[t] += again[(t + 1) * factor_time];
    }
    float all, before = sum_before(x[0] + x[1], lane, &all);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      before += x[i];
      sum[2 * lane + i] = before;
      since[2 * lane + i] = exp2_fast(before);
      until[2 * lane + i] = exp2_fast(at_most(all - before, 0.f));
    }
  }
};

// The same, with the factors by which a loop over chunks multiplies the keys of steps 2 i and 2 i + 1: rounded to bf16,
// and the rounding error.
struct WalkSteps : GroupSteps {
  uint2 factors[kChunk / 2];
  __device__ void set_factors(float first, float second, int lane) {
    const uint32_t high = pack(first, second);
    const float2 kept = unpack(high);
    factors[lane] = {high, pack(first - kept.x, second - kept.y)};
  }
};
__device__ inline uint32_t times_factors(uint32_t x, uint2 factors) {
  const auto pair = [](const uint32_t& bits) { return *reinterpret_cast<const __nv_bfloat162*>(&bits); };
  const __nv_bfloat162 y = __hfma2(pair(x), pair(factors.x), __hmul2(pair(x), pair(factors.y)));
  return *reinterpret_cast<const uint32_t*>(&y);
}

// Addresses of the log-decays and write factors of one sequence and head
struct StepSources {
  const float *g, *write, *before;
  int64_t g_time, write_time;
  __device__ StepSources(const DecayedAttention& p, int b, int h)
      : g(p.g ? p.g + b * p.g_batch + h * p.g_head : nullptr),
        write(p.write ? p.write + b * p.write_batch + h * p.write_head : nullptr),
        before(p.before ? p.before + b * p.write_batch + h * p.write_head : nullptr),
        g_time(p.g_time),
        write_time(p.write_time) {}
  // steps: valid ones from `begin` on; own: null, or memory for the factors without `before`
  __device__ void scan(GroupSteps& to, int begin, int steps, int lane, float* own = nullptr) const {
    to.scan(g ? g + begin * g_time : nullptr, g_time, write ? write + begin * write_time : nullptr,
            before ? before + begin * write_time : nullptr, write_time, own, steps, lane);
  }
};

// Address of a head's row at step `time`
template <class Void>
__device__ inline auto* head_rows(const RowsOf<Void>& rows, int64_t b, int64_t time, int64_t head) {
  using E = std::conditional_t<std::is_const_v<Void>, const bf16, bf16>;
  return static_cast<E*>(rows.data) + b * rows.batch + time * rows.time + head * rows.head;
}

// TMA descriptors (tensor_copy.cuh). rows_map: for rows [B,T,heads,width], with boxes of 64 steps of one head.
// states_map: for states [.,K,V], with boxes of one state.
template <class Tile, class Void>
cudaError_t rows_map(CUtensorMap& map, const RowsOf<Void>& rows, const Sizes& z, int heads, int width) {
  return tensor_map(map, rows.data, {width, heads, z.T, z.B, rows.head, rows.time, rows.batch}, Tile::panel_columns, 1,
                    Tile::rows, Tile::panel_columns == 64);
}
template <class Tile>
cudaError_t states_map(CUtensorMap& map, const void* states, const Sizes& z) {
  return tensor_map(map, states, {z.V, z.K, z.states(), 1, z.V, z.state_size(), z.state_size() * z.states()},
                    Tile::panel_columns, Tile::rows, 1, false);
}

// This thread's part of a state [128, VP] that is distributed over two groups. In device memory the state is [K, V].
template <int VP>
struct GroupState {
  using Tile = GroupStateTile<VP>;
  float x[VP / 8][4];
  int row, pair;
  __device__ explicit GroupState(int thread) : row(thread / 32 * 16 + thread % 32 / 4), pair(thread % 4) {}
  template <class Body>
  __device__ void for_pairs(const Body& body) {
#pragma unroll
    for (int n = 0; n < VP / 8; ++n)
#pragma unroll
      for (int up = 0; up < 2; ++up) body(row + 8 * up, n * 8 + pair * 2, x[n][2 * up], x[n][2 * up + 1]);
  }
  __device__ void read(const float* from, int K, int V) {
    for_pairs([&](int r, int c, float& a, float& b) {
      const bool inside = from && r < K && c < V;
      a = inside ? from[r * V + c] : 0.f;
      b = inside ? from[r * V + c + 1] : 0.f;
    });
  }
  __device__ void write(float* to, int K, int V) {
    for_pairs([&](int r, int c, float a, float b) {
      if (r < K && c < V) *reinterpret_cast<float2*>(to + r * V + c) = {a, b};
    });
  }
  __device__ void to_tile(unsigned char* tile) {
    const int at = Tile::place(row, 0) + pair * 4;
#pragma unroll
    for (int n = 0; n < VP / 8; ++n)
#pragma unroll
      for (int up = 0; up < 2; ++up) *pair_of<Tile>(tile, at + up * 8 * 64, n) = pack(x[n][2 * up], x[n][2 * up + 1]);
  }
  // Starts x <- total x + (factors keys)^T values over the chunk's steps; call wgmma_wait before reading x
  __device__ void advance(const WalkSteps& steps, const unsigned char* keys, uint32_t values) {
    const float total = steps.total();
#pragma unroll
    for (int n = 0; n < VP / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) x[n][i] *= total;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const unsigned char* const from = keys + KeyTile::place(lane / 16 * 8 + lane % 8, warp * 2 + lane / 8 % 2);
    uint32_t left[kChunk / 16][4];
#pragma unroll
    for (int s = 0; s < kChunk / 16; ++s) {
      load_matrices_transposed(left[s], from + s * 16 * 128);
#pragma unroll
      for (int i = 0; i < 4; ++i) left[s][i] = times_factors(left[s][i], steps.factors[8 * s + i / 2 * 4 + pair]);
    }
    wgmma_fence();
    start_product(x, left, Down<ValueTile<VP>>{values});
    wgmma_commit();
  }
};

// Copies a state tile to device memory [K, V], V a multiple of 8; executed by two groups
template <int VP>
__device__ inline void store_state(bf16* to, const unsigned char* tile, int K, int V, int thread) {
  constexpr int parts = VP / 8, used = 2 * kGroupThreads / (8 * parts) * (8 * parts), step = used / parts;
  const int first = thread / parts, part = thread % parts, place = GroupStateTile<VP>::place(first, part);
  if (thread >= used || part * 8 >= V) return;
#pragma unroll
  for (int r = 0; r < kGroupKeys; r += step)
    if (first + r < K)
      *reinterpret_cast<uint4*>(to + (first + r) * V + part * 8) =
          *reinterpret_cast<const uint4*>(tile + place + r * 64);
}

}  // namespace sb::cuda::attention
