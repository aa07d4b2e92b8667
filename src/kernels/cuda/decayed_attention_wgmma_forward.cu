// Forward pass with one decay per step and head, in bf16, with warp groups. A block loops over the chunks of one
// segment and head. Two groups hold the state, write it rounded to shared memory and advance it. The other two groups
// compute the outputs, of even and odd chunks respectively; in the first pass over segments they have no work.
#include "kernels/cuda/decayed_attention_wgmma.cuh"

namespace sb::cuda::attention {
namespace {

constexpr int kThreadsForward = 4 * kGroupThreads, kStateThreads = 2 * kGroupThreads, kStages = 3, kStepSets = 4;

template <int VP>
struct ForwardMemory {
  static constexpr int q = 0, k = q + KeyTile::bytes, x = k + KeyTile::bytes;
  static constexpr int stage = x + ValueTile<VP>::bytes, states = kStages * stage;
  static constexpr int steps = states + 2 * GroupStateTile<VP>::bytes;
  static constexpr int own = steps + kStepSets * static_cast<int>(sizeof(WalkSteps));  // factors of own outputs
  static constexpr int full = own + kStepSets * kChunk * static_cast<int>(sizeof(float));
  static constexpr int bytes = full + kStages * static_cast<int>(sizeof(CopyBarrier));
};
struct ForwardMaps {
  CUtensorMap q, k, v;
};

// Barriers between the groups of states and of outputs, for even and odd chunks
constexpr int kHandOver = 3 * kGroupThreads;
__device__ inline int ready(int chunk) {
  return 2 + chunk % 2;
}
__device__ inline int done_with(int chunk) {
  return 4 + chunk % 2;
}

// Own: there is `before`, and the factor of a step's own output differs from that of later ones. First: the first pass
// over segments.
template <int VP, bool Own, bool First>
__global__ void __launch_bounds__(kThreadsForward, 1)
    walk_forward(const __grid_constant__ ForwardArguments a, const __grid_constant__ ForwardMaps maps) {
#ifdef SB_WGMMA
  using M = ForwardMemory<VP>;
  using Values = ValueTile<VP>;
  using States = GroupStateTile<VP>;
  extern __shared__ __align__(1024) unsigned char memory[];
  WalkSteps* const all_steps = reinterpret_cast<WalkSteps*>(memory + M::steps);
  CopyBarrier* const full = reinterpret_cast<CopyBarrier*>(memory + M::full);
  float* const all_own = reinterpret_cast<float*>(memory + M::own);
  const uint32_t base = shared_address(memory);
  const Sizes& z = a.z;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const Walk walk(z.segments, z.chunks);  // its chunks count from 0 here
  const int h = walk.pair % z.H, b = walk.pair / z.H, g = h / z.per_group;
  const int chunks = walk.end - walk.begin, state_size = z.K * z.V;
  const int64_t pair_of_heads = walk.pair;
  const StepSources sources(a.p, b, h);
  if (thread < kStages) full[thread].init();
  __syncthreads();

  if (thread < kStateThreads) {
    const auto scan = [&](int chunk) {
      if (chunk >= chunks) return;
      WalkSteps& to = all_steps[chunk % kStepSets];
      const int begin = (walk.begin + chunk) * kChunk;
      sources.scan(to, begin, z.T - begin, lane, Own ? all_own + chunk % kStepSets * kChunk : nullptr);
      const int t = 2 * lane;
      to.set_factors(to.until[t] * to.write[t], to.until[t + 1] * to.write[t + 1], lane);
    };
    const auto copy = [&](int chunk) {
      if (chunk >= chunks || thread != 0) return;
      CopyBarrier& done = full[chunk % kStages];
      const uint32_t to = base + static_cast<uint32_t>(chunk % kStages * M::stage);
      const int begin = (walk.begin + chunk) * kChunk;
      done.expect(First ? M::stage - M::k : M::stage);
      if (!First) copy_tile<KeyTile>(to + M::q, maps.q, g, begin, b, done);
      copy_tile<KeyTile>(to + M::k, maps.k, g, begin, b, done);
      copy_tile<Values>(to + M::x, maps.v, h, begin, b, done);
    };
    copy(0);
    if (warp < 2) scan(warp);
    GroupState<VP> state(thread);
    state.read(a.p.initial_state ? a.p.initial_state + static_cast<int64_t>(walk.index) * state_size : nullptr, z.K,
               z.V);
    bf16* kept =
        a.kept ? static_cast<bf16*>(a.kept) + (pair_of_heads * z.chunks + walk.begin) * z.state_size() : nullptr;
    float segment_decay = 1;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const WalkSteps& steps = all_steps[chunk % kStepSets];
      unsigned char *const at = memory + chunk % kStages * M::stage, *const tile =
                                                                         memory + M::states + chunk % 2 * States::bytes;
      if (!First) {
        if (chunk >= 2) threads_barrier(done_with(chunk), kHandOver);
        state.to_tile(tile);
        shared_writes_to_products();
        threads_arrive(ready(chunk), kHandOver);
      }
      threads_barrier(1, kStateThreads);
      copy(chunk + 1);
      full[chunk % kStages].wait(chunk / kStages);
      __syncwarp();
      state.advance(steps, at + M::k, shared_address(at + M::x));
      if (kept && !First) store_state<VP>(kept + chunk * z.state_size(), tile, z.K, z.V, thread);
      if (warp == 7) scan(chunk + 2);
      if (First) segment_decay *= steps.total();
      wgmma_wait<0>(state.x);
    }
    if (First) {
      state.write(a.first.states + static_cast<int64_t>(walk.index) * state_size, z.K, z.V);
      if (thread == 0) a.first.decays[walk.index] = segment_decay;
    } else if (a.final_state && walk.end == z.chunks) {
      state.write(a.final_state + pair_of_heads * state_size, z.K, z.V);
    }
    return;
  }
  if (First) return;

