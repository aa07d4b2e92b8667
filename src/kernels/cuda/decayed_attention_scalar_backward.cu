// Gradients with one decay a step and head. First the gradients of the states after each chunk, walking back over the
// chunks of one sequence, head and slice of V:  dS <- c_end dS + scale (c Q)^T dO.  Then all chunks at once, a block
// for one chunk of one sequence and some heads of a group:
//   M_ij = do_i . v_j (j <= i);  N = scale sum over heads (M o L), L_ij = decay from j to i
//   dq = scale sum (c dO) S^T + N K;  dk = sum (c_end/c V) dS^T + N^T Q;  dv = P^T dO + (c_end/c K) dS
//   dg_t = c_end <dS, S> + sum_{i >= t} q_i . dq_i of S + sum_{j < t} v_j . dv_j of dS + sum_{j < t <= i} P_ij M_ij
#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda::attention {
namespace {

template <Product P, int KP, int VS>
struct StateLayout {
  using E = Element<P>;
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
  using E = Element<P>;
  using L = StateLayout<P, KP, VS>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *d_out = reinterpret_cast<E*>(memory + at_bytes.d_out);
  E* tile = reinterpret_cast<E*>(memory + at_bytes.state);
  StepDecays* all_decays = reinterpret_cast<StepDecays*>(memory + at_bytes.decays);

  const Place at;
  const Sizes& z = a.z;
  const int h = static_cast<int>(blockIdx.x) % z.H, b = static_cast<int>(blockIdx.x) / z.H;
  const int first = static_cast<int>(blockIdx.y) * VS, slice = min(VS, z.V - first), group = h / z.per_group;
  const int64_t pair = static_cast<int64_t>(b) * z.H + h;
  const float* g = a.p.g ? a.p.g + b * a.p.g_batch + h * a.p.g_head : nullptr;
  const auto scan = [&](int chunk) {
    all_decays[chunk % 2].scan(g ? g + chunk * kChunk * a.p.g_time : nullptr, a.p.g_time, z.T - chunk * kChunk,
                               at.lane);
  };
  StateTile<KP, VS> gradient(at);
  gradient.read(a.d.d_final_state ? a.d.d_final_state + pair * z.K * z.V : nullptr, z.K, z.V, first, at);
  if (at.warp == 0) scan(z.chunks - 1);
  __syncthreads();
  for (int chunk = z.chunks - 1; chunk >= 0; --chunk) {
    const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin);
    const StepDecays& decays = all_decays[chunk % 2];
    load_tile<kChunk, KP>(q, L::LK, HeadRows<const E>(a.p.q, b, begin, group, z.K), steps, z.K, at);
    HeadRows<const E> rows(a.d.d_out, b, begin, h, z.V);
    rows.data += first;
    load_scaled_tile<kChunk, VS>(static_cast<E*>(nullptr), d_out, L::LV, rows, steps, slice, decays.since, a.p.scale,
                                 at);
    gradient.to_shared(tile, L::LV, at);
    if (at.warp == 7 && chunk > 0) scan(chunk - 1);
    __syncthreads();
    write_state<KP, VS>(static_cast<E*>(a.state_gradients) + (pair * z.chunks + chunk) * z.state_size(), tile, L::LV, z,
                        first, at);
    const float total = decays.total();
    gradient.template advance<P>(q, L::LK, d_out, L::LV, at, [&](int) { return total; });
    __syncthreads();
  }
  if (a.d.d_initial_state) gradient.write(a.d.d_initial_state + pair * z.K * z.V, z.K, z.V, first, at);
}

