// Gradients if every key channel has its own decay. The forward pass has kept the decayed queries Qc and keys Kc of
// each chunk and its pairs P. A first pass loops backward over the chunks: dS <- diag(c_end) dS + scale Qc^T dO. A
// second pass computes for all chunks in parallel:
//   M_ij = do_i . v_j (j <= i);  dQc = scale dO S^T;  dKc = V dS^T;  dv = P^T dO + Kc dS
// decayed_attention_vector_channels.cu computes the gradients of queries, keys and log-decays from these.
#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda::attention {
namespace {

template <Product P, int KP, int VS>
struct StateLayout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KP), LV = leading<E>(VS);
  size_t q, d_out, state, ones, factors, bytes;
  __host__ __device__ StateLayout() {
    Pieces m;
    q = m.take<E>(kChunk * LK);
    d_out = m.take<E>(kChunk * LV);
    state = m.take<E>(KP * LV);
    ones = m.take<float>(kChunk);
    factors = m.take<float>(KP);
    bytes = m.used;
  }
};

template <Product P, int KP, int VS>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 && KP <= 128 ? 2 : 1)
    vector_state_gradients(const __grid_constant__ BackwardArguments a) {
  using E = Operand<P>;
  using L = StateLayout<P, KP, VS>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *d_out = reinterpret_cast<E*>(memory + at_bytes.d_out);
  E* tile = reinterpret_cast<E*>(memory + at_bytes.state);
  float* ones = reinterpret_cast<float*>(memory + at_bytes.ones);
  float* factors = reinterpret_cast<float*>(memory + at_bytes.factors);

  const Place at;
  const Sizes& z = a.z;
  const Walk walk(z.segments, z.chunks);
  const int h = walk.pair % z.H, b = walk.pair / z.H;
  const int first = static_cast<int>(blockIdx.y) * VS, slice = min(VS, z.V - first);
  const int64_t pair = walk.pair, state_size = static_cast<int64_t>(z.K) * z.V;
  const Kept at_kept(z, true, sizeof(E));
  const E* kept = static_cast<const E*>(a.kept);
  const float* all_factors =
      reinterpret_cast<const float*>(static_cast<const unsigned char*>(a.kept) + at_kept.factors);
  StateTile<KP, VS> gradient(at);
  gradient.read(a.d.d_final_state ? a.d.d_final_state + walk.index * state_size : nullptr, z.K, z.V, first, at);
  if (at.thread < kChunk) ones[at.thread] = 1;
  __syncthreads();
  float segment_decay = 1;  // of the channel with the thread's number
  for (int chunk = walk.end - 1; chunk >= walk.begin; --chunk) {
    const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin);
    const int64_t chunk_at = pair * z.chunks + chunk;
    copy_tile<kChunk, KP>(q, L::LK,
                          HeadRows<const E>(kept + at_kept.queries + chunk_at * kChunk * z.key_row(), z.key_row()),
                          kChunk, z.key_row(), at);
    HeadRows<const E> rows(a.d.d_out, b, begin, h, z.V);
    rows.data += first;
    load_scaled_tile<kChunk, VS>(static_cast<E*>(nullptr), d_out, L::LV, rows, steps, slice, ones, a.p.scale, at);
    for (int c = at.thread; c < KP; c += kBlock) factors[c] = c < z.K ? all_factors[chunk_at * z.K + c] : 0.f;
    if (!a.first.states) gradient.to_shared(tile, L::LV, at);
    finish_copies();
    __syncthreads();
    if (!a.first.states)
      write_state<KP, VS>(static_cast<E*>(a.state_gradients) + chunk_at * z.state_size(), tile, L::LV, z, first, at);
    else if (at.thread < KP)
      segment_decay *= factors[at.thread];
    gradient.template advance<P>(q, L::LK, d_out, L::LV, at, [&](int c) { return factors[c]; });
    __syncthreads();
  }
  if (a.first.states) {
    gradient.write(a.first.states + walk.index * state_size, z.K, z.V, first, at);
    if (blockIdx.y == 0 && at.thread < z.K) a.first.decays[walk.index * z.K + at.thread] = segment_decay;
  } else if (a.d.d_initial_state && walk.begin == 0) {
    gradient.write(a.d.d_initial_state + pair * state_size, z.K, z.V, first, at);
  }
}

