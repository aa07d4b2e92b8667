#include "kernels/cuda/forgetting_attention.h"

#include "kernels/cuda/tile_copies.cuh"
#include "kernels/cuda/tiles.cuh"
#include "kernels/least_log_decay.h"

namespace sb::cuda {
namespace {

constexpr int kTile = 64;  // keys, or queries
constexpr int kWarps = 4;  // 16 keys each
constexpr int kThreads = 32 * kWarps;

__device__ inline bf16* row_of(const Rows& rows, int64_t b, int64_t t, int64_t h) {
  return static_cast<bf16*>(rows.data) + b * rows.batch + t * rows.time + h * rows.head;
}
__device__ inline const bf16* row_of(const ConstRows& rows, int64_t b, int64_t t, int64_t h) {
  return static_cast<const bf16*>(rows.data) + b * rows.batch + t * rows.time + h * rows.head;
}

// One warp per sequence and head
__global__ void __launch_bounds__(kThreads) columns_kernel(ForgettingAttention p, Rows q, Rows k) {
  const int64_t pair = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (pair >= p.batch * p.heads) return;
  const int64_t b = pair / p.heads, h = pair % p.heads;
  const float* g = p.g + b * p.g_batch + h * p.g_head;
  const auto log_at = [&](int64_t t) {
    const float log = g[t * p.g_time];
    return log < kLeastLogForget ? kLeastLogForget : log;
  };
  double before = 0;  // c, counted from the first query on, so that keys near the queries have the smallest error
  for (int64_t t = lane_id(); t < p.offset; t += 32) before -= log_at(t);
  if (p.offset > 0) before = __shfl_sync(~0u, sum_up_to(before, lane_id()), 31);
  for (int64_t first = 0; first < p.time; first += 32) {
    const int64_t t = first + lane_id();
    const double sum = before + sum_up_to<double>(t < p.time ? log_at(t) : 0.f, lane_id());
    before = __shfl_sync(~0u, sum, 31);
    if (t >= p.time) continue;
    bf16* const to_k = row_of(k, b, t, h) + p.width;
    bf16* const to_q = t < p.offset ? nullptr : row_of(q, b, t - p.offset, h) + p.width;
    double rest = -sum / p.scale;
    for (int i = 0; i < p.padded - p.width; ++i) {
      const bool used = i < kForgettingColumns;
      const bf16 part = from_float<bf16>(used ? static_cast<float>(rest) : 0.f);
      rest -= to_float(part);
      if (to_q) to_q[i] = from_float<bf16>(used ? 1.f : 0.f);
      to_k[i] = part;
    }
  }
}

template <int W>
constexpr int kLeading = W + 8;  // of a tile's rows, in elements

template <int W>
constexpr int kTileSize = kTile* kLeading<W>;

template <int W>
size_t shared_bytes(int64_t time) {
  const size_t whole = static_cast<size_t>((time + kTile - 1) / kTile * kTile);
  return 4 * kTileSize<W> * sizeof(bf16) + (kWarps * kTile + 3 * whole) * sizeof(float);
}

// Rows of one tensor, of one sequence and head
struct HeadOf {
  const bf16* data;
  int64_t stride;
  __device__ HeadOf(const ConstRows& rows, int64_t b, int64_t h) : data(row_of(rows, b, 0, h)), stride(rows.time) {}
};

// Starts copying the 64 rows from `first` on. Rows behind the last and columns behind `padded` become zero.
template <int W>
__device__ inline void copy_rows(bf16* tile, const HeadOf& from, int first, int time, int padded) {
  constexpr int pieces = W / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * pieces; i += kThreads) {
    const int row = i / pieces, column = i % pieces * 8;
    const bool inside = first + row < time && column < padded;
    copy_async(tile + row * kLeading<W> + column, inside ? from.data + (first + row) * from.stride + column : from.data,
               inside ? 16 : 0);
  }
}

// D of every frame, in float32: eight lanes per row
__device__ inline void row_products(float* to, const HeadOf& x, const HeadOf& y, int time, int whole, int padded) {
  const int part = lane_id() & 7;
#pragma unroll 2
  for (int t = static_cast<int>(threadIdx.x) / 8; t < whole; t += kThreads / 8) {
    float sum = 0;
    for (int column = part * 8; column < padded && t < time; column += 64) {
      const uint4 a = *reinterpret_cast<const uint4*>(x.data + t * x.stride + column);
      const uint4 b = *reinterpret_cast<const uint4*>(y.data + t * y.stride + column);
      const uint32_t left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 u = unpack(left[i]), v = unpack(right[i]);
        sum += u.x * v.x + u.y * v.y;
      }
    }
#pragma unroll
    for (int by = 1; by < 8; by *= 2) sum += __shfl_xor_sync(~0u, sum, by);
    if (part == 0) to[t] = sum;
  }
}