template <Product P, int KP, int VS>
struct ChunkLayout {
  using E = Element<P>;
  static constexpr int LK = leading<E>(KP), LV = leading<E>(VS), LP = leading<E>(kChunk), LN = kChunk + 4;
  size_t q, k, v, d_out, state, gradient, pairs, n, decays, rows, bytes;
  __host__ __device__ ChunkLayout() {
    Pieces m;
    q = m.take<E>(kChunk * LK);
    k = m.take<E>(kChunk * LK);
    v = m.take<E>(kChunk * LV);
    d_out = m.take<E>(kChunk * LV);
    state = m.take<E>(KP * LV);
    gradient = m.take<E>(KP * LV);
    pairs = m.take<E>(kChunk * LP);
    n = m.take<float>(kChunk * LN);
    decays = m.take<StepDecays>(1);
    rows = m.take<float>(10 * kChunk + 8);
    bytes = m.used;
  }
};

// Sums over the chunk's steps that dg needs, as the warps leave them.
struct StepSums {
  float from_start[2][kChunk], to_end[2][kChunk], row[2][kChunk], column[4][kChunk];
  float along[8];  // <dS, S> by warp
};
static_assert(sizeof(StepSums) == (10 * kChunk + 8) * sizeof(float));

__device__ inline float sum_lanes(float x, int from, int to) {
  for (int by = from; by < to; by *= 2) x += __shfl_xor_sync(~0u, x, by);
  return x;
}
// Inclusive sum over 64 values, two a lane, in the order of the lanes.
__device__ inline void running_sums(float (&x)[2], int lane) {
  float before = x[0] + x[1];
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const float y = __shfl_up_sync(~0u, before, by);
    if (lane >= by) before += y;
  }
  before = __shfl_up_sync(~0u, before, 1);
  if (lane == 0) before = 0;
  x[0] += before;
  x[1] += x[0];
}

// The gradients of the chunk's log-decays, by one warp.
__device__ inline void write_decay_gradients(const BackwardArguments& a, const StepSums& s, float total, int b, int h,
                                             int chunk, int steps, int lane) {
  float later[2], earlier[2];  // sums over i >= t come as all - sum over i < t of steps in reverse order
  float along = 0;
  for (int w = 0; w < 8; ++w) along += s.along[w];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int back = kChunk - 1 - (2 * lane + i), t = 2 * lane + i;
    later[i] = s.from_start[0][back] + s.from_start[1][back];
    earlier[i] = s.to_end[0][t] + s.to_end[1][t] +
                 ((s.column[0][t] + s.column[1][t]) + (s.column[2][t] + s.column[3][t])) - (s.row[0][t] + s.row[1][t]);
  }
  const float own[2] = {earlier[0], earlier[1]};
  running_sums(later, lane);
  running_sums(earlier, lane);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int t = 2 * lane + i;
    const float from_later = __shfl_sync(~0u, later[1 - i], 31 - lane);
    const float x = total * along + from_later + (earlier[i] - own[i]);
    if (t >= steps) continue;
    if (a.p.decay == Decay::scalar)
      a.d.dg[b * a.d.dg_batch + (static_cast<int64_t>(chunk) * kChunk + t) * a.d.dg_time + h * a.d.dg_head] = x;
    sum += x;
  }
  if (a.p.decay != Decay::fixed) return;
  sum = sum_lanes(sum, 1, 32);
  if (lane == 0) a.dg_parts[(static_cast<int64_t>(b) * a.z.H + h) * a.z.chunks + chunk] = sum;
}