// Buffers: slices of V in flight
template <Product P, int KP, int VS, int Buffers>
struct ChunkLayout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KP), LV = leading<E>(VS), LP = leading<E>(kChunk);
  static constexpr int rows = kChunk * LV, states = KP * LV, slice = 2 * rows + 2 * states;
  size_t k, slices, pairs, bytes;
  __host__ __device__ ChunkLayout() {
    Pieces m;
    k = m.take<E>(kChunk * LK);
    slices = m.take<E>(Buffers * slice);
    pairs = m.take<E>(kChunk * LP);
    bytes = m.used;
  }
};

// What one chunk's decayed rows, pairs and values get: no decays here.
template <Product P, int KP, int VS, int Buffers>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 && KP <= 128 ? 2 : 1)
    vector_chunk_gradients(const __grid_constant__ BackwardArguments a) {
  using E = Operand<P>;
  using L = ChunkLayout<P, KP, VS, Buffers>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *k = reinterpret_cast<E*>(memory + at_bytes.k), *slices = reinterpret_cast<E*>(memory + at_bytes.slices);
  E* pairs = reinterpret_cast<E*>(memory + at_bytes.pairs);

  const Place at;
  const Sizes& z = a.z;
  const int64_t chunk_at = blockIdx.x, rows_at = chunk_at * kChunk;
  const int chunk = static_cast<int>(chunk_at % z.chunks), pair = static_cast<int>(chunk_at / z.chunks);
  const int h = pair % z.H, b = pair / z.H, begin = chunk * kChunk, steps = min(kChunk, z.T - begin);
  const int i0 = at.strip * 16, j0 = at.half * 32, k0 = at.half * (KP / 2), c0 = at.half * (VS / 2);
  const Kept at_kept(z, true, sizeof(E));
  const E* kept = static_cast<const E*>(a.kept);
  const auto copy_slice = [&](int first) {
    const int slice = min(VS, z.V - first), row_slice = min(VS, z.value_row - first);
    E* to = slices + first / VS % Buffers * L::slice;
    HeadRows<const E> values(a.p.v, b, begin, h, z.V), d_rows(a.d.d_out, b, begin, h, z.V);
    values.data += first;
    d_rows.data += first;
    const int64_t from = chunk_at * z.state_size() + first;
    const HeadRows<const E> states(kept + from, z.value_row);
    const HeadRows<const E> gradients(static_cast<const E*>(a.state_gradients) + from, z.value_row);
    copy_tile<KP, VS>(to + 2 * L::rows, L::LV, states, z.K, row_slice, at);
    copy_tile<KP, VS>(to + 2 * L::rows + L::states, L::LV, gradients, z.K, row_slice, at);
    copy_tile<kChunk, VS>(to, L::LV, values, steps, slice, at);
    copy_tile<kChunk, VS>(to + L::rows, L::LV, d_rows, steps, slice, at);
  };
  const HeadRows<const E> keys(kept + at_kept.keys + rows_at * z.key_row(), z.key_row());
  const HeadRows<const E> pair_rows(kept + at_kept.pairs + rows_at * kChunk, kChunk);
  copy_tile<kChunk, KP>(k, L::LK, keys, kChunk, z.key_row(), at);
  copy_tile<kChunk, kChunk>(pairs, L::LP, pair_rows, kChunk, kChunk, at);
  copy_slice(0);
  float m[1][4][4], dq[1][KP / 16][4], dk[1][KP / 16][4];
  clear(m);
  clear(dq);
  clear(dk);
  float along = 0;  // of channel thread / (threads a channel)
  constexpr int threads = kBlock / KP > 0 ? kBlock / KP : 1;
  for (int first = 0; first < z.V; first += VS) {
    finish_copies();
    __syncthreads();
    if (Buffers == 2 && first + VS < z.V) copy_slice(first + VS);
    const E *v = slices + first / VS % Buffers * L::slice, *d_out = v + L::rows, *state = d_out + L::rows;
    const E* gradient = state + L::states;
    HeadRows<E> dv_rows(a.d.dv, b, begin, h, z.V);
    dv_rows.data += first;
    if (j0 <= i0 + 15)
      multiply<P, Depth::fast, Depth::fast, VS>(m, d_out + i0 * L::LV, L::LV, v + j0 * L::LV, L::LV, at.lane);
    multiply<P, Depth::fast, Depth::fast, VS>(dq, d_out + i0 * L::LV, L::LV, state + k0 * L::LV, L::LV, at.lane);
    multiply<P, Depth::fast, Depth::fast, VS>(dk, v + i0 * L::LV, L::LV, gradient + k0 * L::LV, L::LV, at.lane);
    float dv[1][VS / 16][4];
    clear(dv);
    multiply<P, Depth::fast, Depth::slow, KP>(dv, k + i0 * L::LK, L::LK, gradient + c0, L::LV, at.lane);
    multiply<P, Depth::slow, Depth::slow, kChunk>(dv, pairs + i0 * L::LP + i0, L::LP, d_out + i0 * L::LV + c0, L::LV,
                                                  at.lane, kChunk - i0);
    for_pairs(dv, at, [&](int r, int c, float x, float y) {
      if (i0 + r < steps) write_pair(dv_rows, i0 + r, c0 + c, min(VS, z.V - first), x, y);
    });
    if (at.thread < threads * KP) {
      const int channel = at.thread / threads;
      for (int c = at.thread % threads * 2; c < VS; c += threads * 2) {
        const float2 x = load_pair(state + channel * L::LV + c), y = load_pair(gradient + channel * L::LV + c);
        along += x.x * y.x + x.y * y.y;
      }
    }
    if (Buffers == 1 && first + VS < z.V) {
      __syncthreads();
      copy_slice(first + VS);
    }
  }
  for (int by = 1; by < threads; by *= 2) along += __shfl_xor_sync(~0u, along, by);
  if (at.thread < threads * KP && at.thread % threads == 0 && at.thread / threads < z.K)
    a.along[chunk_at * z.K + at.thread / threads] = along;
  E* by_state = static_cast<E*>(a.by_state);
  const int64_t rows = z.states() * kChunk * z.key_row();
  for_pairs(dq, at, [&](int r, int c, float x, float y) {
    if (k0 + c < z.key_row())
      store_pair(by_state + (rows_at + i0 + r) * z.key_row() + k0 + c, a.p.scale * x, a.p.scale * y);
  });
  for_pairs(dk, at, [&](int r, int c, float x, float y) {
    if (k0 + c < z.key_row()) store_pair(by_state + rows + (rows_at + i0 + r) * z.key_row() + k0 + c, x, y);
  });
  for_pairs(m, at, [&](int r, int c, float x, float y) {
    const int i = i0 + r, j = j0 + c;
    store_pair(by_state + 2 * rows + (rows_at + i) * kChunk + j, j <= i ? a.p.scale * x : 0.f,
               j + 1 <= i ? a.p.scale * y : 0.f);
  });
}

