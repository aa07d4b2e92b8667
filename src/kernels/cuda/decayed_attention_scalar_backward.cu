// Gradients with one decay per step and head. A first pass (decayed_attention_scalar_walk_back.cuh) computes the
// gradients of the states after each chunk:  dS <- c_end dS + scale (c Q)^T dO.  A second pass processes all chunks in
// parallel, with a block for one chunk of one sequence and some heads of a group:
//   M_ij = do_i . v_j (j <= i);  N = scale sum over heads (M o L), L_ij = decay from j to i
//   dq = scale sum (c dO) S^T + N K;  dk = sum (c_end/c V) dS^T + N^T Q;  dv = P^T dO + (c_end/c K) dS
//   dg_t = c_end <dS, S> + sum_{i >= t} q_i . dq_i of S + sum_{j < t} v_j . dv_j of dS + sum_{j < t <= i} P_ij M_ij
#include "kernels/cuda/decayed_attention_decay_gradients.cuh"
#include "kernels/cuda/decayed_attention_scalar_walk_back.cuh"

namespace sb::cuda::attention {
namespace {

// Sums over the chunk's steps that dg needs, as the warps leave them; <dS, S> by warp.
template <int Columns>
struct StepSums {
  float from_start[Columns][kChunk], to_end[Columns][kChunk], row[Columns][kChunk], column[4][kChunk];
  float along[4 * Columns];
};

// Columns: warps beside each other, of which each has all 64 rows in four strips. Buffers: slices of V in flight.
template <Product P, int KP, int VS, int Columns, int Buffers>
struct ChunkLayout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KP), LV = leading<E>(VS), LP = leading<E>(kChunk);
  static constexpr int rows = kChunk * LV, states = KP * LV, slice = 2 * rows + 2 * states;
  size_t q, k, slices, pairs, decays, sums, bytes;
  __host__ __device__ ChunkLayout() {
    Pieces m;
    q = m.take<E>(kChunk * LK);
    k = m.take<E>(kChunk * LK);
    slices = m.take<E>(Buffers * slice);
    pairs = m.take<E>(kChunk * LP);
    decays = m.take<StepDecays>(2);
    sums = m.take<StepSums<Columns>>(1);
    bytes = m.used;
  }
};

template <class E>
__device__ inline float dot(const uint4& x, const uint4& y) {
  const E *a = reinterpret_cast<const E*>(&x), *b = reinterpret_cast<const E*>(&y);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < static_cast<int>(16 / sizeof(E)); ++i) sum = fmaf(to_float(a[i]), to_float(b[i]), sum);
  return sum;
}

// The gradients of the chunk's log-decays from these sums, by one warp
template <int Columns>
__device__ inline void write_decay_gradients(const BackwardArguments& a, const StepSums<Columns>& s, float total, int b,
                                             int h, int chunk, int steps, int lane) {
  float later[2] = {0, 0}, earlier[2] = {0, 0};  // later: steps in reverse order
  float along = 0;
  for (int w = 0; w < 4 * Columns; ++w) along += s.along[w];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int t = 2 * lane + i, back = kChunk - 1 - t;
    for (int c = 0; c < Columns; ++c) {
      later[i] += s.from_start[c][back];
      earlier[i] += s.to_end[c][t] - s.row[c][t];
    }
    earlier[i] += (s.column[0][t] + s.column[1][t]) + (s.column[2][t] + s.column[3][t]);
  }
  write_decay_gradients(a, total * along, later, earlier, b, h, chunk, steps, lane);
}

// Decays of the warp's pairs (i0.., j0..), with the scale; p becomes P
template <Product P, int NP>
__device__ __forceinline__ void weigh_pairs(float (&p)[1][NP][4], float (&factor)[1][NP][4], const StepDecays& decays,
                                            float scale, int i0, int j0, const Place& at) {
#pragma unroll
  for (int n = 0; n < NP; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = i0 + e / 2 * 8 + at.row, j = j0 + n * 8 + at.pair * 2 + e % 2;
      factor[0][n][e] = scale * decays.template between<P>(j, i);
      p[0][n][e] *= factor[0][n][e];
    }
}

