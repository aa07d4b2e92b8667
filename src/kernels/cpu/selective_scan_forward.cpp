#include "kernels/cpu/selective_scan_tiles.h"

namespace sb::cpu {
namespace {

// One channel, V vectors of its states, `time` steps: h in registers, the read-out summed into y[time].
template <class T, int V>
void scan_tile(int64_t time, const T* delta, const T* written, const T* rate, const T* B, const T* C, int64_t ld,
               T least, T* h, T* y) {
  using Vec = simd::Vec<T>;
  constexpr int64_t L = simd::lanes<T>;
  alignas(64) Vec sums[128];
  Vec state[V], r[V];
  for (int v = 0; v < V; ++v) {
    state[v] = simd::load(h + v * L);
    r[v] = simd::load(rate + v * L);
  }
  for (int64_t t = 0; t < time; ++t) {
    const Vec step(delta[t]), input(written[t]);
    Vec a[V];
    for (int v = 0; v < V; ++v) a[v] = step * r[v];
    simd::exp2_bounded_above<T>(a, Vec(least));
    for (int v = 0; v < V; ++v) state[v] = xsimd::fma(a[v], state[v], input * simd::load(B + t * ld + v * L));
    Vec sum = state[0] * simd::load(C + t * ld);
    for (int v = 1; v < V; ++v) sum = xsimd::fma(state[v], simd::load(C + t * ld + v * L), sum);
    sums[t] = sum;
  }
  for (int v = 0; v < V; ++v) simd::store(h + v * L, state[v]);
  add_lane_sums<T>(time, sums, y);
}

template <class T>
void scan_channels(const ScanSizes& s, const ScanForward<T>& p, const ScanTask& task, const T* rate, T* kept_copy) {
  const int64_t D = s.channels, N = s.states, pn = padded_states<T>(N), steps = s.chunk();
  const int64_t group = task.last_channel - task.first_channel;
  const T least = least_exponent<T>(p.a_min);
  Arena<T> arena(Arena<T>::rounded(group * pn) + 2 * Arena<T>::rounded(steps * pn) +
                 3 * Arena<T>::rounded(kScanChannels * steps));
  T* h = arena.take(group * pn);
  T* B = arena.take(steps * pn);
  T* C = arena.take(steps * pn);
  T* delta = arena.take(kScanChannels * steps);
  T* written = arena.take(kScanChannels * steps);
  T* y = arena.take(kScanChannels * steps);
  for (int64_t b = task.slot; b < s.batch; b += s.batch_slots()) {
    if (p.first_state)
      copy_padded(group, p.first_state + (b * D + task.first_channel) * N, N, h, pn);
    else
      std::fill_n(h, group * pn, T(0));
    for (int64_t t0 = 0; t0 < s.time; t0 += steps) {
      const int64_t time = std::min(steps, s.time - t0);
      copy_padded(time, p.B + (b * s.time + t0) * N, N, B, pn);
      copy_padded(time, p.C + (b * s.time + t0) * N, N, C, pn);
      if (kept_copy)
        for (int64_t c = 0; c < group; ++c)
          std::copy_n(h + c * pn, N, kept_copy + ((b * s.chunks() + t0 / steps) * D + task.first_channel + c) * N);
      for (int64_t c0 = 0; c0 < group; c0 += kScanChannels) {
        const int64_t channels = std::min(kScanChannels, group - c0);
        const int64_t at = (b * s.time + t0) * D + task.first_channel + c0;
        transpose_in(time, channels, delta, steps, [&](int64_t t, int64_t c) { return p.delta[at + t * D + c]; });
        transpose_in(time, channels, written, steps,
                     [&](int64_t t, int64_t c) { return p.write[at + t * D + c] * p.x[at + t * D + c]; });
        std::fill_n(y, channels * steps, T(0));
        for_state_tiles<T>(pn, [&](int64_t n, auto vectors) {
          for (int64_t c = 0; c < channels; ++c)
            scan_tile<T, vectors>(time, delta + c * steps, written + c * steps,
                                  rate + (task.first_channel + c0 + c) * pn + n, B + n, C + n, pn, least,
                                  h + (c0 + c) * pn + n, y + c * steps);
        });
        const T* skip = p.skip + task.first_channel + c0;
        for (int64_t t = 0; t < time; ++t)
          for (int64_t c = 0; c < channels; ++c)
            p.out[at + t * D + c] = y[c * steps + t] + skip[c] * p.x[at + t * D + c];
      }
    }
    for (int64_t c = 0; c < group; ++c) std::copy_n(h + c * pn, N, p.last_state + (b * D + task.first_channel + c) * N);
  }
}

}  // namespace

template <class T>
void selective_scan_forward(const ScanSizes& s, const ScanForward<T>& p) {
  const std::vector<T> rate = decay_rates(s, p.A_log);
  for_each_task(s.batch_slots() * s.channel_groups(),
                [&](int64_t task) { scan_channels(s, p, ScanTask(s, task), rate.data(), p.kept); });
}

template void selective_scan_forward(const ScanSizes&, const ScanForward<float>&);
template void selective_scan_forward(const ScanSizes&, const ScanForward<double>&);

}  // namespace sb::cpu
