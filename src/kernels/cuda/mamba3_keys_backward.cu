#include "kernels/cuda/mamba3_keys.cuh"
#include "kernels/cuda/sizes.h"

namespace sb::cuda {
namespace mamba3 {
namespace {

constexpr int kMaxWarps = 16;
constexpr float kPi = 3.14159265f;
template <int R>
constexpr int kHeadsOfWarp = 4 / R;
static_assert(kMaxWarps * kHeadsOfWarp<1> >= kMaxHeads);

// Scratch memory of the backward pass
struct BackwardScratch {
  float* totals;  // of the angles' gradients of a stretch: [items][heads][angles]
  float* turn;   // sum over heads of step times the angles' gradients, from here to the stretch's end: [tokens][angles]
  float* parts;  // [blocks][sums]
};

// What a warp leaves of a frame for the sums over heads: gradients of normed key and query, and `turn`
template <int R>
constexpr int kLeft = 9 * R;
template <int R>
__device__ inline float2 left_pair(const float* from, int i, int lane) {
  return make_float2(from[2 * i * 32 + lane], from[(2 * i + 1) * 32 + lane]);
}

// Gradient of a row x through its norm; adds its gain's to `sums`, [4 R][32]
template <int R, int H>
__device__ inline void norm_back(float2 (&dx)[2 * R], float* sums, const Lane<R, H>& at, const float2 (&x)[2 * R],
                                 const float* gains, float inverse) {
  float along[1] = {0};
#pragma unroll
  for (int i = 0; i < 2 * R; ++i) {
    float* const sum = sums + 2 * i * 32 + at.lane;
    sum[0] = fmaf(dx[i].x * inverse, x[i].x, sum[0]), sum[32] = fmaf(dx[i].y * inverse, x[i].y, sum[32]);
    const float2 gain = at.pair(gains, i);
    dx[i].x *= gain.x, dx[i].y *= gain.y;
    along[0] = fmaf(dx[i].x, x[i].x, fmaf(dx[i].y, x[i].y, along[0]));
  }
  sum_over_warp(along);
  const float share = along[0] * inverse * inverse / static_cast<float>(at.states);
#pragma unroll
  for (int i = 0; i < 2 * R; ++i)
    dx[i] = make_float2((dx[i].x - x[i].x * share) * inverse, (dx[i].y - x[i].y * share) * inverse);
}

template <class E, int R>
__global__ void __launch_bounds__(32 * kMaxWarps)
    keys_backward(const __grid_constant__ Mamba3Keys p, const __grid_constant__ Stretches z,
                  const __grid_constant__ Mamba3KeyGradients d, const double* sums, BackwardScratch to) {
  extern __shared__ float left[];  // [2][warps][kLeft][32], then sums of the gains' gradients [warps][8 R][32]
  constexpr int H = kHeadsOfWarp<R>;
  const Lane<R, H> at(z, 0);
  const int warps = static_cast<int>(blockDim.x) / 32, lane = at.lane;
  float* const gain_sums = left + 2 * warps * kLeft<R> * 32;
  float* const my_gains = gain_sums + at.warp * 8 * R * 32;
  for (int i = lane; i < 8 * R * 32; i += 32) my_gains[i] = 0;
  float2 key_gain[R], query_gain[R], key_bias[H][R], query_bias[H][R], d_bias[2][H][2 * R] = {};
#pragma unroll
  for (int r = 0; r < R; ++r) key_gain[r] = at.pair(p.key_gain, r), query_gain[r] = at.pair(p.query_gain, r);
#pragma unroll
  for (int h = 0; h < H; ++h)
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int row = at.has_head(h) ? (at.head + h) * z.states : 0;
      key_bias[h][r] = at.pair(p.key_bias + row, r), query_bias[h][r] = at.pair(p.query_bias + row, r);
    }
  int round = 0;  // frames so far
  for (int item = static_cast<int>(blockIdx.x); item < z.items(); item += static_cast<int>(gridDim.x)) {
    const int b = item / z.count, stretch = item - b * z.count;
    const int begin = stretch * z.frames, end = min(begin + z.frames, z.time);
    const int64_t first = static_cast<int64_t>(b) * z.time;
    double turns[H][R];
    float later[H][R] = {};  // gradients of the angles from here to the stretch's end
    at.turns_before(turns, p, z, sums, b, stretch + 1);
    for (int t = end - 1; t >= begin; --t, ++round) {
      const int64_t token = first + t;
      const Frame<R, H> x = at.template read<E>(p, token);
      float2 dk[H][2 * R], dq[H][2 * R];
#pragma unroll
      for (int h = 0; h < H; ++h) {
        const int64_t row = (token * z.heads + at.head + h) * z.states;
#pragma unroll
        for (int i = 0; i < 2 * R; ++i) {
          dk[h][i] = at.has_head(h) ? at.pair(static_cast<const E*>(d.dk) + row, i) : make_float2(0, 0);
          dq[h][i] = at.has_head(h) ? at.pair(static_cast<const E*>(d.dq) + row, i) : make_float2(0, 0);
        }
      }
      const float2 inverse = inverse_norms(x, z.states);
      float2 d_key[2 * R] = {}, d_query[2 * R] = {};
      float turn[R], d_turn[R] = {}, d_step[H] = {};
#pragma unroll
      for (int r = 0; r < R; ++r) turn[r] = tanhf(x.turn[r]);
#pragma unroll
      for (int h = 0; h < H; ++h)
#pragma unroll
        for (int r = 0; r < R; ++r) {
          const Rotation rotate(turns[h][r]);
          turns[h][r] -= 0.5f * turn[r] * x.step[h];
          const float2 k = rotate(plus(times(x.key[r], key_gain[r], inverse.x), key_bias[h][r]));
          const float2 q = rotate(plus(times(x.query[r], query_gain[r], inverse.y), query_bias[h][r]));
          later[h][r] += (k.x * dk[h][r].y - k.y * dk[h][r].x) + (q.x * dq[h][r].y - q.y * dq[h][r].x);
          d_turn[r] = fmaf(later[h][r], x.step[h], d_turn[r]);
          d_step[h] = fmaf(later[h][r], turn[r], d_step[h]);
          dk[h][r] = rotate.back(dk[h][r]), dq[h][r] = rotate.back(dq[h][r]);
#pragma unroll
          for (int i = r; i < 2 * R; i += R) {
            d_key[i] = plus(d_key[i], dk[h][i]), d_query[i] = plus(d_query[i], dq[h][i]);
            d_bias[0][h][i] = plus(d_bias[0][h][i], dk[h][i]), d_bias[1][h][i] = plus(d_bias[1][h][i], dq[h][i]);
          }
        }
      sum_over_warp(d_step);
#pragma unroll
      for (int h = 0; h < H; ++h)
        if (lane == h && at.has_head(h)) d.d_step[token * z.heads + at.head + h] = d_step[h];

      float* const stage = left + round % 2 * warps * kLeft<R> * 32;
      float* const mine = stage + at.warp * kLeft<R> * 32;
#pragma unroll
      for (int i = 0; i < 2 * R; ++i) {
        mine[2 * i * 32 + lane] = d_key[i].x, mine[(2 * i + 1) * 32 + lane] = d_key[i].y;
        mine[(4 * R + 2 * i) * 32 + lane] = d_query[i].x, mine[(4 * R + 2 * i + 1) * 32 + lane] = d_query[i].y;
      }
#pragma unroll
      for (int r = 0; r < R; ++r) mine[(8 * R + r) * 32 + lane] = d_turn[r];
      __syncthreads();
      if (round % warps != at.warp) continue;  // one warp adds the heads, while the others go on
#pragma unroll
      for (int i = 0; i < 2 * R; ++i) d_key[i] = d_query[i] = make_float2(0, 0);
#pragma unroll
      for (int r = 0; r < R; ++r) d_turn[r] = 0;
      for (int w = 0; w < warps; ++w) {
        const float* const from = stage + w * kLeft<R> * 32;
#pragma unroll
        for (int i = 0; i < 2 * R; ++i) {
          d_key[i] = plus(d_key[i], left_pair<R>(from, i, lane));
          d_query[i] = plus(d_query[i], left_pair<R>(from, 2 * R + i, lane));
        }
#pragma unroll
        for (int r = 0; r < R; ++r) d_turn[r] += from[(8 * R + r) * 32 + lane];
      }
      norm_back(d_key, my_gains, at, x.key, p.key_gain, inverse.x);
      norm_back(d_query, my_gains + 4 * R * 32, at, x.query, p.query_gain, inverse.y);
#pragma unroll
      for (int i = 0; i < 2 * R; ++i) {
        at.put(static_cast<E*>(d.d_key.data) + token * d.d_key.token, i, d_key[i]);
        at.put(static_cast<E*>(d.d_query.data) + token * d.d_query.token, i, d_query[i]);
      }
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (at.has(r)) to.turn[token * z.angles + at.angle(r)] = d_turn[r];
    }
#pragma unroll
    for (int h = 0; h < H; ++h)
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (at.has_head(h) && at.has(r))
          to.totals[static_cast<int64_t>(item) * z.turns() + (at.head + h) * z.angles + at.angle(r)] = later[h][r];
  }

