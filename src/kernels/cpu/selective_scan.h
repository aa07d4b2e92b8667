// Selective scan on the CPU: one channel at a time, its states in vectors; time in chunks whose first states are kept,
// so that the backward pass recomputes a chunk's states in cache. All arrays row-major and contiguous.
#pragma once
#include <algorithm>
#include <cstdint>

namespace sb::cpu {

struct ScanSizes {
  int64_t batch, time, channels, states;
  // Steps between kept states; for up to 128 states at least as many, so that what is kept is no more than one [B,T,D]
  // activation. Longer chunks would not fit the tiles' arrays.
  int64_t chunk() const { return states <= 64 ? 64 : 128; }
  int64_t chunks() const { return (time + chunk() - 1) / chunk(); }
  // The work is cut into batch_slots * channel_groups tasks by sizes alone: bytes do not depend on the thread count.
  int64_t batch_slots() const { return std::min<int64_t>(batch, 8); }
  int64_t channel_groups() const {
    const int64_t wanted = (16 + batch_slots() - 1) / batch_slots();
    return std::clamp<int64_t>(channels / 16, 1, wanted);
  }
};

// Shapes as in recurrence.h; write = delta for complementary gating; kept [B, chunks, D, N] or null.
template <class T>
struct ScanForward {
  const T *x, *delta, *A_log, *B, *C, *skip, *write, *first_state;
  T *out, *last_state, *kept;
  double a_min;
};
template <class T>
void selective_scan_forward(const ScanSizes& sizes, const ScanForward<T>& p);

// d_delta does not contain the share of `write`. Partial sums, to be added over their first axes in order:
// d_A_log, d_skip by batch slot [S, D, N], [S, D]; d_B, d_C by channel group [G, B, T, N].
template <class T>
struct ScanBackward {
  const T *x, *delta, *A_log, *B, *C, *skip, *write, *kept;
  const T *d_out, *d_last_state;  // d_last_state may be null
  T *d_x, *d_delta, *d_write, *d_first_state;
  T *d_A_log, *d_skip, *d_B, *d_C;
  double a_min;
};
template <class T>
void selective_scan_backward(const ScanSizes& sizes, const ScanBackward<T>& p);

}  // namespace sb::cpu