template <Product P, int KP, int VS>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 && KP <= 128 ? 2 : 1)
    chunk_gradients(const __grid_constant__ BackwardArguments a) {
  using E = Element<P>;
  using L = ChunkLayout<P, KP, VS>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *k = reinterpret_cast<E*>(memory + at_bytes.k);
  E *v = reinterpret_cast<E*>(memory + at_bytes.v), *d_out = reinterpret_cast<E*>(memory + at_bytes.d_out);
  E* state = reinterpret_cast<E*>(memory + at_bytes.state);
  E* gradient = reinterpret_cast<E*>(memory + at_bytes.gradient);
  E* pairs = reinterpret_cast<E*>(memory + at_bytes.pairs);
  float* n_sum = reinterpret_cast<float*>(memory + at_bytes.n);
  StepDecays& decays = *reinterpret_cast<StepDecays*>(memory + at_bytes.decays);
  StepSums& sums = *reinterpret_cast<StepSums*>(memory + at_bytes.rows);

  const Place at;
  const Sizes& z = a.z;
  const int chunk = static_cast<int>(blockIdx.x) % z.chunks, part = static_cast<int>(blockIdx.x) / z.chunks % z.parts;
  const int bg = static_cast<int>(blockIdx.x) / (z.chunks * z.parts), b = bg / z.G, group = bg % z.G;
  const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin), heads = z.per_group / z.parts;
  const int i0 = at.strip * 16, j0 = at.half * 32, k0 = at.half * (KP / 2), c0 = at.half * (VS / 2);
  const bool decaying = a.p.decay != Decay::unit;

  load_tile<kChunk, KP>(q, L::LK, HeadRows<const E>(a.p.q, b, begin, group, z.K), steps, z.K, at);
  load_tile<kChunk, KP>(k, L::LK, HeadRows<const E>(a.p.k, b, begin, group, z.K), steps, z.K, at);
  float dq[1][KP / 16][4], dk[1][KP / 16][4];
  clear(dq);
  clear(dk);

  for (int head = 0; head < heads; ++head) {
    const int h = group * z.per_group + part * heads + head;
    const int64_t state_at = ((static_cast<int64_t>(b) * z.H + h) * z.chunks + chunk) * z.state_size();
    if (at.warp == 0)
      decays.scan(a.p.g ? a.p.g + b * a.p.g_batch + h * a.p.g_head + begin * a.p.g_time : nullptr, a.p.g_time, steps,
                  at.lane);
    __syncthreads();
    {
      float p[1][4][4];
      clear(p);
      if (j0 <= i0 + 15)
        multiply<P, Depth::fast, Depth::fast>(p, q + i0 * L::LK, L::LK, k + j0 * L::LK, L::LK, KP, at.lane);
      for_pairs(p, at, [&](int r, int c, float x, float y) {
        store_pair(pairs + (i0 + r) * L::LP + j0 + c, a.p.scale * x * decays.between(j0 + c, i0 + r),
                   a.p.scale * y * decays.between(j0 + c + 1, i0 + r));
      });
    }
    float m[1][4][4];
    clear(m);
    float from_start[2] = {0, 0}, to_end[2] = {0, 0}, along = 0;
    for (int first = 0; first < z.V; first += VS) {
      const int slice = min(VS, z.V - first), row_slice = min(VS, z.value_row - first);
      HeadRows<const E> values(a.p.v, b, begin, h, z.V), d_rows(a.d.d_out, b, begin, h, z.V);
      HeadRows<E> dv_rows(a.d.dv, b, begin, h, z.V);
      values.data += first;
      d_rows.data += first;
      dv_rows.data += first;
      load_tile<kChunk, VS>(v, L::LV, values, steps, slice, at);
      load_tile<kChunk, VS>(d_out, L::LV, d_rows, steps, slice, at);
      load_tile<KP, VS>(state, L::LV, HeadRows<const E>(static_cast<const E*>(a.kept) + state_at + first, z.value_row),
                        z.K, row_slice, at);
      load_tile<KP, VS>(gradient, L::LV,
                        HeadRows<const E>(static_cast<const E*>(a.state_gradients) + state_at + first, z.value_row),
                        z.K, row_slice, at);
      __syncthreads();

      if (j0 <= i0 + 15)
        multiply<P, Depth::fast, Depth::fast>(m, d_out + i0 * L::LV, L::LV, v + j0 * L::LV, L::LV, VS, at.lane);
#pragma unroll
      for (int n = 0; n < KP / 16; n += 2) {
        float x[1][2][4];
        clear(x);
        multiply<P, Depth::fast, Depth::fast>(x, d_out + i0 * L::LV, L::LV, state + (k0 + n * 8) * L::LV, L::LV, VS,
                                              at.lane);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const int up = e % 4 / 2, row = i0 + up * 8 + at.row, column = k0 + (n + e / 4) * 8 + at.pair * 2 + e % 2;
          const float y = a.p.scale * decays.since[row] * x[0][e / 4][e % 4];
          dq[0][n + e / 4][e % 4] += y;
          if (decaying) from_start[up] = fmaf(to_float(q[row * L::LK + column]), y, from_start[up]);
        }
        clear(x);
        multiply<P, Depth::fast, Depth::fast>(x, v + i0 * L::LV, L::LV, gradient + (k0 + n * 8) * L::LV, L::LV, VS,
                                              at.lane);
#pragma unroll
        for (int e = 0; e < 8; ++e)
          dk[0][n + e / 4][e % 4] += decays.until[i0 + e % 4 / 2 * 8 + at.row] * x[0][e / 4][e % 4];
      }
      float dv[1][VS / 16][4];
      clear(dv);
      multiply<P, Depth::fast, Depth::slow>(dv, k + i0 * L::LK, L::LK, gradient + c0, L::LV, KP, at.lane);
      for_pairs(dv, at, [&](int r, int c, float& x, float& y) {
        const float f = decays.until[i0 + r];
        x *= f;
        y *= f;
        const float2 value = load_pair(v + (i0 + r) * L::LV + c0 + c);
        if (decaying) to_end[r / 8] += value.x * x + value.y * y;
      });
      multiply<P, Depth::slow, Depth::slow>(dv, pairs + i0 * L::LP + i0, L::LP, d_out + i0 * L::LV + c0, L::LV,
                                            kChunk - i0, at.lane);
      for_pairs(dv, at, [&](int r, int c, float x, float y) {
        if (i0 + r < steps) write_pair(dv_rows, i0 + r, c0 + c, slice, x, y);
      });
      if (decaying) {
        for (int i = at.thread; i < KP * VS / 2; i += kBlock) {
          const int e = i / (VS / 2) * L::LV + i % (VS / 2) * 2;
          const float2 x = load_pair(state + e), y = load_pair(gradient + e);
          along += x.x * y.x + x.y * y.y;
        }
      }
      __syncthreads();
    }

    float row_sum[2] = {0, 0}, column_sum[8] = {};
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = i0 + e / 2 * 8 + at.row, j = j0 + n * 8 + at.pair * 2 + e % 2;
        if (decaying && j < i) {
          const float both = m[0][n][e] * to_float(pairs[i * L::LP + j]);
          row_sum[e / 2] += both;
          column_sum[n * 2 + e % 2] += both;
        }
        float& sum = n_sum[i * L::LN + j];
        const float x = a.p.scale * decays.between(j, i) * m[0][n][e];
        sum = head == 0 ? x : sum + x;
      }
    if (decaying) {
#pragma unroll
      for (int up = 0; up < 2; ++up) {
        const float x = sum_lanes(from_start[up], 1, 4), y = sum_lanes(to_end[up], 1, 4),
                    w = sum_lanes(row_sum[up], 1, 4);
        if (at.pair == 0) {
          sums.from_start[at.half][i0 + up * 8 + at.row] = x;
          sums.to_end[at.half][i0 + up * 8 + at.row] = y;
          sums.row[at.half][i0 + up * 8 + at.row] = w;
        }
      }
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        const float x = sum_lanes(column_sum[c], 4, 32);
        if (at.row == 0) sums.column[at.strip][j0 + c / 2 * 8 + at.pair * 2 + c % 2] = x;
      }
      along = sum_lanes(along, 1, 32);
      if (at.lane == 0) sums.along[at.warp] = along;
    }
    __syncthreads();
    if (decaying && at.warp == 0) write_decay_gradients(a, sums, decays.total(), b, h, chunk, steps, at.lane);
  }

  for (int i = at.thread; i < kChunk * kChunk / 2; i += kBlock) {
    const int r = i / (kChunk / 2), c = i % (kChunk / 2) * 2;
    store_pair(pairs + r * L::LP + c, n_sum[r * L::LN + c], n_sum[r * L::LN + c + 1]);
  }
  __syncthreads();
  multiply<P, Depth::fast, Depth::slow>(dq, pairs + i0 * L::LP, L::LP, k + k0, L::LK, i0 + 16, at.lane);
  multiply<P, Depth::slow, Depth::slow>(dk, pairs + i0 * L::LP + i0, L::LP, q + i0 * L::LK + k0, L::LK, kChunk - i0,
                                        at.lane);
  if (z.parts == 1) {
    const HeadRows<E> dq_rows(a.d.dq, b, begin, group, z.K), dk_rows(a.d.dk, b, begin, group, z.K);
    for_pairs(dq, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dq_rows, i0 + r, k0 + c, z.K, x, y);
    });
    for_pairs(dk, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dk_rows, i0 + r, k0 + c, z.K, x, y);
    });
  } else {
    const int64_t row = ((static_cast<int64_t>(part) * z.B + b) * z.T + begin) * z.G + group;
    HeadRows<float> dq_rows(a.dq_parts + row * z.K, static_cast<int64_t>(z.G) * z.K);
    HeadRows<float> dk_rows(a.dk_parts + row * z.K, static_cast<int64_t>(z.G) * z.K);
    dq_rows.wide = dk_rows.wide = z.K % 2 == 0;
    for_pairs(dq, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dq_rows, i0 + r, k0 + c, z.K, x, y);
    });
    for_pairs(dk, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dk_rows, i0 + r, k0 + c, z.K, x, y);
    });
  }
}