  float* const part = to.parts + static_cast<int64_t>(blockIdx.x) * z.sums();
#pragma unroll
  for (int kind = 0; kind < 2; ++kind)
#pragma unroll
    for (int h = 0; h < H; ++h)
#pragma unroll
      for (int i = 0; i < 2 * R; ++i)
        if (at.has_head(h)) at.put(part + (kind * z.heads + at.head + h) * z.states, i, d_bias[kind][h][i]);
  __syncthreads();
  if (at.warp > 0) return;
#pragma unroll
  for (int kind = 0; kind < 2; ++kind)
#pragma unroll
    for (int i = 0; i < 2 * R; ++i) {
      float2 sum = make_float2(0, 0);
      for (int w = 0; w < warps; ++w) sum = plus(sum, left_pair<R>(gain_sums + w * 8 * R * 32, kind * 2 * R + i, lane));
      at.put(part + (2 * z.heads + kind) * z.states, i, sum);
    }
}

// Adds what later stretches leave to the gradients of turns and steps. A warp has a frame.
template <class E>
__global__ void __launch_bounds__(kThreads)
    finish_turns(const __grid_constant__ Mamba3Keys p, const __grid_constant__ Stretches z,
                 const __grid_constant__ Mamba3KeyGradients d, BackwardScratch from) {
  extern __shared__ float later[];  // [heads][angles + 1]
  const int b = static_cast<int>(blockIdx.x) / z.count, stretch = static_cast<int>(blockIdx.x) % z.count;
  const int begin = stretch * z.frames, end = min(begin + z.frames, z.time), row = z.angles + 1;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = static_cast<int>(threadIdx.x); i < z.turns(); i += kThreads) {
    const int64_t at = static_cast<int64_t>(b) * z.turns() + i;
    double sum = d.d_angle_out ? d.d_angle_out[at] : 0.;
    for (int c = z.count - 1; c > stretch; --c)
      sum += from.totals[(static_cast<int64_t>(b) * z.count + c) * z.turns() + i];
    later[i / z.angles * row + i % z.angles] = static_cast<float>(sum);
    if (stretch == 0 && d.d_angle) d.d_angle[at] = sum + from.totals[static_cast<int64_t>(b) * z.count * z.turns() + i];
  }
  __syncthreads();
  for (int t = begin + warp; t < end; t += kThreads / 32) {
    const int64_t token = static_cast<int64_t>(b) * z.time + t;
    const E* const turn = static_cast<const E*>(p.turn.data) + token * p.turn.token;
    float tangent[2] = {};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int j = lane + 32 * r;
      if (j >= z.angles) continue;
      tangent[r] = tanhf(to_float(turn[j]));
      float sum = from.turn[token * z.angles + j];
      for (int h = 0; h < z.heads; ++h) sum = fmaf(later[h * row + j], p.step[token * z.heads + h], sum);
      static_cast<E*>(d.d_turn.data)[token * d.d_turn.token + j] =
          from_float<E>(kPi * (1 - tangent[r] * tangent[r]) * sum);
    }
    for (int first = 0; first < z.heads; first += 32) {
      const int h = first + lane, used = min(h, z.heads - 1);
      float sum = d.d_step[token * z.heads + used];
      for (int j = 0; j < z.angles; ++j)
        sum = fmaf(later[used * row + j], __shfl_sync(~0u, j < 32 ? tangent[0] : tangent[1], j % 32), sum);
      if (h < z.heads) d.d_step[token * z.heads + h] = kPi * sum;
    }
  }
}

