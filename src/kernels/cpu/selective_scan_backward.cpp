#include "kernels/cpu/selective_scan_tiles.h"

namespace sb::cpu {
namespace {

// One channel's rows over a chunk of time, and where its gradients go.
template <class T>
struct Channel {
  const T *delta, *written, *d_out;
  T *by_write, *by_rate;  // sum_n gh B and sum_n gh a h_{t-1} rate, a step each
};

// Recomputes the chunk's states of V vectors from `first`, then walks back through time.
// gh: state gradient, entering from the later chunk; d_rate: sum over time of gh a h_{t-1} delta, where a is not held
// at its least value.
template <class T, int V, bool bounded>
void scan_tile_back(int64_t time, const Channel<T>& channel, const T* rate, const T* B, const T* C, int64_t ld, T least,
                    const T* first, T* gh, T* d_rate, T* d_B, T* d_C) {
  using Vec = simd::Vec<T>;
  constexpr int64_t L = simd::lanes<T>;
  alignas(64) Vec states[129][V];  // states[t + 1] after step t
  alignas(64) Vec decays[128][V];
  alignas(64) Vec write_sums[128], rate_sums[128];
  Vec r[V], smallest[1] = {Vec(least)};
  simd::exp2_bounded_above<T>(smallest, Vec(least));
  for (int v = 0; v < V; ++v) {
    states[0][v] = simd::load(first + v * L);
    r[v] = simd::load(rate + v * L);
  }
  for (int64_t t = 0; t < time; ++t) {
    const Vec step(channel.delta[t]), input(channel.written[t]);
    Vec a[V];
    for (int v = 0; v < V; ++v) a[v] = step * r[v];
    simd::exp2_bounded_above<T>(a, Vec(least));
    for (int v = 0; v < V; ++v) {
      decays[t][v] = a[v];
      states[t + 1][v] = xsimd::fma(a[v], states[t][v], input * simd::load(B + t * ld + v * L));
    }
  }
  Vec g[V], dr[V];
  for (int v = 0; v < V; ++v) {
    g[v] = simd::load(gh + v * L);
    dr[v] = simd::load(d_rate + v * L);
  }
  for (int64_t t = time - 1; t >= 0; --t) {
    const Vec step(channel.delta[t]), input(channel.written[t]), gy(channel.d_out[t]);
    Vec write_sum(T(0)), rate_sum(T(0));
    for (int v = 0; v < V; ++v) {
      const int64_t at = t * ld + v * L;
      g[v] = xsimd::fma(gy, simd::load(C + at), g[v]);
      simd::store(d_C + at, xsimd::fma(gy, states[t + 1][v], simd::load(d_C + at)));
      simd::store(d_B + at, xsimd::fma(g[v], input, simd::load(d_B + at)));
      write_sum = xsimd::fma(g[v], simd::load(B + at), write_sum);
      g[v] *= decays[t][v];
      Vec ge = g[v] * states[t][v];
      if constexpr (bounded) ge = xsimd::select(decays[t][v] > smallest[0], ge, Vec(T(0)));
      rate_sum = xsimd::fma(ge, r[v], rate_sum);
      dr[v] = xsimd::fma(ge, step, dr[v]);
    }
    write_sums[t] = write_sum;
    rate_sums[t] = rate_sum;
  }
  for (int v = 0; v < V; ++v) {
    simd::store(gh + v * L, g[v]);
    simd::store(d_rate + v * L, dr[v]);
  }
  add_lane_sums<T>(time, write_sums, channel.by_write);
  add_lane_sums<T>(time, rate_sums, channel.by_rate);
}

template <class T>
struct BackScratch {
  Arena<T> arena;
  T *gh, *d_rate, *B, *C, *d_B, *d_C, *first, *delta, *written, *d_out, *by_write, *by_rate;
  BackScratch(int64_t group, int64_t pn, int64_t steps)
      : arena(2 * Arena<T>::rounded(group * pn) + 4 * Arena<T>::rounded(steps * pn) +
              Arena<T>::rounded(kScanChannels * pn) + 5 * Arena<T>::rounded(kScanChannels * steps)) {
    gh = arena.take(group * pn);
    d_rate = arena.take(group * pn);
    for (T** p : {&B, &C, &d_B, &d_C}) *p = arena.take(steps * pn);
    first = arena.take(kScanChannels * pn);
    for (T** p : {&delta, &written, &d_out, &by_write, &by_rate}) *p = arena.take(kScanChannels * steps);
  }
};

// One batch element, one chunk, up to kScanChannels channels from c0 of the group.
template <class T>
void block_back(const ScanSizes& s, const ScanBackward<T>& p, const ScanTask& task, const T* rate, BackScratch<T>& w,
                int64_t b, int64_t t0, int64_t c0) {
  const int64_t D = s.channels, N = s.states, pn = padded_states<T>(N), steps = s.chunk();
  const int64_t time = std::min(steps, s.time - t0);
  const int64_t channel0 = task.first_channel + c0;
  const int64_t channels = std::min(kScanChannels, task.last_channel - channel0);
  const int64_t at = (b * s.time + t0) * D + channel0;
  const T least = least_exponent<T>(p.a_min);
  transpose_in(time, channels, w.delta, steps, [&](int64_t t, int64_t c) { return p.delta[at + t * D + c]; });
  transpose_in(time, channels, w.d_out, steps, [&](int64_t t, int64_t c) { return p.d_out[at + t * D + c]; });
  transpose_in(time, channels, w.written, steps,
               [&](int64_t t, int64_t c) { return p.write[at + t * D + c] * p.x[at + t * D + c]; });
  copy_padded(channels, p.kept + ((b * s.chunks() + t0 / steps) * D + channel0) * N, N, w.first, pn);
  std::fill_n(w.by_write, channels * steps, T(0));
  std::fill_n(w.by_rate, channels * steps, T(0));
  for_state_tiles<T>(pn, [&](int64_t n, auto vectors) {
    for (int64_t c = 0; c < channels; ++c) {
      const Channel<T> channel{w.delta + c * steps, w.written + c * steps, w.d_out + c * steps, w.by_write + c * steps,
                               w.by_rate + c * steps};
      constexpr auto free = scan_tile_back<T, vectors, false>, bounded = scan_tile_back<T, vectors, true>;
      (p.a_min > 0 ? bounded : free)(time, channel, rate + (channel0 + c) * pn + n, w.B + n, w.C + n, pn, least,
                                     w.first + c * pn + n, w.gh + (c0 + c) * pn + n, w.d_rate + (c0 + c) * pn + n,
                                     w.d_B + n, w.d_C + n);
    }
  });
  constexpr T ln2 = T(0.69314718055994530942);
  T* d_skip = p.d_skip + task.slot * D + channel0;
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t i = at + t * D + c;
      p.d_x[i] = p.write[i] * w.by_write[c * steps + t] + p.d_out[i] * p.skip[channel0 + c];
      p.d_write[i] = p.x[i] * w.by_write[c * steps + t];
      p.d_delta[i] = ln2 * w.by_rate[c * steps + t];
      d_skip[c] += p.d_out[i] * p.x[i];
    }
  }
}

