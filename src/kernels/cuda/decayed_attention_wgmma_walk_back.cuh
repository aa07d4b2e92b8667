// The backward pass over the chunks of a segment of a head with warp groups, from last to first. It computes the
// gradients of the states; decayed_attention_wgmma_backward.cu has the rest.
#pragma once
#include "kernels/cuda/decayed_attention_wgmma_sums.cuh"

namespace sb::cuda::attention {

constexpr int kStateThreads = 2 * kGroupThreads, kChunkThreads = 3 * kGroupThreads;

template <int VP>
struct StateMemory {
  static constexpr int q = 0, d_out = KeyTile::bytes, stage = d_out + ValueTile<VP>::bytes, states = 2 * stage;
  static constexpr int steps = states + 2 * GroupStateTile<VP>::bytes;
  static constexpr int full = steps + 3 * static_cast<int>(sizeof(WalkSteps));
  static constexpr int bytes = full + 2 * static_cast<int>(sizeof(CopyBarrier));
};
struct BackwardMaps {
  CUtensorMap q, k, v, d_out, states, gradients;
};

// The pass over all chunks if every head has its own keys and there is `before` (decayed_attention_wgmma_heads.cu)
template <int VP>
cudaError_t head_gradients(const BackwardArguments& a, const BackwardMaps& maps, cudaStream_t stream);

// dS <- c_end dS + scale (c Q)^T dO, from the last chunk to the first. Stores dS of the state after each chunk.
template <int VP>
__global__ void __launch_bounds__(kStateThreads, 2)
    walk_back(const __grid_constant__ BackwardArguments a, const __grid_constant__ BackwardMaps maps) {
#ifdef SB_WGMMA
  using M = StateMemory<VP>;
  using Values = ValueTile<VP>;
  extern __shared__ __align__(1024) unsigned char memory[];
  WalkSteps* const all_steps = reinterpret_cast<WalkSteps*>(memory + M::steps);
  CopyBarrier* const full = reinterpret_cast<CopyBarrier*>(memory + M::full);
  const Sizes& z = a.z;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const Walk walk(z.segments, z.chunks);
  const int h = walk.pair % z.H, b = walk.pair / z.H, g = h / z.per_group, state_size = z.K * z.V;
  const int64_t pair = walk.pair;
  const StepSources sources(a.p, b, h);
  const auto scan = [&](int chunk) {
    if (chunk < walk.begin) return;
    WalkSteps& to = all_steps[chunk % 3];
    sources.scan(to, chunk * kChunk, z.T - chunk * kChunk, lane);
    to.set_factors(a.p.scale * to.since[2 * lane], a.p.scale * to.since[2 * lane + 1], lane);
  };
  const auto copy = [&](int chunk) {
    if (chunk < walk.begin || thread != 0) return;
    CopyBarrier& done = full[chunk % 2];
    const uint32_t to = shared_address(memory + chunk % 2 * M::stage);
    done.expect(M::stage);
    copy_tile<KeyTile>(to + M::q, maps.q, g, chunk * kChunk, b, done);
    copy_tile<Values>(to + M::d_out, maps.d_out, h, chunk * kChunk, b, done);
  };
  if (thread < 2) full[thread].init();
  __syncthreads();
  copy(walk.end - 1);
  if (warp < 2) scan(walk.end - 1 - warp);
  GroupState<VP> gradient(thread);
  gradient.read(a.d.d_final_state ? a.d.d_final_state + static_cast<int64_t>(walk.index) * state_size : nullptr, z.K,
                z.V);
  bf16* const kept = static_cast<bf16*>(a.state_gradients) + pair * z.chunks * z.state_size();
  float segment_decay = 1;
  for (int chunk = walk.end - 1; chunk >= walk.begin; --chunk) {
    const WalkSteps& steps = all_steps[chunk % 3];
    unsigned char *const at = memory + chunk % 2 * M::stage, *const tile = memory + M::states +
                                                                           chunk % 2 * GroupStateTile<VP>::bytes;
    if (!a.first.states) gradient.to_tile(tile);
    __syncthreads();
    copy(chunk - 1);
    full[chunk % 2].wait((walk.end - 1 - chunk) / 2);
    __syncwarp();
    gradient.advance(steps, at + M::q, shared_address(at + M::d_out));
    if (!a.first.states) store_state<VP>(kept + chunk * z.state_size(), tile, z.K, z.V, thread);
    if (warp == 7) scan(chunk - 2);
    segment_decay *= steps.total();
    wgmma_wait<0>(gradient.x);
  }
  if (a.first.states) {
    gradient.write(a.first.states + static_cast<int64_t>(walk.index) * state_size, z.K, z.V);
    if (thread == 0) a.first.decays[walk.index] = segment_decay;
  } else if (a.d.d_initial_state && walk.begin == 0) {
    gradient.write(a.d.d_initial_state + pair * state_size, z.K, z.V);
  }
#endif
}

}  // namespace sb::cuda::attention