// With all of M of a head: adds to N, and leaves the sums that dg needs
template <int Columns, int NP>
__device__ __forceinline__ void finish_head(float (&n_sum)[1][NP][4], const float (&p)[1][NP][4],
                                            const float (&factor)[1][NP][4], const float (&m)[1][NP][4],
                                            const float (&from_start)[2], const float (&to_end)[2], float& along,
                                            StepSums<Columns>& sums, int i0, int j0, bool decaying, const Place& at) {
  float row_sum[2] = {0, 0}, column_sum[2 * NP] = {};
#pragma unroll
  for (int n = 0; n < NP; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = i0 + e / 2 * 8 + at.row, j = j0 + n * 8 + at.pair * 2 + e % 2;
      const float both = j < i ? m[0][n][e] * p[0][n][e] : 0.f;
      row_sum[e / 2] += both;
      column_sum[n * 2 + e % 2] += both;
      n_sum[0][n][e] = fmaf(factor[0][n][e], m[0][n][e], n_sum[0][n][e]);
    }
  if (decaying) {
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      const float x = sum_lanes(from_start[up], 1, 4), y = sum_lanes(to_end[up], 1, 4);
      const float w = sum_lanes(row_sum[up], 1, 4);
      if (at.pair == 0) {
        sums.from_start[at.half][i0 + up * 8 + at.row] = x;
        sums.to_end[at.half][i0 + up * 8 + at.row] = y;
        sums.row[at.half][i0 + up * 8 + at.row] = w;
      }
    }
#pragma unroll
    for (int c = 0; c < 2 * NP; ++c) {
      const float x = sum_lanes(column_sum[c], 4, 32);
      if (at.row == 0) sums.column[at.strip][j0 + c / 2 * 8 + at.pair * 2 + c % 2] = x;
    }
    along = sum_lanes(along, 1, 32);
    if (at.lane == 0) sums.along[at.warp] = along;
  }
}

// Through the states, with a slice of V: dq += since dO S^T, dk += until V dS^T, and from_start, q . dq of these
template <Product P, class L, int VS, int NK>
__device__ __forceinline__ void add_keys(float (&dq)[1][NK][4], float (&dk)[1][NK][4], float (&from_start)[2],
                                         const Operand<P>* q, const Operand<P>* v, const Operand<P>* d_out,
                                         const Operand<P>* state, const Operand<P>* gradient, const float (&since)[2],
                                         const float (&until)[2], int i0, int k0, bool decaying, const Place& at) {
  float x[1][NK][4];
  clear(x);
  multiply<P, Depth::fast, Depth::fast, VS>(x, d_out + i0 * L::LV, L::LV, state + k0 * L::LV, L::LV, at.lane);
#pragma unroll
  for (int n = 0; n < NK; ++n)
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      const float y0 = since[up] * x[0][n][2 * up], y1 = since[up] * x[0][n][2 * up + 1];
      dq[0][n][2 * up] += y0;
      dq[0][n][2 * up + 1] += y1;
      if (decaying) {
        const float2 query = load_pair(q + (i0 + up * 8 + at.row) * L::LK + k0 + n * 8 + at.pair * 2);
        from_start[up] = fmaf(query.x, y0, fmaf(query.y, y1, from_start[up]));
      }
    }
  clear(x);
  multiply<P, Depth::fast, Depth::fast, VS>(x, v + i0 * L::LV, L::LV, gradient + k0 * L::LV, L::LV, at.lane);
#pragma unroll
  for (int n = 0; n < NK; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) dk[0][n][e] = fmaf(until[e / 2], x[0][n][e], dk[0][n][e]);
}

// dv = until K dS for a slice of V, and to_end, v . dv of these
template <Product P, class L, int KP, int NV>
__device__ __forceinline__ void read_gradient(float (&dv)[1][NV][4], float (&to_end)[2], const Operand<P>* k,
                                              const Operand<P>* v, const Operand<P>* gradient, const float (&until)[2],
                                              int i0, int c0, bool decaying, const Place& at) {
  clear(dv);
  multiply<P, Depth::fast, Depth::slow, KP>(dv, k + i0 * L::LK, L::LK, gradient + c0, L::LV, at.lane);
#pragma unroll
  for (int n = 0; n < NV; ++n)
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      float &x = dv[0][n][2 * up], &y = dv[0][n][2 * up + 1];
      x *= until[up];
      y *= until[up];
      const float2 value = load_pair(v + (i0 + up * 8 + at.row) * L::LV + c0 + n * 8 + at.pair * 2);
      if (decaying) to_end[up] = fmaf(value.x, x, fmaf(value.y, y, to_end[up]));
    }
}