// Sums of x[e] over the eight lanes of equal lane % 4, e = (lane / 16, lane / 8 % 2, lane / 4 % 2) in binary
__device__ inline float scattered_sum(float (&x)[8]) {
  const int lane = lane_id();
  fold_sums<4, 16>(x, lane);
  fold_sums<2, 8>(x, lane);
  fold_sums<1, 4>(x, lane);
  return x[0];
}

// dS of this warp's 16 keys and a tile of queries, as its transpose: adds to the sums of keys g and g + 8, and writes
// the sums of queries. lse (in base 2) and D are those of the tile. `diagonal`: keys and queries are the same frames.
template <int W>
__device__ inline void sum_tile(float (&of_keys)[2], float* of_queries, const Left<bf16> (&keys)[W / 16],
                                const Left<bf16> (&values)[W / 16], const bf16* q, const bf16* d_out, const float* lse,
                                const float* D, float scale, int depth, bool diagonal) {
  constexpr int ld = kLeading<W>;
  const int lane = lane_id(), key = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int first = 0; first < kTile; first += 32) {
    Sum s[4], dp[4];
    clear(s), clear(dp);
#pragma unroll
    for (int step = 0; step < W / 16; ++step) {
      if (16 * step >= depth) break;
      multiply_step<false>(s, keys[step], 16 * step, q + first * ld, ld, false);
      multiply_step<false>(dp, values[step], 16 * step, d_out + first * ld, ld, false);
    }
    float of_query[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int query = first + 8 * i + 2 * (lane & 3);
      const float2 l = *reinterpret_cast<const float2*>(lse + query), d = *reinterpret_cast<const float2*>(D + query);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool seen = !diagonal || key + j / 2 * 8 <= query + j % 2;
        const float weight = seen ? exp2_fast(fmaf(s[i][j], scale, j % 2 ? -l.y : -l.x)) : 0.f;
        const float x = weight * (dp[i][j] - (j % 2 ? d.y : d.x));
        of_keys[j / 2] += x;
        of_query[2 * i + j % 2] += x;
      }
    }
    const float sum = scattered_sum(of_query);
    const int e = lane / 16 * 4 + lane / 8 % 2 * 2 + lane / 4 % 2;
    of_queries[first + e / 2 * 8 + 2 * (lane & 3) + e % 2] = sum;
  }
}

