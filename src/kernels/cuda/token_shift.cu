// A thread processes four channels over a stretch of time: forwards with the frame before in registers, backwards with
// what the frame behind passes on.
#include "kernels/cuda/token_shift.h"

#include "kernels/cuda/conv4_walk.cuh"

namespace sb::cuda {
namespace {

constexpr int kOwn = 4;  // channels of a thread
constexpr int kForwardStretch = 16, kBackwardStretch = 32, kBackwardBlocks = 2;

struct ShiftRows {
  TokenShift p;
  void* y[kShifts];
  const void* dy[kShifts];
  Frames<void> dx;
  void* d_last;
  float* parts;
  int few, stretch, stretches;  // groups of channels per frame; frames per stretch; stretches per sequence
  int count;                    // stretches (forward) or parts (backward)
};

template <class E, bool vectors>
struct ShiftWalk {
  const ShiftRows& q;
  int channel, left, batch = 0, begin = 0, end = 0;
  float mu[kShifts][kOwn];
  __device__ ShiftWalk(const ShiftRows& rows, int few) : q(rows), channel(few * kOwn), left(rows.p.channels - channel) {
#pragma unroll
    for (int c = 0; c < kShifts; ++c)
#pragma unroll
      for (int i = 0; i < kOwn; ++i) mu[c][i] = q.p.mu[c * q.p.channels + min(channel + i, q.p.channels - 1)];
  }
  __device__ void start(int stretch) {
    batch = stretch / q.stretches;
    begin = (stretch - batch * q.stretches) * q.stretch;
    end = min(begin + q.stretch, q.p.time);
  }
  // Offset of the thread's channels in a contiguous [B,T,C]
  __device__ int64_t place(int t) const {
    return (static_cast<int64_t>(batch) * q.p.time + t) * q.p.channels + channel;
  }
  __device__ void read(Few<E, kOwn>& few, const void* y, int t) const {
    load_few<vectors>(few, static_cast<const E*>(y) + place(t), left);
  }
  // x_t; that of t = -1 is the last frame of the sequence before
  __device__ void input(Floats<kOwn>& x, int t) const {
    Few<E, kOwn> few{};
    if (t >= 0)
      load_few<vectors>(few, static_cast<const E*>(q.p.x.data) + batch * q.p.x.batch + t * q.p.x.time + channel, left);
    else if (q.p.last)
      load_few<false>(few, static_cast<const E*>(q.p.last) + static_cast<int64_t>(batch) * q.p.channels + channel,
                      left);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) x.v[i] = few[i];
  }
};

template <class E, bool vectors>
__global__ void __launch_bounds__(kThreads) shift_forward(const __grid_constant__ ShiftRows q) {
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int stretch = static_cast<int>(id / q.few);
  if (stretch >= q.count) return;
  ShiftWalk<E, vectors> walk(q, static_cast<int>(id - static_cast<int64_t>(stretch) * q.few));
  walk.start(stretch);
  Floats<kOwn> before, x;
  walk.input(before, walk.begin - 1);
#pragma unroll 4
  for (int t = walk.begin; t < walk.end; ++t) {
    walk.input(x, t);
#pragma unroll
    for (int c = 0; c < kShifts; ++c) {
      Floats<kOwn> y;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) y.v[i] = x.v[i] + walk.mu[c][i] * (before.v[i] - x.v[i]);
      store_few<vectors>(static_cast<E*>(q.y[c]) + walk.place(t), y, walk.left);
    }
    before = x;
  }
}

