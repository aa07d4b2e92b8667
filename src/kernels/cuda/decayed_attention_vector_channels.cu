// Gradients of queries, keys and log-decays from those of a chunk's decayed rows Qc, Kc and pairs, channel by channel,
// through the tiles x of the pairs (decayed_attention_levels.cuh) and through strips. Every product of decayed rows
// contributes H = (row) o d(row), positive for queries and negative for keys:
//   dg_t = c_end <dS, S> + sum over the chunk of Kc o dKc + sum_{i >= t} H_i        per channel
// H uses the same rounded factors as the products, so that terms cancel exactly where they should.
#include "kernels/cuda/decayed_attention_levels.cuh"

namespace sb::cuda::attention {
namespace {

constexpr int KS = 2 * kGroup;  // channels at a time, half of them for each warp of a strip

template <Product P>
struct ChannelLayout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KS), LP = leading<E>(kChunk), LG = leading<E>(kGroup);
  static constexpr int one = 16 * LG, levels = (kLevels + 1) * one;  // the pairs' gradients by level, and a tile of x
  size_t q, k, m, scratch, strips, sums, bytes;
  __host__ __device__ ChannelLayout() {
    Pieces p;
    q = p.take<E>(kChunk * LK);
    k = p.take<E>(kChunk * LK);
    m = p.take<E>(kChunk * LP);
    scratch = p.take<E>(8 * levels);
    strips = p.take<float>(4 * KS);
    sums = p.take<float>(2 * 4 * KS);
    bytes = p.used;
  }
};

template <class E>
__device__ inline float rounded(float x) {
  return to_float(from_float<E>(x));
}

// Through pairs within a strip of 16 rows, by levels; x, y: its rows of queries and keys
template <Product P>
__device__ __forceinline__ void add_levels(float (&dq)[8], float (&dk)[8], float (&H)[8], const float (&x)[8],
                                           const float (&y)[8], BlockDecays& d, const Operand<P>* by_level,
                                           Operand<P>* scratch, const Place& at) {
  using E = Operand<P>;
  using L = ChannelLayout<P>;
  float tile[8];
#pragma unroll
  for (int l = 0; l < kLevels; ++l) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      tile[e] = rounded<E>(BlockDecays::later(e, 1 << l, at) ? x[e] * d.since[e] : y[e] * d.until[e]);
    write_group(tile, scratch, L::LG, at);
    __syncwarp();
    float grad[1][2][4];
    clear(grad);
    multiply<P, Depth::fast, Depth::slow, 16>(grad, by_level + l * L::one, L::LG, scratch, L::LG, at.lane);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float y_e = grad[0][e / 4][e % 4];
      const bool later = BlockDecays::later(e, 1 << l, at);
      if (later)
        dq[e] = fmaf(y_e, d.since[e], dq[e]);
      else
        dk[e] = fmaf(y_e, d.until[e], dk[e]);
      H[e] = fmaf(later ? tile[e] : -tile[e], y_e, H[e]);
    }
    d.merge(1 << l, at);
  }
}

// Through pairs of the strip R with the earlier strips. m: its row of strips of pairs; f becomes the decay of these
// strips
template <Product P>
__device__ __forceinline__ void add_earlier(float (&by_q)[8], float (&H)[8], float (&f)[4], const float (&x)[8],
                                            const float (&strip)[4][4], const Operand<P>* m, const Operand<P>* k, int R,
                                            const Place& at) {
  using E = Operand<P>;
  using L = ChannelLayout<P>;
#pragma unroll
  for (int J = 2; J >= 0; --J) {
    if (J >= R) continue;
    float grad[1][2][4];
    clear(grad);
    multiply<P, Depth::fast, Depth::slow, 16>(grad, m + J * 16, L::LP, k + J * 16 * L::LK, L::LK, at.lane);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int c = e / 4 * 2 + e % 2;
      by_q[e] = fmaf(grad[0][e / 4][e % 4], f[c], by_q[e]);
      H[e] = fmaf(rounded<E>(x[e] * f[c]), grad[0][e / 4][e % 4], H[e]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) f[c] *= strip[J][c];
  }
}

// Through pairs of the later strips with the strip R. m: its column of strips of pairs; f becomes the decay of these
// strips
template <Product P>
__device__ __forceinline__ void add_later(float (&by_k)[8], float (&H)[8], float (&f)[4], const float (&y)[8],
                                          const float (&strip)[4][4], const Operand<P>* m, const Operand<P>* q,
                                          Operand<P>* scratch, int R, const Place& at) {
  using L = ChannelLayout<P>;
#pragma unroll
  for (int I = 1; I < 4; ++I) {
    if (I <= R) continue;
    float row[8], grad[1][2][4];
    clear(grad);
    read_group(row, q + I * 16 * L::LK, L::LK, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) row[e] *= f[e / 4 * 2 + e % 2];
    write_group(row, scratch, L::LG, at);
    __syncwarp();
    multiply<P, Depth::slow, Depth::slow, 16>(grad, m + I * 16 * L::LP, L::LP, scratch, L::LG, at.lane);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      by_k[e] += grad[0][e / 4][e % 4];
      H[e] = fmaf(-y[e], grad[0][e / 4][e % 4], H[e]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) f[c] *= strip[I][c];
  }
}

