// Forward pass with one decay per step and head (or one per head, or none). A block loops over the chunks of one
// segment, head and slice of V, with the state in registers. The first pass over segments computes states only.
#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda::attention {
namespace {

template <Product P, int KP, int VS>
struct Layout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KP), LV = leading<E>(VS), LP = leading<E>(kChunk);
  size_t q, k, v, w, state, pairs, decays, bytes;
  __host__ __device__ Layout() {
    Pieces m;
    q = m.take<E>(kChunk * LK);
    k = m.take<E>(kChunk * LK);
    v = m.take<E>(kChunk * LV);
    w = m.take<E>(kChunk * LV);
    state = m.take<E>(KP * LV);
    pairs = m.take<E>(kChunk * LP);
    decays = m.take<StepDecays>(2);
    bytes = m.used;
  }
};

template <Product P, int KP>
constexpr int kBlocksAtOnce = P == Product::bf16&& KP <= 128 ? 2 : 1;

template <Product P, int KP, int VS>
__global__ void __launch_bounds__(kBlock, kBlocksAtOnce<P, KP>) forward(const __grid_constant__ ForwardArguments a) {
  using E = Operand<P>;
  using L = Layout<P, KP, VS>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *k = reinterpret_cast<E*>(memory + at_bytes.k);
  E *v = reinterpret_cast<E*>(memory + at_bytes.v), *w = reinterpret_cast<E*>(memory + at_bytes.w);
  E *entered = reinterpret_cast<E*>(memory + at_bytes.state), *pairs = reinterpret_cast<E*>(memory + at_bytes.pairs);
  StepDecays* all_decays = reinterpret_cast<StepDecays*>(memory + at_bytes.decays);

  const Place at;
  const Sizes& z = a.z;
  const Walk walk(z.segments, z.chunks);
  const int h = walk.pair % z.H, b = walk.pair / z.H;
  const int first = static_cast<int>(blockIdx.y) * VS, slice = min(VS, z.V - first), group = h / z.per_group;
  const int64_t pair = walk.pair, state_size = static_cast<int64_t>(z.K) * z.V;
  const bool outputs = !a.first.states;
  const float* g = a.p.g ? a.p.g + b * a.p.g_batch + h * a.p.g_head : nullptr;
  E* kept = outputs && a.kept ? static_cast<E*>(a.kept) + pair * z.chunks * z.state_size() : nullptr;

  StateTile<KP, VS> state(at);
  state.read(a.p.initial_state ? a.p.initial_state + walk.index * state_size : nullptr, z.K, z.V, first, at);
  const auto scan = [&](int chunk) {
    all_decays[chunk % 2].scan(g ? g + chunk * kChunk * a.p.g_time : nullptr, a.p.g_time, z.T - chunk * kChunk,
                               at.lane);
  };
  if (at.warp == 0) scan(walk.begin);
  __syncthreads();

  float segment_decay = 1;
  for (int chunk = walk.begin; chunk < walk.end; ++chunk) {
    const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin);
    const StepDecays& decays = all_decays[chunk % 2];
    if (outputs) copy_tile<kChunk, KP>(q, L::LK, HeadRows<const E>(a.p.q, b, begin, group, z.K), steps, z.K, at);
    copy_tile<kChunk, KP>(k, L::LK, HeadRows<const E>(a.p.k, b, begin, group, z.K), steps, z.K, at);
    HeadRows<const E> values(a.p.v, b, begin, h, z.V);
    values.data += first;
    load_scaled_tile<kChunk, VS>(v, w, L::LV, values, steps, slice, decays.until, 1, at);
    if (outputs) state.to_shared(entered, L::LV, at);
    if (at.warp == 7 && chunk + 1 < walk.end) scan(chunk + 1);
    finish_copies();
    __syncthreads();

    if (outputs) {
      float p[1][4][4];
      clear(p);
      const int i0 = at.strip * 16, j0 = at.half * 32;
      if (j0 <= i0 + 15)
        multiply<P, Depth::fast, Depth::fast, KP>(p, q + i0 * L::LK, L::LK, k + j0 * L::LK, L::LK, at.lane);
      for_pairs(p, at, [&](int r, int c, float x, float y) {
        const int i = i0 + r, j = j0 + c;
        store_pair(pairs + i * L::LP + j, a.p.scale * x * decays.template between<P>(j, i),
                   a.p.scale * y * decays.template between<P>(j + 1, i));
      });
    }
    if (kept) write_state<KP, VS>(kept + chunk * z.state_size(), entered, L::LV, z, first, at);
    if (outputs) __syncthreads();

    if (outputs) {
      float o[1][VS / 16][4];
      clear(o);
      const int i0 = at.strip * 16, c0 = at.half * (VS / 2);
      multiply<P, Depth::fast, Depth::slow, KP>(o, q + i0 * L::LK, L::LK, entered + c0, L::LV, at.lane);
      for_pairs(o, at, [&](int r, int, float& x, float& y) {
        const float f = a.p.scale * decays.since[i0 + r];
        x *= f;
        y *= f;
      });
      multiply<P, Depth::fast, Depth::slow, kChunk>(o, pairs + i0 * L::LP, L::LP, v + c0, L::LV, at.lane, i0 + 16);
      HeadRows<E> out(a.out, b, begin, h, z.V);
      out.data += first;
      for_pairs(o, at, [&](int r, int c, float x, float y) {
        if (i0 + r < steps) write_pair(out, i0 + r, c0 + c, slice, x, y);
      });
    }
    const float total = decays.total();
    segment_decay *= total;
    state.template advance<P>(k, L::LK, w, L::LV, at, [&](int) { return total; });
    __syncthreads();
  }
  if (!outputs) {
    state.write(a.first.states + walk.index * state_size, z.K, z.V, first, at);
    if (blockIdx.y == 0 && at.thread == 0) a.first.decays[walk.index] = segment_decay;
  } else if (a.final_state && walk.end == z.chunks) {
    state.write(a.final_state + pair * state_size, z.K, z.V, first, at);
  }
}