// ---- launches ----

int warps_of(const Stretches& z) {
  const int each = z.rows_per_lane() == 1 ? kHeadsOfWarp<1> : kHeadsOfWarp<2>;
  return (z.heads + each - 1) / each;
}
struct ScratchBytes {
  size_t totals, turn, parts;
  int blocks;
  explicit ScratchBytes(const Stretches& z)
      : totals(rounded(sizeof(float) * static_cast<size_t>(z.items()) * static_cast<size_t>(z.turns()))),
        turn(rounded(sizeof(float) * static_cast<size_t>(z.batch) * static_cast<size_t>(z.time) *
                     static_cast<size_t>(z.angles))),
        blocks(std::min(z.items(), multiprocessors() * std::max(1, kMaxWarps / warps_of(z)))) {
    parts = sizeof(float) * static_cast<size_t>(blocks) * static_cast<size_t>(z.sums());
  }
};

}  // namespace
}  // namespace mamba3

using namespace mamba3;

size_t mamba3_keys_scratch_bytes(const Mamba3Keys& p) {
  const ScratchBytes bytes{Stretches(p)};
  return bytes.totals + bytes.turn + bytes.parts;
}

cudaError_t mamba3_keys_backward(const Mamba3Keys& p, const Mamba3KeyGradients& d, const void* kept, void* scratch,
                                 cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  const Stretches z(p);
  const ScratchBytes bytes(z);
  auto* const memory = static_cast<unsigned char*>(scratch);
  const BackwardScratch to{reinterpret_cast<float*>(memory), reinterpret_cast<float*>(memory + bytes.totals),
                           reinterpret_cast<float*>(memory + bytes.totals + bytes.turn)};
  const auto* const sums = static_cast<const double*>(kept);
  cudaError_t status = with_lanes(p, z, [&]<class E, int R>() {
    const int warps = warps_of(z);
    const size_t shared = sizeof(float) * static_cast<size_t>(warps) * (2 * kLeft<R> + 8 * R) * 32;
    const cudaError_t launched = launch(keys_backward<E, R>, dim3(static_cast<unsigned>(bytes.blocks)), 32 * warps,
                                        shared, stream, p, z, d, sums, to);
    if (launched != cudaSuccess) return launched;
    const size_t rows = sizeof(float) * static_cast<size_t>(z.heads) * static_cast<size_t>(z.angles + 1);
    return launch(finish_turns<E>, dim3(static_cast<unsigned>(z.items())), kThreads, rows, stream, p, z, d, to);
  });
  if (status != cudaSuccess) return status;
  return sum_parts(to.parts, bytes.blocks, z.sums(), d.d_biases, 2 * z.states * z.heads, d.d_gains, stream);
}

}  // namespace sb::cuda
