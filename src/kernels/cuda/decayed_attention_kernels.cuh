// Shared parts of the decayed-attention kernels: sizes, kernel arguments, launches, tiles of states, and the decays of
// a chunk. A block has eight warps; a chunk has 64 steps.
#pragma once
#include <initializer_list>

#include "kernels/cuda/decayed_attention.h"
#include "kernels/cuda/segments.cuh"
#include "kernels/cuda/tile_copies.cuh"
#include "kernels/least_log_decay.h"

namespace sb::cuda::attention {

// Sizes of a problem. Kept states and their gradients are [B,H,chunks,K,value_row] in the operands' type; value_row is
// V rounded up to a multiple of 8.
struct Sizes {
  int B, T, H, G, K, V;
  int chunks, value_row, per_group;
  int parts;  // number of blocks that share the heads of a group in the backward pass
  Segments segments;
  explicit Sizes(const DecayedAttention& p)
      : B(static_cast<int>(p.batch)),
        T(static_cast<int>(p.time)),
        H(static_cast<int>(p.heads)),
        G(static_cast<int>(p.groups)),
        K(static_cast<int>(p.key_width)),
        V(static_cast<int>(p.value_width)),
        chunks((T + kChunk - 1) / kChunk),
        value_row((V + 7) / 8 * 8),
        per_group(H / G),
        parts(1) {
    if (p.decay == Decay::vector) parts = per_group;  // one block per head
    constexpr int enough = 512, most_heads = 32;      // enough: several blocks per multiprocessor
    while (parts < per_group && (per_group % parts != 0 || per_group / parts > most_heads ||
                                 static_cast<int64_t>(B) * chunks * G * parts < enough))
      ++parts;
    constexpr int first_share = 4;  // tenths: one of three products per chunk, and half of the loads
    const int64_t pairs = static_cast<int64_t>(B) * H;
    segments = divide(T, chunks, {{pairs, 10}}, {{pairs, first_share}});
  }
  __host__ __device__ int64_t state_size() const { return static_cast<int64_t>(K) * value_row; }
  __host__ __device__ int64_t states() const { return static_cast<int64_t>(B) * H * chunks; }
  __host__ __device__ int key_row() const { return (K + 7) / 8 * 8; }
};

// Layout of what the forward pass keeps of every chunk: the initial state and, for Decay::vector, the decayed queries
// and keys, the pairs P, and the chunk's decays [K] (`factors`, in fp32). Offsets are in elements of the operands'
// type; `factors` and `bytes` are in bytes.
struct Kept {
  int64_t states = 0, queries, keys, pairs, factors, bytes;
  __host__ __device__ Kept(const Sizes& z, bool vector, int element_bytes) {
    const int64_t rows = vector ? kChunk * z.key_row() : 0;
    queries = z.states() * z.state_size();
    keys = queries + z.states() * rows;
    pairs = keys + z.states() * rows;
    factors = ((pairs + (vector ? z.states() * kChunk * kChunk : 0)) * element_bytes + 255) / 256 * 256;
    bytes = factors + (vector ? z.states() * z.K * 4 : 0);
  }
};

// What the first pass over several segments (segments.cuh) finds, [B,H,segments] followed by: the states that segments
// add [K,V], and their decays, [K] for Decay::vector. join_segments() replaces the former by initial states, or by
// gradients of final states. Null in the usual pass.
struct Joints {
  float *states = nullptr, *decays = nullptr;
};

struct ForwardArguments {
  DecayedAttention p;  // with several segments, initial_state is that of every segment in the usual pass
  Sizes z;
  Rows out;
  float* final_state;
  void* kept;
  Joints first = {};
};
struct BackwardArguments {
  DecayedAttention p;
  Sizes z;
  DecayedAttentionGradients d;
  const void* kept;
  void* state_gradients;       // of the state after each chunk, in the layout of kept states
  float *dq_parts, *dk_parts;  // [parts,B,T,G,K]; used if parts > 1
  float* dg_parts;             // [B,H,chunks]; for Decay::fixed
  float* skip_parts;           // [B,H,chunks]; with a skip
  void* by_state;              // Decay::vector: gradients of the kept queries, then keys, then pairs
  float* along;                // Decay::vector: <dS, S> of each key channel, [B,H,chunks,K]
  Joints first = {};
};

// Lays out the shared memory of a kernel in pieces that are aligned to 16 bytes.
struct Pieces {
  size_t used = 0;
  template <class E>
  __host__ __device__ size_t take(size_t count) {
    const size_t at = used;
    used += (count * sizeof(E) + 15) / 16 * 16;
    return at;
  }
};

// Decays of a chunk with one factor per step. Sums of logarithms are in double, so that their differences stay accurate
// after a strong decay. For bf16 products, sums of base-2 logarithms in float are sufficient.
struct StepDecays {
  double sum[kChunk];       // sum of the log-decays of steps 0..i
  float short_sum[kChunk];  // the same in base 2
  float since[kChunk];      // e^{sum_i}: from the chunk's start to after step i
  float until[kChunk];      // from after step i to the chunk's end
  __device__ float total() const { return since[kChunk - 1]; }
  // Decay from after step j to after step i >= j; 0 for i < j
  template <Product P>
  __device__ float between(int j, int i) const {
    if constexpr (P == Product::bf16)
      return i < j ? 0.f : exp2_fast(short_sum[i] - short_sum[j]);
    else
      return i < j ? 0.f : expf(static_cast<float>(sum[i] - sum[j]));
  }
  // Executed by one warp. g: log-decays from the chunk's first step on; null: no decay.
  __device__ void scan(const float* g, int64_t stride, int steps, int lane) {
    double x[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = 2 * lane + i;
      x[i] = g && t < steps ? at_least(g[t * stride], kLeastLogDecayFloat) : 0.;
    }
    double before = sum_up_to(x[0] + x[1], lane);
    const double all = __shfl_sync(~0u, before, 31);
    before = shift_up(before, 1, lane);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      before += x[i];
      sum[2 * lane + i] = before;
      short_sum[2 * lane + i] = static_cast<float>(before * kLog2E);
      since[2 * lane + i] = expf(static_cast<float>(before));
      until[2 * lane + i] = expf(static_cast<float>(all - before));
    }
  }
};