// H becomes its sum over the rows from this one to the strip's end, key_sum its sum over the strip. The sums of the
// whole strip go to `sums`.
__device__ __forceinline__ void sum_rows(float (&H)[8], float (&key_sum)[8], float* sums, int R, int c0,
                                         const Place& at) {
#pragma unroll
  for (int e = 0; e < 8; ++e) {
#pragma unroll
    for (int by = 1; by < 8; by *= 2) {
      const float later = __shfl_down_sync(~0u, H[e], 4 * by);
      if (at.row + by < 8) H[e] += later;
    }
  }
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e % 4 < 2) {
      H[e] += __shfl_sync(~0u, H[e + 2], at.pair);
      key_sum[e] += key_sum[e + 2];
#pragma unroll
      for (int by = 1; by < 8; by *= 2) key_sum[e] += __shfl_xor_sync(~0u, key_sum[e], 4 * by);
      const int c = c0 + Element8::column(e, at);
      if (at.row == 0) sums[R * KS + c] = H[e], sums[(4 + R) * KS + c] = key_sum[e];
    }
}

// Gradients of queries, keys and log-decays of one chunk, KS channels after KS channels.
template <Product P>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 ? 2 : 1)
    vector_channel_gradients(const __grid_constant__ BackwardArguments a) {
  using E = Operand<P>;
  using L = ChannelLayout<P>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *k = reinterpret_cast<E*>(memory + at_bytes.k);
  E* m = reinterpret_cast<E*>(memory + at_bytes.m);
  float* strips = reinterpret_cast<float*>(memory + at_bytes.strips);
  float* sums = reinterpret_cast<float*>(memory + at_bytes.sums);

  const Place at;
  const Sizes& z = a.z;
  const int64_t chunk_at = blockIdx.x, rows_at = chunk_at * kChunk;
  const int chunk = static_cast<int>(chunk_at % z.chunks), pair = static_cast<int>(chunk_at / z.chunks);
  const int h = pair % z.H, b = pair / z.H, group = h / z.per_group;
  const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin), R = at.strip, c0 = at.half * kGroup;
  const float* g = a.p.g + b * a.p.g_batch + h * a.p.g_head + (begin + R * 16) * a.p.g_time;
  const int64_t rows = z.states() * kChunk * z.key_row();
  const E* by_state = static_cast<const E*>(a.by_state);
  E* by_level = reinterpret_cast<E*>(memory + at_bytes.scratch) + at.warp * L::levels;
  E* scratch = by_level + kLevels * L::one;
  const HeadRows<E> dq_rows(a.d.dq, b, begin, group, z.K), dk_rows(a.d.dk, b, begin, group, z.K);
  const int64_t part_row = ((static_cast<int64_t>(h % z.per_group) * z.B + b) * z.T + begin) * z.G + group;

  copy_tile<kChunk, kChunk>(m, L::LP, HeadRows<const E>(by_state + 2 * rows + rows_at * kChunk, kChunk), kChunk, kChunk,
                            at);
  finish_copies();
  __syncthreads();
  const E* own = m + R * 16 * L::LP + R * 16;  // pairs inside the strip
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = Element8::row(e, at), j = Element8::column(e, at);
    const E x = i > j ? own[i * L::LP + j] : own[j * L::LP + i];
    const int level = i == j ? -1 : level_of(i, j);