// Writes the warp's rows of dq and dk, or of the block's part of them if several blocks share a group
template <class E, int NK>
__device__ __forceinline__ void write_keys(const BackwardArguments& a, float (&dq)[1][NK][4], float (&dk)[1][NK][4],
                                           int b, int begin, int group, int part, int steps, int i0, int k0,
                                           const Place& at) {
  const Sizes& z = a.z;
  const auto write = [&](auto dq_rows, auto dk_rows) {
    for_pairs(dq, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dq_rows, i0 + r, k0 + c, z.K, x, y);
    });
    for_pairs(dk, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dk_rows, i0 + r, k0 + c, z.K, x, y);
    });
  };
  if (z.parts == 1) {
    write(HeadRows<E>(a.d.dq, b, begin, group, z.K), HeadRows<E>(a.d.dk, b, begin, group, z.K));
  } else {
    const int64_t row = ((static_cast<int64_t>(part) * z.B + b) * z.T + begin) * z.G + group;
    HeadRows<float> dq_rows(a.dq_parts + row * z.K, static_cast<int64_t>(z.G) * z.K);
    HeadRows<float> dk_rows(a.dk_parts + row * z.K, static_cast<int64_t>(z.G) * z.K);
    dq_rows.wide = dk_rows.wide = z.K % 2 == 0;
    write(dq_rows, dk_rows);
  }
}

