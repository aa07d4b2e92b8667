// Selective scan on the CPU. Processes one channel at a time, with its states in vectors. The initial state of each
// chunk of time is saved; the backward pass recomputes the other states of the chunk in cache. All arrays are row-major
// and contiguous.
#pragma once
#include <algorithm>
#include <cstdint>

namespace sb::cpu {

struct ScanSizes {
  int64_t batch, time, channels, states;
  // Steps between saved states. For up to 128 states, a chunk has at least as many steps as states, so the saved states
  // take no more memory than one [B,T,D] activation. Longer chunks would not fit into the arrays of the tiles.
  int64_t chunk() const { return states <= 64 ? 64 : 128; }
  int64_t chunks() const { return (time + chunk() - 1) / chunk(); }
  // The sizes alone determine the batch_slots * channel_groups tasks, so results do not depend on the thread count.
  int64_t batch_slots() const { return std::min<int64_t>(batch, 8); }
  int64_t channel_groups() const {
    const int64_t wanted = (16 + batch_slots() - 1) / batch_slots();
    return std::clamp<int64_t>(channels / 16, 1, wanted);
  }
};

// Shapes as in recurrence.h. write = delta for complementary gating. kept: the saved states [B, chunks, D, N], or null.
template <class T>
struct ScanForward {
  const T *x, *delta, *A_log, *B, *C, *skip, *write, *first_state;
  T *out, *last_state, *kept;
  double a_min;
};
template <class T>
void selective_scan_forward(const ScanSizes& sizes, const ScanForward<T>& p);

// d_delta does not include the gradient through `write`, which is d_write. Some gradients are partial sums, which the
// caller adds over the first axis in order: d_A_log [S, D, N] and d_skip [S, D] per batch slot; d_B and d_C [G, B, T,
// N] per channel group.
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