template <class E, bool vectors>
__global__ void __launch_bounds__(kThreads, kBackwardBlocks) shift_backward(const __grid_constant__ ShiftRows q) {
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int part = static_cast<int>(id / q.few);
  if (part >= q.count) return;
  ShiftWalk<E, vectors> walk(q, static_cast<int>(id - static_cast<int64_t>(part) * q.few));
  float d_mu[kShifts][kOwn] = {};
  for (int stretch = part; stretch < q.p.batch * q.stretches; stretch += q.count) {
    walk.start(stretch);
    Floats<kOwn> x, before, passed{};  // passed: sum_c mu_c dy_c of the frame behind
    const auto read = [&](Few<E, kOwn>(&dy)[kShifts], int t) {
#pragma unroll
      for (int c = 0; c < kShifts; ++c) walk.read(dy[c], q.dy[c], t);
    };
    Few<E, kOwn> dy[kShifts];
    if (walk.end < q.p.time) {
      read(dy, walk.end);
#pragma unroll
      for (int c = 0; c < kShifts; ++c)
#pragma unroll
        for (int i = 0; i < kOwn; ++i) passed.v[i] += walk.mu[c][i] * dy[c][i];
    }
    walk.input(x, walk.end - 1);
#pragma unroll 2
    for (int t = walk.end - 1; t >= walk.begin; --t) {
      read(dy, t);
      walk.input(before, t - 1);
      Floats<kOwn> dx, own{};
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        float sum = 0;
#pragma unroll
        for (int c = 0; c < kShifts; ++c) {
          const float d = dy[c][i];
          sum += d;
          own.v[i] += walk.mu[c][i] * d;
          d_mu[c][i] += d * (before.v[i] - x.v[i]);
        }
        dx.v[i] = sum - own.v[i] + passed.v[i];
      }
      store_few<vectors>(static_cast<E*>(q.dx.data) + walk.batch * q.dx.batch + t * q.dx.time + walk.channel, dx,
                         walk.left);
      passed = own, x = before;
    }
    if (walk.begin == 0 && q.d_last)
      store_few<false>(static_cast<E*>(q.d_last) + static_cast<int64_t>(walk.batch) * q.p.channels + walk.channel,
                       passed, walk.left);
  }
  float* const sums = q.parts + static_cast<int64_t>(part) * kShifts * q.p.channels + walk.channel;
#pragma unroll
  for (int c = 0; c < kShifts; ++c)
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      if (i < walk.left) sums[c * q.p.channels + i] = d_mu[c][i];
}

// ---- launches ----

bool valid(const TokenShift& p) {
  return p.batch > 0 && p.time > 0 && p.channels > 0 && p.mu && p.x.data;
}

ShiftRows rows_of(const TokenShift& p, int stretch) {
  ShiftRows q{p};
  q.few = (p.channels + kOwn - 1) / kOwn;
  q.stretch = stretch;
  q.stretches = (p.time + stretch - 1) / stretch;
  q.count = p.batch * q.stretches;
  return q;
}

// Enough threads to fill the GPU, each with the same number of stretches
int parts_of(const ShiftRows& q) {
  const int wanted = multiprocessors() * kBackwardBlocks * kThreads, stretches = q.p.batch * q.stretches;
  const int most = std::max(1, std::min(kMaxParts, wanted / q.few)), rounds = (stretches + most - 1) / most;
  return (stretches + rounds - 1) / rounds;
}

unsigned blocks_of(const ShiftRows& q) {
  return static_cast<unsigned>((static_cast<int64_t>(q.count) * q.few + kThreads - 1) / kThreads);
}

template <class E>
bool vectors(const ShiftRows& q, const Frames<void>& dx) {
  const auto fits = [](const void* data) { return reinterpret_cast<uintptr_t>(data) % (kOwn * sizeof(E)) == 0; };
  bool out = q.p.channels % kOwn == 0;
  for (int c = 0; c < kShifts; ++c) out = out && fits(q.y[c]) && fits(q.dy[c]);
  return out && fits(q.p.x.data) && q.p.x.batch % kOwn == 0 && q.p.x.time % kOwn == 0 && fits(dx.data) &&
         dx.batch % kOwn == 0 && dx.time % kOwn == 0;
}

}  // namespace

cudaError_t token_shift_forward(const TokenShift& p, void* const (&y)[kShifts], cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  ShiftRows q = rows_of(p, kForwardStretch);
  std::copy(y, y + kShifts, q.y);
  return with_element(p.element, [&]<class E>() {
    if (vectors<E>(q, {}))
      shift_forward<E, true><<<blocks_of(q), kThreads, 0, stream>>>(q);
    else
      shift_forward<E, false><<<blocks_of(q), kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
}

size_t token_shift_scratch_bytes(const TokenShift& p) {
  return sizeof(float) * kShifts * static_cast<size_t>(p.channels) * parts_of(rows_of(p, kBackwardStretch));
}

cudaError_t token_shift_backward(const TokenShift& p, const void* const (&dy)[kShifts], const Frames<void>& dx,
                                 float* d_mu, void* d_last, void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  ShiftRows q = rows_of(p, kBackwardStretch);
  std::copy(dy, dy + kShifts, q.dy);
  q.dx = dx, q.d_last = d_last, q.parts = static_cast<float*>(scratch);
  q.count = parts_of(q);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    if (vectors<E>(q, dx))
      shift_backward<E, true><<<blocks_of(q), kThreads, 0, stream>>>(q);
    else
      shift_backward<E, false><<<blocks_of(q), kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
  if (status != cudaSuccess) return status;
  const int width = kShifts * p.channels;
  return sum_parts(q.parts, q.count, width, d_mu, width, nullptr, stream);
}

}  // namespace sb::cuda