// One warp's part of a state [K, V] in accumulators. The warps divide the rows in two and the columns in four.
template <int KP, int VS>
struct StateTile {
  static constexpr int M = KP / 32, N = VS / 32;
  float x[M][N][4];
  int row0, column0;
  __device__ explicit StateTile(const Place& at) : row0(at.warp % 2 * (KP / 2)), column0(at.warp / 2 * (VS / 4)) {}
  // from: [K, V], or null for zeros; reads the columns from `first` on
  __device__ void read(const float* from, int K, int V, int first, const Place& at) {
    for_pairs(x, at, [&](int r, int c, float& a, float& b) {
      const int row = row0 + r, column = first + column0 + c;
      a = from && row < K && column < V ? from[row * V + column] : 0.f;
      b = from && row < K && column + 1 < V ? from[row * V + column + 1] : 0.f;
    });
  }
  __device__ void write(float* to, int K, int V, int first, const Place& at) {
    for_pairs(x, at, [&](int r, int c, float a, float b) {
      const int row = row0 + r, column = first + column0 + c;
      if (row < K && column < V) to[row * V + column] = a;
      if (row < K && column + 1 < V) to[row * V + column + 1] = b;
    });
  }
  template <class E>
  __device__ void to_shared(E* tile, int ld, const Place& at) {
    for_pairs(x, at, [&](int r, int c, float a, float b) { store_pair(tile + (row0 + r) * ld + column0 + c, a, b); });
  }
  // x <- factor(row) x + left^T right over the chunk's steps
  template <Product P, class Factor>
  __device__ void advance(const Operand<P>* left, int ld_left, const Operand<P>* right, int ld_right, const Place& at,
                          const Factor& factor) {
    if constexpr (P == Product::bf16) {
      for_pairs(x, at, [&](int r, int, float& a, float& b) {
        const float f = factor(row0 + r);
        a *= f;
        b *= f;
      });
      multiply<P, Depth::slow, Depth::slow, kChunk>(x, left + row0, ld_left, right + column0, ld_right, at.lane);
    } else {  // sums over many chunks must be rounded to nearest; the tensor cores truncate
      float added[M][N][4];
      clear(added);
      multiply<P, Depth::slow, Depth::slow, kChunk>(added, left + row0, ld_left, right + column0, ld_right, at.lane);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            x[m][n][i] = fmaf(factor(row0 + m * 16 + i / 2 * 8 + at.row), x[m][n][i], added[m][n][i]);
    }
  }
};

// Copies a state tile from shared memory to device memory, from column `first` on.
template <int KP, int VS, class E>
__device__ inline void write_state(E* to, const E* tile, int ld, const Sizes& z, int first, const Place& at) {
  constexpr int part = 16 / sizeof(E), parts = VS / part;
#pragma unroll 4
  for (int i = at.thread; i < KP * parts; i += kBlock) {
    const int r = i / parts, c = i % parts * part;
    if (r < z.K && first + c < z.value_row)
      *reinterpret_cast<uint4*>(to + static_cast<int64_t>(r) * z.value_row + first + c) =
          *reinterpret_cast<const uint4*>(tile + r * ld + c);
  }
}

// Whether the warp-group kernels (Hopper, bf16, 64 < K <= 128, V <= 96) support these inputs, or this forward or
// backward pass.
bool by_wgmma(const DecayedAttention& p, const Sizes& z);
bool by_wgmma(const ForwardArguments& a);
bool by_wgmma(const BackwardArguments& a);
cudaError_t wgmma_forward(const ForwardArguments& a, cudaStream_t stream);
cudaError_t wgmma_backward(const BackwardArguments& a, cudaStream_t stream);
// Without the warp-group kernels if there is no stream: those are chosen by the addresses of all tensors
cudaError_t scalar_forward(const ForwardArguments& a, Target to);
cudaError_t scalar_backward(const BackwardArguments& a, Target to);
cudaError_t vector_forward(const ForwardArguments& a, Target to);
cudaError_t vector_backward(const BackwardArguments& a, Target to);
cudaError_t vector_channel_backward(const BackwardArguments& a, Target to);

// Runs the first of these functions whose kernels fit on the current device.
template <class Arguments>
cudaError_t run_first(std::initializer_list<cudaError_t (*)(const Arguments&, Target)> runs, const Arguments& a,
                      Target to) {
  for (const auto run : runs)
    if (run(a, Target::nowhere()) == cudaSuccess) return to.none ? cudaSuccess : run(a, to);
  return cudaErrorInvalidConfiguration;
}

}  // namespace sb::cuda::attention
