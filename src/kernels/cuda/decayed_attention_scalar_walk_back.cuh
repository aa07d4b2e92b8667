// The backward pass over the chunks of one segment, head and slice of V with one decay per step and head, from last to
// first. It computes the gradients of the states; decayed_attention_scalar_backward.cu has the rest.
#pragma once
#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda::attention {

template <Product P, int KP, int VS>
struct StateLayout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KP), LV = leading<E>(VS);
  size_t q, d_out, state, decays, bytes;
  __host__ __device__ StateLayout() {
    Pieces m;
    q = m.take<E>(kChunk * LK);
    d_out = m.take<E>(kChunk * LV);
    state = m.take<E>(KP * LV);
    decays = m.take<StepDecays>(2);
    bytes = m.used;
  }
};

template <Product P, int KP, int VS>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 && KP <= 128 ? 2 : 1)
    state_gradients(const __grid_constant__ BackwardArguments a) {
  using E = Operand<P>;
  using L = StateLayout<P, KP, VS>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *d_out = reinterpret_cast<E*>(memory + at_bytes.d_out);
  E* tile = reinterpret_cast<E*>(memory + at_bytes.state);
  StepDecays* all_decays = reinterpret_cast<StepDecays*>(memory + at_bytes.decays);

  const Place at;
  const Sizes& z = a.z;
  const Walk walk(z.segments, z.chunks);
  const int h = walk.pair % z.H, b = walk.pair / z.H;
  const int first = static_cast<int>(blockIdx.y) * VS, slice = min(VS, z.V - first), group = h / z.per_group;
  const int64_t pair = walk.pair, state_size = static_cast<int64_t>(z.K) * z.V;
  const float* g = a.p.g ? a.p.g + b * a.p.g_batch + h * a.p.g_head : nullptr;
  const auto scan = [&](int chunk) {
    all_decays[chunk % 2].scan(g ? g + chunk * kChunk * a.p.g_time : nullptr, a.p.g_time, z.T - chunk * kChunk,
                               at.lane);
  };
  StateTile<KP, VS> gradient(at);
  gradient.read(a.d.d_final_state ? a.d.d_final_state + walk.index * state_size : nullptr, z.K, z.V, first, at);
  if (at.warp == 0) scan(walk.end - 1);
  __syncthreads();
  float segment_decay = 1;
  for (int chunk = walk.end - 1; chunk >= walk.begin; --chunk) {
    const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin);
    const StepDecays& decays = all_decays[chunk % 2];
    copy_tile<kChunk, KP>(q, L::LK, HeadRows<const E>(a.p.q, b, begin, group, z.K), steps, z.K, at);
    HeadRows<const E> rows(a.d.d_out, b, begin, h, z.V);
    rows.data += first;
    load_scaled_tile<kChunk, VS>(static_cast<E*>(nullptr), d_out, L::LV, rows, steps, slice, decays.since, a.p.scale,
                                 at);
    if (!a.first.states) gradient.to_shared(tile, L::LV, at);
    if (at.warp == 7 && chunk > walk.begin) scan(chunk - 1);
    finish_copies();
    __syncthreads();
    if (!a.first.states)
      write_state<KP, VS>(static_cast<E*>(a.state_gradients) + (pair * z.chunks + chunk) * z.state_size(), tile, L::LV,
                          z, first, at);
    const float total = decays.total();
    segment_decay *= total;
    gradient.template advance<P>(q, L::LK, d_out, L::LV, at, [&](int) { return total; });
    __syncthreads();
  }
  if (a.first.states) {
    gradient.write(a.first.states + walk.index * state_size, z.K, z.V, first, at);
    if (blockIdx.y == 0 && at.thread == 0) a.first.decays[walk.index] = segment_decay;
  } else if (a.d.d_initial_state && walk.begin == 0) {
    gradient.write(a.d.d_initial_state + pair * state_size, z.K, z.V, first, at);
  }
}

}  // namespace sb::cuda::attention
