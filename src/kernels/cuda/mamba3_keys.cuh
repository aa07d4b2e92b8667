// Shared parts of the passes over Mamba-3's keys and queries. A block has a stretch of frames of one sequence, a warp H
// of its heads. A lane has R angles j, 32 apart, with their rotated pair of channels (2j, 2j + 1) and as many others,
// (2A + 2j, 2A + 2j + 1). Angles are counted in whole turns, in double: the sums of all stretches come first, so that
// every stretch can start at once.
#pragma once
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/mamba3_rows.h"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda::mamba3 {

constexpr int kMaxHeads = 64, kLeastFrames = 16, kMaxStretches = 64;
constexpr double kTurn = 6.283185307179586;  // radians
constexpr float kEps = 1e-5f;

// Stretches of frames, and the sizes of what is kept and of scratch memory
struct Stretches {
  int batch, time, heads, states, angles, frames, count;
  explicit Stretches(const Mamba3Keys& p)
      : batch(static_cast<int>(p.batch)),
        time(static_cast<int>(p.time)),
        heads(p.heads),
        states(p.states),
        angles(p.states / 4),
        frames(std::max(kLeastFrames, (time + kMaxStretches - 1) / kMaxStretches)),
        count((time + frames - 1) / frames) {}
  __host__ __device__ int items() const { return batch * count; }
  __host__ __device__ int turns() const { return heads * angles; }           // of a sequence
  __host__ __device__ int sums() const { return 2 * states * (heads + 1); }  // of gradients of biases, then gains
  int rows_per_lane() const { return angles <= 32 ? 1 : 2; }
};

// A lane's part of a frame
template <int R, int H>
struct Frame {
  float2 key[2 * R], query[2 * R];  // rotated pairs, then the others
  float turn[R], step[H];
};

template <int R, int H>
struct Lane {
  int lane, warp, head, heads, angles, states;  // head: first of the warp
  // first_warp: of the block, among all that share a stretch
  __device__ Lane(const Stretches& z, int first_warp)
      : lane(static_cast<int>(threadIdx.x) % 32),
        warp(static_cast<int>(threadIdx.x) / 32),
        head((first_warp + warp) * H),
        heads(z.heads),
        angles(z.angles),
        states(z.states) {}
  __device__ int angle(int r) const { return lane + 32 * r; }
  __device__ bool has(int r) const { return angle(r) < angles; }
  // First channel of pair i of 2 R
  __device__ int channel(int i) const { return i < R ? 2 * angle(i) : 2 * (angles + angle(i - R)); }
  __device__ bool has_head(int i) const { return head + i < heads; }
  template <class E>
  __device__ float2 pair(const E* row, int i) const {
    return has(i % R) ? load_pair(row + channel(i)) : make_float2(0, 0);
  }
  template <class E>
  __device__ void put(E* row, int i, float2 x) const {
    if (has(i % R)) store_pair(row + channel(i), x.x, x.y);
  }
  template <class E>
  __device__ Frame<R, H> read(const Mamba3Keys& p, int64_t token) const {
    Frame<R, H> x;
#pragma unroll
    for (int i = 0; i < 2 * R; ++i) {
      x.key[i] = pair(static_cast<const E*>(p.key.data) + token * p.key.token, i);
      x.query[i] = pair(static_cast<const E*>(p.query.data) + token * p.query.token, i);
    }
#pragma unroll
    for (int r = 0; r < R; ++r)
      x.turn[r] = has(r) ? to_float(static_cast<const E*>(p.turn.data)[token * p.turn.token + angle(r)]) : 0.f;
#pragma unroll
    for (int i = 0; i < H; ++i) x.step[i] = has_head(i) ? p.step[token * heads + head + i] : 0.f;
    return x;
  }
  // Turns of the warp's heads before stretch `count` of sequence b
  __device__ void turns_before(double (&to)[H][R], const Mamba3Keys& p, const Stretches& z, const double* sums, int b,
                               int count) const {
#pragma unroll
    for (int i = 0; i < H; ++i)
#pragma unroll
      for (int r = 0; r < R; ++r) {
        to[i][r] = 0;
        if (!has_head(i) || !has(r)) continue;
        const int at = (head + i) * angles + angle(r);
        double sum = p.angle ? p.angle[static_cast<int64_t>(b) * z.turns() + at] / kTurn : 0.;
        for (int c = 0; c < count; ++c) sum += sums[(static_cast<int64_t>(b) * z.count + c) * z.turns() + at];
        to[i][r] = sum;
      }
  }
};

template <int N>
__device__ inline float squares(const float2 (&x)[N]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum = fmaf(x[i].x, x[i].x, fmaf(x[i].y, x[i].y, sum));
  return sum;
}
// 1 / root mean square of a frame's key and query
template <int R, int H>
__device__ inline float2 inverse_norms(const Frame<R, H>& x, int states) {
  float sums[2] = {squares(x.key), squares(x.query)};
  sum_over_warp(sums);
  const float each = 1 / static_cast<float>(states);
  return make_float2(rsqrtf(sums[0] * each + kEps), rsqrtf(sums[1] * each + kEps));
}

struct Rotation {
  float cosine, sine;
  __device__ explicit Rotation(double turns) { sincospif(2 * static_cast<float>(turns - rint(turns)), &sine, &cosine); }
  __device__ float2 operator()(float2 x) const {
    return make_float2(x.x * cosine - x.y * sine, x.x * sine + x.y * cosine);
  }
  __device__ float2 back(float2 y) const { return make_float2(y.x * cosine + y.y * sine, y.y * cosine - y.x * sine); }
};
__device__ inline float2 times(float2 x, float2 gain, float factor) {
  return make_float2(x.x * gain.x * factor, x.y * gain.y * factor);
}
__device__ inline float2 plus(float2 x, float2 y) {
  return make_float2(x.x + y.x, x.y + y.y);
}

// run<E, R>()
template <class Run>
cudaError_t with_lanes(const Mamba3Keys& p, const Stretches& z, const Run& run) {
  return with_element(p.element, [&]<class E>() {
    return z.rows_per_lane() == 1 ? run.template operator()<E, 1>() : run.template operator()<E, 2>();
  });
}

inline bool valid(const Mamba3Keys& p) {
  return p.batch > 0 && p.time > 0 && p.time < 1 << 24 && mamba3_keys_fit(p.heads, p.states) &&
         p.batch * kMaxStretches < int64_t{1} << 31;
}

}  // namespace sb::cuda::mamba3