  const int outputs = thread / kGroupThreads - 2;
  const int pair = lane % 4, row = warp % 4 * 16 + lane / 4;
  const float skip = a.p.skip ? a.p.skip[h] : 0.f;
  for (int chunk = outputs; chunk < chunks; chunk += 2) {
    const int begin = (walk.begin + chunk) * kChunk, rows = min(kChunk, z.T - begin);
    const WalkSteps& steps = all_steps[chunk % kStepSets];
    const uint32_t stage = base + static_cast<uint32_t>(chunk % kStages * M::stage);
    const uint32_t tile = base + static_cast<uint32_t>(M::states + chunk % 2 * States::bytes);
    threads_barrier(ready(chunk), kHandOver);
    full[chunk % kStages].wait(chunk / kStages);
    __syncwarp();
    float p[kChunk / 8][4], o[VP / 8][4];
    wgmma_fence();
    start_product<kGroupKeys / 16>(p, Along<KeyTile>{stage + M::q}, Along<KeyTile>{stage + M::k});
    wgmma_commit();
    start_product<kGroupKeys / 16>(o, Along<KeyTile>{stage + M::q}, Down<States>{tile});
    wgmma_commit();
    wgmma_wait<1>(p);
    uint32_t weights[kChunk / 16][4];
    const float until_row[2] = {steps.sum[row], steps.sum[row + 8]};
    const float* const own = all_own + chunk % kStepSets * kChunk;
    const float own_row[2] = {Own ? own[row] : 0.f, Own ? own[row + 8] : 0.f};
#pragma unroll
    for (int n = 0; n < kChunk / 8; ++n) {
      const int j = n * 8 + pair * 2;
      const float2 sums = *reinterpret_cast<const float2*>(steps.sum + j);
      const float2 writes = *reinterpret_cast<const float2*>(steps.write + j);
#pragma unroll
      for (int up = 0; up < 2; ++up) {
        const int i = row + 8 * up;
        const float x = Own && j == i ? own_row[up] : writes.x, y = Own && j + 1 == i ? own_row[up] : writes.y;
        const float first = j <= i ? exp2_fast(until_row[up] - sums.x) * (a.p.scale * x) : 0.f;
        const float second = j + 1 <= i ? exp2_fast(until_row[up] - sums.y) * (a.p.scale * y) : 0.f;
        const float w0 = p[n][2 * up] * first, w1 = p[n][2 * up + 1] * second;
        weights[n / 2][n % 2 * 2 + up] = pack(j == i ? w0 + skip : w0, j + 1 == i ? w1 + skip : w1);
      }
    }
    const float since[2] = {a.p.scale * steps.since[row], a.p.scale * steps.since[row + 8]};
    wgmma_wait<0>(o);
    scale_rows(o, since);
    wgmma_fence();
    start_product(o, weights, Down<Values>{stage + M::x});
    wgmma_commit();
    wgmma_wait<0>(o);
    if (chunk + 2 < chunks) threads_arrive(done_with(chunk), kHandOver);
    bf16* const out = head_rows(a.out, b, begin, h) + row * a.out.time + pair * 2;
#pragma unroll
    for (int n = 0; n < VP / 8; ++n)
#pragma unroll
      for (int up = 0; up < 2; ++up) {
        if (n * 8 >= z.V || row + 8 * up >= rows) continue;
        *reinterpret_cast<uint32_t*>(out + up * 8 * a.out.time + n * 8) = pack(o[n][2 * up], o[n][2 * up + 1]);
      }
  }
#endif
}

template <int VP>
cudaError_t run(const ForwardArguments& a, cudaStream_t stream) {
  ForwardMaps maps;
  cudaError_t status = rows_map<KeyTile>(maps.q, a.p.q, a.z, a.z.G, a.z.K);
  if (status == cudaSuccess) status = rows_map<KeyTile>(maps.k, a.p.k, a.z, a.z.G, a.z.K);
  if (status == cudaSuccess) status = rows_map<ValueTile<VP>>(maps.v, a.p.v, a.z, a.z.H, a.z.V);
  if (status != cudaSuccess) return status;
  const auto kernel = a.first.states ? walk_forward<VP, false, true>
                      : a.p.before   ? walk_forward<VP, true, false>
                                     : walk_forward<VP, false, false>;
  return launch(kernel, dim3(static_cast<unsigned>(a.z.B * a.z.H * a.z.segments.walked)), kThreadsForward,
                ForwardMemory<VP>::bytes, stream, a, maps);
}

bool wide(const void* data, int64_t batch, int64_t time, int64_t head) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && batch % 8 == 0 && time % 8 == 0 && head % 8 == 0;
}
template <class Void>
bool wide(const RowsOf<Void>& x) {
  return wide(x.data, x.batch, x.time, x.head);
}

}  // namespace

bool by_wgmma(const DecayedAttention& p, const Sizes& z) {
  return p.precision == Precision::bf16 && p.decay != Decay::vector && z.K > 64 && z.K <= kGroupKeys && z.V <= 96 &&
         z.K % 8 == 0 && z.V % 8 == 0 && wide(p.q) && wide(p.k) && wide(p.v) && is_hopper();
}
bool by_wgmma(const ForwardArguments& a) {
  return by_wgmma(a.p, a.z) && wide(a.out);
}
bool by_wgmma(const BackwardArguments& a) {  // faster only if heads share keys
  return by_wgmma(a.p, a.z) && wide(a.d.d_out) && wide(a.d.dv) && wide(a.d.dq) && wide(a.d.dk) &&
         (a.z.per_group > 1 || a.p.write || a.p.skip);
}

cudaError_t wgmma_forward(const ForwardArguments& a, cudaStream_t stream) {
  return a.z.V <= 64 ? run<64>(a, stream) : run<96>(a, stream);
}

}  // namespace sb::cuda::attention