// VS: columns of a slice of V in the walk over the states, VC in the pass over all chunks
template <Product P, int KP, int VS, int VC>
cudaError_t run(const BackwardArguments& a, cudaStream_t stream) {
  const dim3 pairs(static_cast<unsigned>(a.z.B) * static_cast<unsigned>(a.z.H),
                   static_cast<unsigned>((a.z.V + VS - 1) / VS));
  const cudaError_t status = launch(state_gradients<P, KP, VS>, pairs, StateLayout<P, KP, VS>().bytes, a, stream);
  if (status != cudaSuccess) return status;
  const dim3 chunks(static_cast<unsigned>(a.z.B) * static_cast<unsigned>(a.z.G * a.z.parts * a.z.chunks));
  return launch(chunk_gradients<P, KP, VC>, chunks, ChunkLayout<P, KP, VC>().bytes, a, stream);
}

template <Product P>
cudaError_t run_float(const BackwardArguments& a, cudaStream_t stream) {
  return a.z.K <= 128 ? run<P, 128, 64, 32>(a, stream) : run<P, 256, 32, 16>(a, stream);
}

}  // namespace

cudaError_t scalar_backward(const BackwardArguments& a, cudaStream_t stream) {
  if (a.p.precision == Precision::tf32) return run_float<Product::tf32>(a, stream);
  if (a.p.precision == Precision::fp32) return run_float<Product::fp32>(a, stream);
  constexpr Product P = Product::bf16;
  const bool by_96 = (a.z.V + 95) / 96 * 96 <= (a.z.V + 63) / 64 * 64;
  if (a.z.K <= 64) return by_96 ? run<P, 64, 96, 48>(a, stream) : run<P, 64, 64, 64>(a, stream);
  if (a.z.K <= 96) return by_96 ? run<P, 96, 96, 48>(a, stream) : run<P, 96, 64, 64>(a, stream);
  if (a.z.K <= 128) return by_96 ? run<P, 128, 96, 48>(a, stream) : run<P, 128, 64, 32>(a, stream);
  return a.z.K <= 192 ? run<P, 192, 64, 32>(a, stream) : run<P, 256, 64, 32>(a, stream);
}

}  // namespace sb::cuda::attention