template <class T>
void group_back(const ScanSizes& s, const ScanBackward<T>& p, const ScanTask& task, const T* rate) {
  const int64_t D = s.channels, N = s.states, pn = padded_states<T>(N), steps = s.chunk();
  const int64_t group = task.last_channel - task.first_channel;
  BackScratch<T> w(group, pn, steps);
  std::fill_n(w.d_rate, group * pn, T(0));
  std::fill_n(p.d_skip + task.slot * D + task.first_channel, group, T(0));
  for (int64_t b = task.slot; b < s.batch; b += s.batch_slots()) {
    const int64_t states_at = (b * D + task.first_channel) * N;
    if (p.d_last_state)
      copy_padded(group, p.d_last_state + states_at, N, w.gh, pn);
    else
      std::fill_n(w.gh, group * pn, T(0));
    for (int64_t t0 = (s.chunks() - 1) * steps; t0 >= 0; t0 -= steps) {
      const int64_t time = std::min(steps, s.time - t0);
      copy_padded(time, p.B + (b * s.time + t0) * N, N, w.B, pn);
      copy_padded(time, p.C + (b * s.time + t0) * N, N, w.C, pn);
      std::fill_n(w.d_B, time * pn, T(0));
      std::fill_n(w.d_C, time * pn, T(0));
      for (int64_t c0 = 0; c0 < group; c0 += kScanChannels) block_back(s, p, task, rate, w, b, t0, c0);
      const int64_t rows_at = ((task.group * s.batch + b) * s.time + t0) * N;
      for (int64_t t = 0; t < time; ++t) {
        std::copy_n(w.d_B + t * pn, N, p.d_B + rows_at + t * N);
        std::copy_n(w.d_C + t * pn, N, p.d_C + rows_at + t * N);
      }
    }
    for (int64_t c = 0; c < group; ++c) std::copy_n(w.gh + c * pn, N, p.d_first_state + states_at + c * N);
  }
  // delta A = ln2 delta rate and dA / dA_log = A
  constexpr T ln2 = T(0.69314718055994530942);
  for (int64_t c = 0; c < group; ++c)
    for (int64_t n = 0; n < N; ++n)
      p.d_A_log[(task.slot * D + task.first_channel + c) * N + n] =
          w.d_rate[c * pn + n] * ln2 * rate[(task.first_channel + c) * pn + n];
}

}  // namespace

template <class T>
void selective_scan_backward(const ScanSizes& s, const ScanBackward<T>& p) {
  const std::vector<T> rate = decay_rates(s, p.A_log);
  for_each_task(s.batch_slots() * s.channel_groups(),
                [&](int64_t task) { group_back(s, p, ScanTask(s, task), rate.data()); });
}

template void selective_scan_backward(const ScanSizes&, const ScanBackward<float>&);
template void selective_scan_backward(const ScanSizes&, const ScanBackward<double>&);

}  // namespace sb::cpu