// One block per sequence and head; loops over tiles of keys, and for each over the tiles of queries from it on.
template <int W>
__global__ void __launch_bounds__(kThreads) gates_kernel(ForgettingAttention p, ForgettingGradient d) {
  extern __shared__ __align__(128) char forgetting_shared[];
  constexpr int size = kTileSize<W>;
  const int time = static_cast<int>(p.time), padded = static_cast<int>(p.padded), depth = (padded + 15) / 16 * 16;
  const int tiles = (time + kTile - 1) / kTile, whole = tiles * kTile;
  bf16* const stages = reinterpret_cast<bf16*>(forgetting_shared);        // two of q and d_out, or keys and values
  float* const of_queries = reinterpret_cast<float*>(stages + 4 * size);  // by warp
  float *const lse = of_queries + kWarps * kTile, *const D = lse + whole, *const dc = D + whole;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = lane_id();
  const int64_t b = blockIdx.x / p.heads, h = blockIdx.x % p.heads;
  const HeadOf q(d.q, b, h), k(d.k, b, h), v(d.v, b, h), out(d.out, b, h), d_out(d.d_out, b, h);
  const float* const given = d.lse + (b * p.heads + h) * p.time;
  for (int t = thread; t < whole; t += kThreads) {
    lse[t] = t < time ? given[t] * kLog2EFloat : INFINITY;  // no weight behind the last frame
    dc[t] = 0;
  }
  row_products(D, out, d_out, time, whole, padded);
  const auto fetch = [&](int n) {
    bf16* const stage = stages + n % 2 * 2 * size;
    copy_rows<W>(stage, q, n * kTile, time, padded);
    copy_rows<W>(stage + size, d_out, n * kTile, time, padded);
  };
  for (int m = 0; m < tiles; ++m) {
    __syncthreads();
    copy_rows<W>(stages, k, m * kTile, time, padded);
    copy_rows<W>(stages + size, v, m * kTile, time, padded);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
    Left<bf16> keys[W / 16], values[W / 16];
#pragma unroll
    for (int step = 0; step < W / 16; ++step) {
      load(keys[step], stages + warp * 16 * kLeading<W> + 16 * step, kLeading<W>);
      load(values[step], stages + size + warp * 16 * kLeading<W> + 16 * step, kLeading<W>);
    }
    __syncthreads();
    fetch(m);
    copy_commit();
    float of_keys[2] = {0, 0};
    for (int n = m; n < tiles; ++n) {
      if (n + 1 < tiles) fetch(n + 1);
      copy_commit();
      copy_wait<1>();
      __syncthreads();
      const bf16* const stage = stages + n % 2 * 2 * size;
      sum_tile<W>(of_keys, of_queries + warp * kTile, keys, values, stage, stage + size, lse + n * kTile, D + n * kTile,
                  p.scale * kLog2EFloat, depth, n == m);
      __syncthreads();
      if (thread < kTile) {
        float sum = 0;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) sum += of_queries[w * kTile + thread];
        dc[n * kTile + thread] += sum;
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float sum = of_keys[i];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      if (lane % 4 == 0) dc[m * kTile + warp * 16 + lane / 4 + 8 * i] -= sum;
    }
  }
  __syncthreads();
  if (warp > 0) return;
  double behind = 0;
  for (int first = whole - 32; first >= 0; first -= 32) {
    const int t = first + lane;
    const double sum = behind + sum_from<double>(dc[t], lane);
    behind = __shfl_sync(~0u, sum, 0);
    if (t >= time) continue;
    const bool least = p.g[b * p.g_batch + t * p.g_time + h * p.g_head] < kLeastLogForget;
    d.dg[b * d.dg_batch + t * d.dg_time + h * d.dg_head] = least ? 0.f : static_cast<float>(sum);
  }
}

template <int W>
cudaError_t launch_gates(const ForgettingAttention& p, const ForgettingGradient& d, Target to) {
  return launch(gates_kernel<W>, static_cast<unsigned>(p.batch * p.heads), kThreads, shared_bytes<W>(p.time), to, p, d);
}
cudaError_t launch_gates(const ForgettingAttention& p, const ForgettingGradient& d, Target to) {
  if (p.padded <= 64) return launch_gates<64>(p, d, to);
  if (p.padded <= 128) return launch_gates<128>(p, d, to);
  if (p.padded <= 192) return launch_gates<192>(p, d, to);
  return launch_gates<256>(p, d, to);
}

bool is_valid(const ForgettingAttention& p) {
  return p.batch > 0 && p.heads > 0 && p.time > 0 && p.batch * p.heads < int64_t{1} << 31 && p.padded % 8 == 0 &&
         p.width > 0 && p.width + kForgettingColumns <= p.padded && p.offset >= 0 && p.offset < p.time;
}
bool is_aligned(const ConstRows& rows) {
  return reinterpret_cast<uintptr_t>(rows.data) % 16 == 0 && rows.batch % 8 == 0 && rows.time % 8 == 0 &&
         rows.head % 8 == 0;
}

}  // namespace

bool forgetting_attention_fits(int64_t time, int64_t padded) {
  if (padded > 256 || time > 1 << 16) return false;
  ForgettingAttention p{};
  p.time = time, p.padded = padded;
  return launch_gates(p, {}, Target::nowhere()) == cudaSuccess;
}

cudaError_t forgetting_attention_columns(const ForgettingAttention& p, const Rows& q, const Rows& k,
                                         cudaStream_t stream) {
  if (!is_valid(p)) return cudaErrorInvalidValue;
  columns_kernel<<<static_cast<unsigned>((p.batch * p.heads + kWarps - 1) / kWarps), kThreads, 0, stream>>>(p, q, k);
  return cudaGetLastError();
}

cudaError_t forgetting_attention_gates(const ForgettingAttention& p, const ForgettingGradient& d, cudaStream_t stream) {
  if (!is_valid(p) || p.offset > 0 || !forgetting_attention_fits(p.time, p.padded)) return cudaErrorInvalidValue;
  for (const ConstRows& rows : {d.q, d.k, d.v, d.out, d.d_out})
    if (!is_aligned(rows)) return cudaErrorInvalidValue;
  return launch_gates(p, d, stream);
}

}  // namespace sb::cuda