template <Product P, int KP, int VS, int Columns, int Buffers>
__global__ void __launch_bounds__(128 * Columns, 1) chunk_gradients(const __grid_constant__ BackwardArguments a) {
  using E = Operand<P>;
  using L = ChunkLayout<P, KP, VS, Columns, Buffers>;
  constexpr int Threads = 128 * Columns, NP = kChunk / 8 / Columns, NK = KP / 8 / Columns, NV = VS / 8 / Columns;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *k = reinterpret_cast<E*>(memory + at_bytes.k);
  E *slices = reinterpret_cast<E*>(memory + at_bytes.slices), *pairs = reinterpret_cast<E*>(memory + at_bytes.pairs);
  StepDecays* all_decays = reinterpret_cast<StepDecays*>(memory + at_bytes.decays);
  StepSums<Columns>& sums = *reinterpret_cast<StepSums<Columns>*>(memory + at_bytes.sums);

  const Place at;
  const Sizes& z = a.z;
  const int chunk = static_cast<int>(blockIdx.x) % z.chunks, part = static_cast<int>(blockIdx.x) / z.chunks % z.parts;
  const int bg = static_cast<int>(blockIdx.x) / (z.chunks * z.parts), b = bg / z.G, group = bg % z.G;
  const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin), heads = z.per_group / z.parts;
  const int first_head = group * z.per_group + part * heads, v_slices = (z.V + VS - 1) / VS;
  const int i0 = at.strip * 16, j0 = at.half * (NP * 8), k0 = at.half * (NK * 8), c0 = at.half * (NV * 8);
  const bool decaying = a.p.decay != Decay::unit;

  const auto scan = [&](int head) {
    const float* g = a.p.g + b * a.p.g_batch + (first_head + head) * a.p.g_head + begin * a.p.g_time;
    all_decays[head % 2].scan(a.p.g ? g : nullptr, a.p.g_time, steps, at.lane);
  };
  const auto copy_slice = [&](int item) {
    const int h = first_head + item / v_slices, first = item % v_slices * VS;
    const int width = min(VS, z.V - first), row_width = min(VS, z.value_row - first);
    E* to = slices + item % Buffers * L::slice;
    HeadRows<const E> values(a.p.v, b, begin, h, z.V), d_rows(a.d.d_out, b, begin, h, z.V);
    values.data += first;
    d_rows.data += first;
    const int64_t from = ((static_cast<int64_t>(b) * z.H + h) * z.chunks + chunk) * z.state_size() + first;
    const HeadRows<const E> state(static_cast<const E*>(a.kept) + from, z.value_row);
    const HeadRows<const E> gradient(static_cast<const E*>(a.state_gradients) + from, z.value_row);
    copy_tile<KP, VS, Threads>(to + 2 * L::rows, L::LV, state, z.K, row_width, at);
    copy_tile<KP, VS, Threads>(to + 2 * L::rows + L::states, L::LV, gradient, z.K, row_width, at);
    copy_tile<kChunk, VS, Threads>(to, L::LV, values, steps, width, at);
    copy_tile<kChunk, VS, Threads>(to + L::rows, L::LV, d_rows, steps, width, at);
  };

  copy_tile<kChunk, KP, Threads>(q, L::LK, HeadRows<const E>(a.p.q, b, begin, group, z.K), steps, z.K, at);
  copy_tile<kChunk, KP, Threads>(k, L::LK, HeadRows<const E>(a.p.k, b, begin, group, z.K), steps, z.K, at);
  if (at.warp == 0) scan(0);
  copy_slice(0);
  float dq[1][NK][4], dk[1][NK][4], n_sum[1][NP][4], p[1][NP][4], factor[1][NP][4], m[1][NP][4];
  clear(dq);
  clear(dk);
  clear(n_sum);
  float from_start[2], to_end[2], along = 0;

  for (int item = 0; item < heads * v_slices; ++item) {
    const int head = item / v_slices, first = item % v_slices * VS, h = first_head + head;
    finish_copies();
    __syncthreads();
    if (Buffers == 2 && item + 1 < heads * v_slices) copy_slice(item + 1);
    const StepDecays& decays = all_decays[head % 2];
    const E *v = slices + item % Buffers * L::slice, *d_out = v + L::rows, *state = d_out + L::rows;
    const E* gradient = state + L::states;
    if (first == 0) {
      if (at.warp == 0) {
        if (decaying && head > 0)
          write_decay_gradients(a, sums, all_decays[(head + 1) % 2].total(), b, h - 1, chunk, steps, at.lane);
        if (head + 1 < heads) scan(head + 1);
      }
      clear(p);
      clear(m);
      from_start[0] = from_start[1] = to_end[0] = to_end[1] = along = 0;
      if (j0 <= i0 + 15)
        multiply<P, Depth::fast, Depth::fast, KP>(p, q + i0 * L::LK, L::LK, k + j0 * L::LK, L::LK, at.lane);
      weigh_pairs<P>(p, factor, decays, a.p.scale, i0, j0, at);
      for_pairs(p, at, [&](int r, int c, float x, float y) { store_pair(pairs + (i0 + r) * L::LP + j0 + c, x, y); });
    }
    const float since[2] = {a.p.scale * decays.since[i0 + at.row], a.p.scale * decays.since[i0 + 8 + at.row]};
    const float until[2] = {decays.until[i0 + at.row], decays.until[i0 + 8 + at.row]};
    if (j0 <= i0 + 15)
      multiply<P, Depth::fast, Depth::fast, VS>(m, d_out + i0 * L::LV, L::LV, v + j0 * L::LV, L::LV, at.lane);
    add_keys<P, L, VS>(dq, dk, from_start, q, v, d_out, state, gradient, since, until, i0, k0, decaying, at);
    if (decaying) {
      constexpr int piece = 16 / sizeof(E), pieces = VS / piece;
#pragma unroll
      for (int i = at.thread; i < KP * pieces; i += Threads) {
        const int e = i / pieces * L::LV + i % pieces * piece;
        along += dot<E>(*reinterpret_cast<const uint4*>(state + e), *reinterpret_cast<const uint4*>(gradient + e));
      }
    }
    float dv[1][NV][4];
    read_gradient<P, L, KP>(dv, to_end, k, v, gradient, until, i0, c0, decaying, at);
    if (first == 0) __syncthreads();  // the pairs
    multiply<P, Depth::slow, Depth::slow, kChunk>(dv, pairs + i0 * L::LP + i0, L::LP, d_out + i0 * L::LV + c0, L::LV,
                                                  at.lane, kChunk - i0);
    HeadRows<E> dv_rows(a.d.dv, b, begin, h, z.V);
    dv_rows.data += first;
    for_pairs(dv, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dv_rows, i0 + r, c0 + c, min(VS, z.V - first), x, y);
    });
    if (first + VS >= z.V) finish_head(n_sum, p, factor, m, from_start, to_end, along, sums, i0, j0, decaying, at);
    if (Buffers == 1 && item + 1 < heads * v_slices) {
      __syncthreads();
      copy_slice(item + 1);
    }
  }
  __syncthreads();
  if (decaying && at.warp == 0)
    write_decay_gradients(a, sums, all_decays[(heads - 1) % 2].total(), b, first_head + heads - 1, chunk, steps,
                          at.lane);
  for_pairs(n_sum, at, [&](int r, int c, float x, float y) { store_pair(pairs + (i0 + r) * L::LP + j0 + c, x, y); });
  __syncthreads();
  multiply<P, Depth::fast, Depth::slow, kChunk>(dq, pairs + i0 * L::LP, L::LP, k + k0, L::LK, at.lane, i0 + 16);
  multiply<P, Depth::slow, Depth::slow, kChunk>(dk, pairs + i0 * L::LP + i0, L::LP, q + i0 * L::LK + k0, L::LK, at.lane,
                                                kChunk - i0);
  write_keys<E>(a, dq, dk, b, begin, group, part, steps, i0, k0, at);
}