#pragma unroll
    for (int l = 0; l < kLevels; ++l) by_level[l * L::one + i * L::LG + j] = level == l ? x : from_float<E>(0);
  }
  const float same[2] = {to_float(own[at.row * L::LP + at.row]), to_float(own[(at.row + 8) * (L::LP + 1)])};

  for (int first = 0; first < z.K; first += KS) {
    const int width = min(KS, z.K - first);
    HeadRows<const E> q_from(a.p.q, b, begin, group, z.K), k_from(a.p.k, b, begin, group, z.K);
    q_from.data += first;
    k_from.data += first;
    copy_tile<kChunk, KS>(q, L::LK, q_from, steps, width, at);
    copy_tile<kChunk, KS>(k, L::LK, k_from, steps, width, at);
    BlockDecays d;
    d.read<E>(g + first + c0, a.p.g_time, steps - R * 16, width - c0, at);
    float dq_c[8], dk_c[8];  // of the rows decayed over the chunk
#pragma unroll
    for (int e = 0; e < 8; e += 2) {
      const int c = first + c0 + Element8::column(e, at);
      const int64_t from = (rows_at + R * 16 + Element8::row(e, at)) * z.key_row() + c;
      const bool inside = c < z.key_row();
      const float2 x = inside ? load_pair(by_state + from) : float2{},
                   y = inside ? load_pair(by_state + rows + from) : float2{};
      dq_c[e] = x.x, dq_c[e + 1] = x.y, dk_c[e] = y.x, dk_c[e + 1] = y.y;
    }
    finish_copies();
    __syncthreads();

    float x[8], y[8], dq[8], dk[8], H[8];
    read_group(x, q + R * 16 * L::LK + c0, L::LK, at);
    read_group(y, k + R * 16 * L::LK + c0, L::LK, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      dq[e] = same[e % 4 / 2] * y[e];
      dk[e] = same[e % 4 / 2] * x[e];
      H[e] = 0;
    }
    add_levels<P>(dq, dk, H, x, y, d, by_level, scratch, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      x[e] = rounded<E>(x[e] * d.since[e]);
      y[e] = rounded<E>(y[e] * d.until[e]);
      if (e % 4 < 2 && at.row == 0) strips[R * KS + c0 + Element8::column(e, at)] = d.total[e];
    }
    write_group(x, q + R * 16 * L::LK + c0, L::LK, at);
    write_group(y, k + R * 16 * L::LK + c0, L::LK, at);
    __syncthreads();

    float strip[4][4];  // decays of the strips, of this thread's four columns
#pragma unroll
    for (int s = 0; s < 4; ++s)
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float2 f = load_pair(strips + s * KS + c0 + n * 8 + at.pair * 2);
        strip[s][2 * n] = f.x;
        strip[s][2 * n + 1] = f.y;
      }
    float by_q[8] = {}, by_k[8] = {}, key_sum[8];
    float f[4] = {1, 1, 1, 1};  // of the strips between
    add_earlier<P>(by_q, H, f, x, strip, m + R * 16 * L::LP, k + c0, R, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {  // f: all strips before this one
      const int c = e / 4 * 2 + e % 2;
      by_q[e] = fmaf(dq_c[e], f[c], by_q[e]);
      H[e] = fmaf(rounded<E>(x[e] * f[c]), dq_c[e], H[e]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) f[c] = 1;
    add_later<P>(by_k, H, f, y, strip, m + R * 16, q + c0, scratch, R, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) {  // f: all strips after this one
      const int c = e / 4 * 2 + e % 2;
      by_k[e] = fmaf(dk_c[e], f[c], by_k[e]);
      key_sum[e] = rounded<E>(y[e] * f[c]) * dk_c[e];
      H[e] -= key_sum[e];
      dq[e] = fmaf(by_q[e], d.since[e], dq[e]);
      dk[e] = fmaf(by_k[e], d.until[e], dk[e]);
    }
#pragma unroll
    for (int e = 0; e < 8; e += 2) {
      const int r = R * 16 + Element8::row(e, at), c = first + c0 + Element8::column(e, at);
      if (r >= steps) continue;
      if (z.parts == 1) {
        write_pair(dq_rows, r, c, z.K, dq[e], dq[e + 1]);
        write_pair(dk_rows, r, c, z.K, dk[e], dk[e + 1]);
      } else {
        const int64_t to = (part_row + static_cast<int64_t>(r) * z.G) * z.K + c;
        if (c < z.K) a.dq_parts[to] = dq[e], a.dk_parts[to] = dk[e];
        if (c + 1 < z.K) a.dq_parts[to + 1] = dq[e + 1], a.dk_parts[to + 1] = dk[e + 1];
      }
    }
    sum_rows(H, key_sum, sums, R, c0, at);
    __syncthreads();
    float* dg = a.d.dg + b * a.d.dg_batch + h * a.d.dg_head + begin * a.d.dg_time + first;
    float common[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = c0 + i / 2 * 8 + at.pair * 2 + i % 2;
      common[i] = c < width
                      ? strip[0][i] * strip[1][i] * (strip[2][i] * strip[3][i]) * a.along[chunk_at * z.K + first + c]
                      : 0.f;
#pragma unroll
      for (int s = 0; s < 4; ++s) common[i] += sums[(4 + s) * KS + c] + (s > R ? sums[s * KS + c] : 0.f);
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int r = R * 16 + Element8::row(e, at), c = c0 + Element8::column(e, at);
      if (r < steps && c < width) dg[r * a.d.dg_time + c] = H[e] + common[e / 4 * 2 + e % 2];
    }
  }
}

template <Product P>
cudaError_t run(const BackwardArguments& a, Target to) {
  return launch(vector_channel_gradients<P>, dim3(static_cast<unsigned>(a.z.states())), kBlock,
                ChannelLayout<P>().bytes, to, a);
}

}  // namespace

cudaError_t vector_channel_backward(const BackwardArguments& a, Target to) {
  if (a.p.precision == Precision::bf16) return run<Product::bf16>(a, to);
  return a.p.precision == Precision::tf32 ? run<Product::tf32>(a, to) : run<Product::fp32>(a, to);
}

}  // namespace sb::cuda::attention
