#include "kernels/cuda/mamba3_keys.cuh"

namespace sb::cuda {
namespace mamba3 {
namespace {

constexpr int kSumFrames = 16, kWarps = kThreads / 32;
template <int R>
constexpr int kHeadsOfWarp = 2 / R;

// Turns of every stretch, [items][heads][angles]
template <class E>
__global__ void __launch_bounds__(kThreads) sum_turns(Mamba3Keys p, Stretches z, double* to) {
  extern __shared__ float staged[];  // tanh(turn) / 2 [kSumFrames][angles], step [kSumFrames][heads]
  float *const turns = staged, *const steps = staged + kSumFrames * z.angles;
  const int b = static_cast<int>(blockIdx.x) / z.count, first = static_cast<int>(blockIdx.x) % z.count * z.frames;
  const int end = min(first + z.frames, z.time), thread = static_cast<int>(threadIdx.x);
  double* const sums = to + static_cast<int64_t>(blockIdx.x) * z.turns();
  for (int begin = first; begin < end; begin += kSumFrames) {
    const int count = min(kSumFrames, end - begin);
    const int64_t token = static_cast<int64_t>(b) * z.time + begin;
    __syncthreads();
    for (int i = thread; i < count * z.angles; i += kThreads) {
      const int t = i / z.angles, j = i - t * z.angles;
      turns[i] = 0.5f * tanhf(to_float(static_cast<const E*>(p.turn.data)[(token + t) * p.turn.token + j]));
    }
    for (int i = thread; i < count * z.heads; i += kThreads) steps[i] = p.step[token * z.heads + i];
    __syncthreads();
    for (int i = thread; i < z.turns(); i += kThreads) {
      const int h = i / z.angles, j = i - h * z.angles;
      double sum = begin == first ? 0. : sums[i];
      for (int t = 0; t < count; ++t) sum += turns[t * z.angles + j] * steps[t * z.heads + h];
      sums[i] = sum;
    }
  }
}

template <class E, int R>
__global__ void __launch_bounds__(kThreads)
    keys_forward(const __grid_constant__ Mamba3Keys p, const __grid_constant__ Stretches z, Mamba3KeyOutputs out,
                 const double* sums) {
  constexpr int H = kHeadsOfWarp<R>;
  const Lane<R, H> at(z, static_cast<int>(blockIdx.y) * kWarps);
  if (!at.has_head(0)) return;
  const int b = static_cast<int>(blockIdx.x) / z.count, stretch = static_cast<int>(blockIdx.x) % z.count;
  const int begin = stretch * z.frames, end = min(begin + z.frames, z.time);
  const int64_t first = static_cast<int64_t>(b) * z.time;
  float2 key_gain[2 * R], query_gain[2 * R], key_bias[H][2 * R], query_bias[H][2 * R];
  double turns[H][R];
#pragma unroll
  for (int i = 0; i < 2 * R; ++i) {
    key_gain[i] = at.pair(p.key_gain, i), query_gain[i] = at.pair(p.query_gain, i);
#pragma unroll
    for (int h = 0; h < H; ++h) {
      const int row = at.has_head(h) ? (at.head + h) * z.states : 0;
      key_bias[h][i] = at.pair(p.key_bias + row, i), query_bias[h][i] = at.pair(p.query_bias + row, i);
    }
  }
  at.turns_before(turns, p, z, sums, b, stretch);
  Frame<R, H> next = at.template read<E>(p, first + begin);
  for (int t = begin; t < end; ++t) {
    const Frame<R, H> x = next;
    if (t + 1 < end) next = at.template read<E>(p, first + t + 1);
    const float2 inverse = inverse_norms(x, z.states);
    float2 key[2 * R], query[2 * R];
    float turn[R];
#pragma unroll
    for (int i = 0; i < 2 * R; ++i)
      key[i] = times(x.key[i], key_gain[i], inverse.x), query[i] = times(x.query[i], query_gain[i], inverse.y);
#pragma unroll
    for (int r = 0; r < R; ++r) turn[r] = 0.5f * tanhf(x.turn[r]);
#pragma unroll
    for (int h = 0; h < H; ++h) {
      if (!at.has_head(h)) break;
      const int64_t row = ((first + t) * z.heads + at.head + h) * z.states;
      E *const k = static_cast<E*>(out.k) + row, *const q = static_cast<E*>(out.q) + row;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        turns[h][r] += turn[r] * x.step[h];
        const Rotation rotate(turns[h][r]);
        at.put(k, r, rotate(plus(key[r], key_bias[h][r])));
        at.put(q, r, rotate(plus(query[r], query_bias[h][r])));
        at.put(k, R + r, plus(key[R + r], key_bias[h][R + r]));
        at.put(q, R + r, plus(query[R + r], query_bias[h][R + r]));
      }
    }
  }
  if (stretch + 1 < z.count) return;
#pragma unroll
  for (int h = 0; h < H; ++h)
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (at.has_head(h) && at.has(r))
        out.angle[static_cast<int64_t>(b) * z.turns() + (at.head + h) * z.angles + at.angle(r)] = turns[h][r] * kTurn;
}

}  // namespace
}  // namespace mamba3

using namespace mamba3;

bool mamba3_keys_fit(int64_t heads, int64_t states) {
  // Two heads more would need more shared memory than the smallest GPUs have: 99 KB.
  const int most = states <= 128 ? kMaxHeads : kMaxHeads / 2 - 2;
  return states > 0 && states % 4 == 0 && states <= 256 && heads > 0 && heads <= most;
}

size_t mamba3_kept_bytes(const Mamba3Keys& p) {
  const Stretches z(p);
  return sizeof(double) * static_cast<size_t>(z.items()) * static_cast<size_t>(z.turns());
}

cudaError_t mamba3_keys_forward(const Mamba3Keys& p, const Mamba3KeyOutputs& out, void* kept, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  const Stretches z(p);
  auto* const sums = static_cast<double*>(kept);
  const auto items = static_cast<unsigned>(z.items());
  return with_lanes(p, z, [&]<class E, int R>() {
    const size_t staged = sizeof(float) * kSumFrames * static_cast<size_t>(z.angles + z.heads);
    sum_turns<E><<<items, kThreads, staged, stream>>>(p, z, sums);
    constexpr int each = kWarps * kHeadsOfWarp<R>;
    const dim3 grid(items, static_cast<unsigned>((z.heads + each - 1) / each));
    const int warps = std::min(kWarps, (z.heads + kHeadsOfWarp<R> - 1) / kHeadsOfWarp<R>);
    keys_forward<E, R><<<grid, 32 * warps, 0, stream>>>(p, z, out, sums);
    return cudaGetLastError();
  });
}

}  // namespace sb::cuda