// VS: columns of a slice of V in the walk over the states, VC in the pass over all chunks
template <Product P, int KP, int VS, int VC, int Columns = 4, int Buffers = 2>
cudaError_t run(const BackwardArguments& a, Target to) {
  const dim3 pairs(static_cast<unsigned>(a.z.B * a.z.H * a.z.segments.walked),
                   static_cast<unsigned>((a.z.V + VS - 1) / VS));
  const cudaError_t status = launch(state_gradients<P, KP, VS>, pairs, kBlock, StateLayout<P, KP, VS>().bytes, to, a);
  if (status != cudaSuccess || a.first.states) return status;
  const dim3 chunks(static_cast<unsigned>(a.z.B) * static_cast<unsigned>(a.z.G * a.z.parts * a.z.chunks));
  return launch(chunk_gradients<P, KP, VC, Columns, Buffers>, chunks, 128 * Columns,
                ChunkLayout<P, KP, VC, Columns, Buffers>().bytes, to, a);
}

template <Product P>
cudaError_t run_float(const BackwardArguments& a, Target to) {
  return a.z.K <= 128 ? run<P, 128, 64, 32>(a, to) : run<P, 256, 32, 16, 2, 1>(a, to);
}

}  // namespace

cudaError_t scalar_backward(const BackwardArguments& a, Target to) {
  if (!to.none && by_wgmma(a)) return wgmma_backward(a, to.stream);
  if (a.p.write || a.p.skip) return cudaErrorInvalidValue;
  if (a.p.precision == Precision::tf32) return run_float<Product::tf32>(a, to);
  if (a.p.precision == Precision::fp32) return run_float<Product::fp32>(a, to);
  constexpr Product P = Product::bf16;
  const bool by_96 = (a.z.V + 95) / 96 * 96 <= (a.z.V + 63) / 64 * 64;
  // The last of each list is for devices with less shared memory.
  constexpr auto small = run<P, 128, 64, 32, 4, 1>, small_wide = run<P, 256, 64, 32, 4, 1>;
  if (a.z.K <= 64) return run_first({by_96 ? run<P, 64, 96, 96> : run<P, 64, 64, 64>, small}, a, to);
  if (a.z.K <= 96)
    return run_first({by_96 ? run<P, 96, 96, 96> : run<P, 96, 64, 64>, run<P, 96, 64, 64>, small}, a, to);
  if (a.z.K <= 128)
    return run_first({by_96 ? run<P, 128, 96, 96> : run<P, 128, 64, 64>, run<P, 128, 64, 64>, small}, a, to);
  return run_first({a.z.K <= 192 ? run<P, 192, 64, 64> : run<P, 256, 64, 32>, small_wide}, a, to);
}

}  // namespace sb::cuda::attention