template <Product P, int KP, int VS>
cudaError_t run(const ForwardArguments& a, Target to) {
  const dim3 grid(static_cast<unsigned>(a.z.B * a.z.H * a.z.segments.walked),
                  static_cast<unsigned>((a.z.V + VS - 1) / VS));
  return launch(forward<P, KP, VS>, grid, kBlock, Layout<P, KP, VS>().bytes, to, a);
}

template <Product P>
cudaError_t run_float(const ForwardArguments& a, Target to) {
  return a.z.K <= 128 ? run<P, 128, 64>(a, to) : run<P, 256, 32>(a, to);
}

}  // namespace

cudaError_t scalar_forward(const ForwardArguments& a, Target to) {
  if (!to.none && by_wgmma(a)) return wgmma_forward(a, to.stream);
  if (a.p.write || a.p.skip) return cudaErrorInvalidValue;
  if (a.p.precision == Precision::tf32) return run_float<Product::tf32>(a, to);
  if (a.p.precision == Precision::fp32) return run_float<Product::fp32>(a, to);
  constexpr Product P = Product::bf16;
  const bool by_96 = (a.z.V + 95) / 96 * 96 <= (a.z.V + 63) / 64 * 64;  // less padding, or fewer slices
  if (a.z.K <= 64) return by_96 ? run<P, 64, 96>(a, to) : run<P, 64, 64>(a, to);
  if (a.z.K <= 96) return by_96 ? run<P, 96, 96>(a, to) : run<P, 96, 64>(a, to);
  if (a.z.K <= 128) return by_96 ? run<P, 128, 96>(a, to) : run<P, 128, 64>(a, to);
  return a.z.K <= 192 ? run<P, 192, 64>(a, to) : run<P, 256, 64>(a, to);
}

}  // namespace sb::cuda::attention
