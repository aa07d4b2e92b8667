// Shared parts of the decayed-attention kernels: sizes, kernel arguments, launches, and tiles of states.
#pragma once
#include "kernels/cuda/attention_tiles.cuh"

namespace sb::cuda::attention {

// Sizes of a problem. Kept states and their gradients are [B,H,chunks,K,value_row] in the operands' type; value_row is
// V rounded up to a multiple of 8.
struct Sizes {
  int B, T, H, G, K, V;
  int chunks, value_row, per_group;
  int parts;  // number of blocks that share the heads of a group in the backward pass
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

struct ForwardArguments {
  DecayedAttention p;
  Sizes z;
  Rows out;
  float* final_state;
  void* kept;
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

template <class Arguments>
cudaError_t launch(void (*kernel)(Arguments), dim3 grid, size_t shared, const Arguments& arguments, cudaStream_t stream,
                   int threads = kBlock) {
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (status != cudaSuccess) return status;
  kernel<<<grid, threads, shared, stream>>>(arguments);
  return cudaGetLastError();
}

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
  __device__ void advance(const Element<P>* left, int ld_left, const Element<P>* right, int ld_right, const Place& at,
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

// Sums x over the lanes whose numbers differ only in the bits from..to / 2 (powers of two)
__device__ inline float sum_lanes(float x, int from, int to) {
  for (int by = from; by < to; by *= 2) x += __shfl_xor_sync(~0u, x, by);
  return x;
}
// Inclusive prefix sum of 64 values, two per lane, in the order of the lanes.
__device__ inline void running_sums(float (&x)[2], int lane) {
  float before = x[0] + x[1];
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const float y = __shfl_up_sync(~0u, before, by);
    if (lane >= by) before += y;
  }
  before = __shfl_up_sync(~0u, before, 1);
  if (lane == 0) before = 0;
  x[0] += before;
  x[1] += x[0];
}

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

// Whether the warp-group kernels (bf16, 64 < K <= 128, V <= 96) support these inputs, or this forward or backward pass.
bool by_groups(const DecayedAttention& p, const Sizes& z);
bool by_groups(const ForwardArguments& a);
bool by_groups(const BackwardArguments& a);
cudaError_t group_forward(const ForwardArguments& a, cudaStream_t stream);
cudaError_t group_backward(const BackwardArguments& a, cudaStream_t stream);
cudaError_t scalar_forward(const ForwardArguments& a, cudaStream_t stream);
cudaError_t scalar_backward(const BackwardArguments& a, cudaStream_t stream);
cudaError_t vector_forward(const ForwardArguments& a, cudaStream_t stream);
cudaError_t vector_backward(const BackwardArguments& a, cudaStream_t stream);
cudaError_t vector_channel_backward(const BackwardArguments& a, cudaStream_t stream);

}  // namespace sb::cuda::attention