template <Product P, int KP, int VS, int VC, int Buffers = 2>
cudaError_t run(const BackwardArguments& a, Target to) {
  const dim3 pairs(static_cast<unsigned>(a.z.B * a.z.H * a.z.segments.walked),
                   static_cast<unsigned>((a.z.V + VS - 1) / VS));
  const dim3 chunks(static_cast<unsigned>(a.z.states()));
  cudaError_t status = launch(vector_state_gradients<P, KP, VS>, pairs, kBlock, StateLayout<P, KP, VS>().bytes, to, a);
  if (status != cudaSuccess || a.first.states) return status;
  status = launch(vector_chunk_gradients<P, KP, VC, Buffers>, chunks, kBlock, ChunkLayout<P, KP, VC, Buffers>().bytes,
                  to, a);
  if (status != cudaSuccess) return status;
  return vector_channel_backward(a, to);
}

template <Product P>
cudaError_t run_float(const BackwardArguments& a, Target to) {
  return a.z.K <= 128 ? run<P, 128, 64, 32>(a, to) : run<P, 256, 32, 32, 1>(a, to);
}

}  // namespace

cudaError_t vector_backward(const BackwardArguments& a, Target to) {
  if (a.p.precision == Precision::tf32) return run_float<Product::tf32>(a, to);
  if (a.p.precision == Precision::fp32) return run_float<Product::fp32>(a, to);
  constexpr Product P = Product::bf16;
  const bool by_96 = (a.z.V + 95) / 96 * 96 <= (a.z.V + 63) / 64 * 64;
  if (a.z.K <= 64) return by_96 ? run<P, 64, 96, 48>(a, to) : run<P, 64, 64, 64>(a, to);
  // The last of each list is for devices with less shared memory.
  if (a.z.K <= 96) return run_first({by_96 ? run<P, 96, 96, 48> : run<P, 96, 64, 64>, run<P, 96, 96, 48>}, a, to);
  if (a.z.K <= 128) return run_first({by_96 ? run<P, 128, 96, 48> : run<P, 128, 64, 32>, run<P, 128, 64, 32>}, a, to);
  return run<P, 256, 64, 32>(a, to);
}

}  // namespace sb::cuda::attention
