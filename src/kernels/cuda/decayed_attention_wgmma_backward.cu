// Gradients with one decay per step and head, in bf16, with warp groups. decayed_attention_scalar_backward.cu has the
// formulas. With write factors w and a skip D (decayed_attention.h), v = w x and
//   dx = w dv + D do;  dw_j = x_j . dv_j;  dD = sum x . do;  v_j . dv_j is also the total contribution of key j to dg
// In the pass over all chunks, three groups share the work of a head: the pairs (transposed, [j, i]) and dv; dq; dk and
// <dS, S>.
#include "kernels/cuda/decayed_attention_wgmma_walk_back.cuh"

namespace sb::cuda::attention {
namespace {

template <int VP>
struct ChunkMemory {
  static constexpr int q = 0, k = q + KeyTile::bytes, pairs = k + KeyTile::bytes, items = pairs + PairTile::bytes;
  static constexpr int x = 0, d_out = x + ValueTile<VP>::bytes, state = d_out + ValueTile<VP>::bytes;
  static constexpr int gradient = state + GroupStateTile<VP>::bytes, item = gradient + GroupStateTile<VP>::bytes;
  static constexpr int sums = items + 2 * item, full = sums + 2 * static_cast<int>(sizeof(HeadSums));
  static constexpr int steps = full + 4 * static_cast<int>(sizeof(CopyBarrier));  // of items, of keys; whole 16 bytes
  static int bytes(int heads) { return steps + heads * static_cast<int>(sizeof(GroupSteps)); }
};

// Pairs of a head, [j, i]: the weights w_j P_ij with the skip; the sums that dg and d_write need, of P_ij do_i . v_j
// over the thread's j (by_query) and of P_ij do_i . x_j over its i (by_key), and of x . do; adds L_ij do_i . v_j to
// n_sum. pairs: scale k_j . q_i; m: do_i . x_j
template <int NP>
__device__ __forceinline__ void weigh_pairs(uint32_t (&weights)[NP / 2][4], float (&n_sum)[NP][4],
                                            float (&by_query)[2 * NP], float (&by_key)[2], float& along_out,
                                            const uint32_t (&pairs)[NP][2], const float (&m)[NP][4],
                                            const GroupSteps& steps, const float (&sum_row)[2],
                                            const float (&write_row)[2], float skip, int strip, int row, int pair,
                                            bool on_diagonal, bool second) {
#pragma unroll
  for (int n = 0; n < NP; ++n) {
    by_query[2 * n] = by_query[2 * n + 1] = 0;
    weights[n / 2][n % 2 * 2] = weights[n / 2][n % 2 * 2 + 1] = 0;
    if (n / 2 < strip) continue;  // i < j
    const int i = n * 8 + pair * 2;
    const float2 sum = *reinterpret_cast<const float2*>(steps.sum + i);
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      const int j = row + 8 * up;
      const float f0 = i >= j ? exp2_fast(sum.x - sum_row[up]) : 0.f;
      const float f1 = i + 1 >= j ? exp2_fast(sum.y - sum_row[up]) : 0.f;
      const float m0 = m[n][2 * up] * write_row[up], m1 = m[n][2 * up + 1] * write_row[up];
      n_sum[n][2 * up] = fmaf(f0, m0, n_sum[n][2 * up]);
      n_sum[n][2 * up + 1] = fmaf(f1, m1, n_sum[n][2 * up + 1]);
      const float2 products = unpack(pairs[n][up]);
      const float p0 = products.x * f0, p1 = products.y * f1;
      by_key[up] = fmaf(p0, m[n][2 * up], fmaf(p1, m[n][2 * up + 1], by_key[up]));
      by_query[2 * n] = fmaf(p0, m0, by_query[2 * n]);
      by_query[2 * n + 1] = fmaf(p1, m1, by_query[2 * n + 1]);
      float w0 = p0 * write_row[up], w1 = p1 * write_row[up];
      if (n % 2 == up && n / 2 == strip && on_diagonal) {
        along_out += second ? m[n][2 * up + 1] : m[n][2 * up];
        w0 += second ? 0.f : skip;
        w1 += second ? skip : 0.f;
      }
      weights[n / 2][n % 2 * 2 + up] = pack(w0, w1);
    }
  }
}

// Writes the thread's rows of dq or dk, or of the block's part of them if several blocks share a group
template <int NK>
__device__ __forceinline__ void write_keys(const BackwardArguments& a, const float (&sum)[NK][4], const Rows& to,
                                           float* all_parts, int part, int b, int begin, int group, int rows, int row,
                                           int pair) {
  const Sizes& z = a.z;
  const int64_t line = ((static_cast<int64_t>(part) * z.B + b) * z.T + begin) * z.G + group;
  float* const parts = all_parts + line * z.K;
  bf16* const out = head_rows(to, b, begin, group);
#pragma unroll
  for (int n = 0; n < NK; ++n)
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      const int r = row + 8 * up, c = n * 8 + pair * 2;
      if (r >= rows || c >= z.K) continue;
      if (z.parts == 1)
        *reinterpret_cast<uint32_t*>(out + r * to.time + c) = pack(sum[n][2 * up], sum[n][2 * up + 1]);
      else
        *reinterpret_cast<float2*>(parts + static_cast<int64_t>(r) * z.G * z.K + c) = {sum[n][2 * up],
                                                                                       sum[n][2 * up + 1]};
    }
}

// Thread of a block that computes one chunk for some heads of a group
template <int VP>
struct ChunkBlock {
  using M = ChunkMemory<VP>;
  using Values = ValueTile<VP>;
  using States = GroupStateTile<VP>;
  static constexpr int NV = VP / 8, NP = kChunk / 8, NK = kGroupKeys / 8;
  const BackwardArguments& a;
  const BackwardMaps& maps;
  unsigned char* const memory;
  const Sizes& z = a.z;
  const uint32_t base = shared_address(memory);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32, pair = lane % 4;
  const int strip = warp % 4, row = strip * 16 + lane / 4;  // this thread's rows of every product: row, row + 8
  const int chunk = static_cast<int>(blockIdx.x) % z.chunks, part = static_cast<int>(blockIdx.x) / z.chunks % z.parts;
  const int bg = static_cast<int>(blockIdx.x) / (z.chunks * z.parts), b = bg / z.G, group = bg % z.G;
  const int begin = chunk * kChunk, rows = min(kChunk, z.T - begin), heads = z.per_group / z.parts;
  const int first_head = group * z.per_group + part * heads;
  HeadSums* const all_sums = reinterpret_cast<HeadSums*>(memory + M::sums);
  GroupSteps* const all_steps = reinterpret_cast<GroupSteps*>(memory + M::steps);
  CopyBarrier* const full = reinterpret_cast<CopyBarrier*>(memory + M::full);
  const bool copies = thread == kGroupThreads;  // for all

  __device__ __forceinline__ void copy(int head) const {
    if (head >= heads || !copies) return;
    const int h = first_head + head, state = (b * z.H + h) * z.chunks + chunk;
    const uint32_t to = base + static_cast<uint32_t>(M::items + head % 2 * M::item);
    CopyBarrier& done = full[head % 2];
    done.expect(M::item);
    copy_tile<Values>(to + M::x, maps.v, h, begin, b, done);
    copy_tile<Values>(to + M::d_out, maps.d_out, h, begin, b, done);
    copy_tile<States>(to + M::state, maps.states, 0, state, 0, done);
    copy_tile<States>(to + M::gradient, maps.gradients, 0, state, 0, done);
  }
  // Behind it the tiles of a head are there; those of the head before make room.
  __device__ __forceinline__ void enter(int head) const {
    threads_barrier(0, kChunkThreads);
    copy(head + 1);
    full[head % 2].wait(head / 2);
    __syncwarp();
  }
  __device__ __forceinline__ void prepare() const;
  __device__ __forceinline__ void pairs_and_values() const;
  template <bool queries>
  __device__ __forceinline__ void queries_or_keys() const;
};

// Behind it q, k and the decays of all heads are there, and the tiles of the first head are on their way.
template <int VP>
__device__ __forceinline__ void ChunkBlock<VP>::prepare() const {
  if (copies) {
    for (int i = 0; i < 3; ++i) full[i].init();
    full[2].expect(2 * KeyTile::bytes);
    copy_tile<KeyTile>(base + M::q, maps.q, group, begin, b, full[2]);
    copy_tile<KeyTile>(base + M::k, maps.k, group, begin, b, full[2]);
    copy(0);
  }
  for (int head = warp; head < heads; head += kChunkThreads / 32)
    StepSources(a.p, b, first_head + head).scan(all_steps[head], begin, z.T - begin, lane);
  threads_barrier(0, kChunkThreads);  // the barriers
  full[2].wait(0);
  __syncwarp();
}

// The pairs of the chunk and dv, by the first group
template <int VP>
__device__ __forceinline__ void ChunkBlock<VP>::pairs_and_values() const {
  uint32_t pairs[NP][2];  // scale k_j . q_i
  float n_sum[NP][4];     // sum over heads of L_ij do_i . v_j
  wgmma_fence();
  start_product<kGroupKeys / 16>(n_sum, Along<KeyTile>{base + M::k}, Along<KeyTile>{base + M::q});
  wgmma_commit();
  wgmma_wait<0>(n_sum);
#pragma unroll
  for (int n = 0; n < NP; ++n)
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      pairs[n][up] = pack(a.p.scale * n_sum[n][2 * up], a.p.scale * n_sum[n][2 * up + 1]);
      n_sum[n][2 * up] = n_sum[n][2 * up + 1] = 0;
    }
  const bool on_diagonal = pair == lane / 8;  // of the columns i = j this thread has the first or the second
  const bool second = lane / 4 % 2;
  for (int head = 0; head < heads; ++head) {
    const int h = first_head + head;
    const GroupSteps& steps = all_steps[head];
    HeadSums& sums = all_sums[head % 2];
    const uint32_t at = base + static_cast<uint32_t>(M::items + head % 2 * M::item);
    enter(head);
    float m[NP][4];
    wgmma_fence();
    start_product<VP / 16>(m, Along<Values>{at + M::x}, Along<Values>{at + M::d_out});
    wgmma_commit();
    const float skip = a.p.skip ? a.p.skip[h] : 0.f;
    const float sum_row[2] = {steps.sum[row], steps.sum[row + 8]};
    const float write_row[2] = {steps.write[row], steps.write[row + 8]};
    uint32_t weights[kChunk / 16][4];  // w_j P_ij and the skip, [j, i]
    float by_query[2 * NP], by_key[2] = {0, 0}, along_out = 0;
    wgmma_wait<0>(m);
    weigh_pairs(weights, n_sum, by_query, by_key, along_out, pairs, m, steps, sum_row, write_row, skip, strip, row,
                pair, on_diagonal, second);
    const float scaled[2] = {steps.until[row] * write_row[0], steps.until[row + 8] * write_row[1]};
    float dv[NV][4];
    wgmma_fence();
    start_product<kGroupKeys / 16>(dv, Along<KeyTile>{base + M::k}, Down<States>{at + M::gradient});
    wgmma_commit();
    wgmma_wait<0>(dv);
    scale_rows(dv, scaled);
    wgmma_fence();
    start_product(dv, weights, Down<Values>{at + M::d_out});
    wgmma_commit();
    store_pair_sums(sums, by_query, by_key, along_out, a.p.skip, strip, row, pair, lane);
    bf16* const dx = head_rows(a.d.dv, b, begin, h) + row * a.d.dv.time + pair * 2;
    wgmma_wait<0>(dv);
    write_rows(dx, dv, a.d.dv.time, row, rows, z.V);
  }
  store_pairs(memory + M::pairs, n_sum, a.p.scale, row, pair);
  shared_writes_to_products();
  threads_barrier(0, kChunkThreads);
}

// dq by the second group, dk by the third, and <dS, S> by both
template <int VP>
template <bool queries>
__device__ __forceinline__ void ChunkBlock<VP>::queries_or_keys() const {
  float sum[NK][4];  // dq or dk
#pragma unroll
  for (int n = 0; n < NK; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[n][e] = 0;
  for (int head = 0; head < heads; ++head) {
    const GroupSteps& steps = all_steps[head];
    HeadSums& sums = all_sums[head % 2];
    const unsigned char* const item = memory + M::items + head % 2 * M::item;
    const uint32_t at = shared_address(item), left = at + (queries ? M::d_out : M::x),
                   right = at + (queries ? M::state : M::gradient);
    enter(head);
    float y[NK][4];
    wgmma_fence();
    start_product<VP / 16>(y, Along<Values>{left}, Along<States>{right});
    wgmma_commit();
    const float along = sum_lanes(products_of<States>(item + M::state, item + M::gradient, thread), 1, 32);
    if (lane == 0) sums.along[warp - 4] = along;
    if (queries && warp == 4 && head > 0)
      write_head(a, all_sums[(head + 1) % 2], all_steps[head - 1], b, first_head + head - 1, chunk, rows, lane);
    wgmma_wait<0>(y);
    scale_key_rows<queries>(y, sums, steps, memory + (queries ? M::q : M::k), a.p.scale, row, pair,
                            [&](int n, int up, float write, float y0, float y1) {
                              sum[n][2 * up] = fmaf(write, y0, sum[n][2 * up]);
                              sum[n][2 * up + 1] = fmaf(write, y1, sum[n][2 * up + 1]);
                            });
  }
  threads_barrier(0, kChunkThreads);
  if (queries && warp == 4)
    write_head(a, all_sums[(heads + 1) % 2], all_steps[heads - 1], b, first_head + heads - 1, chunk, rows, lane);
  add_pairs<queries>(sum, base + M::pairs, base + M::k, base + M::q);
  write_keys(a, sum, queries ? a.d.dq : a.d.dk, queries ? a.dq_parts : a.dk_parts, part, b, begin, group, rows, row,
             pair);
}

template <int VP>
__global__ void __launch_bounds__(kChunkThreads, 1)
    chunk_gradients(const __grid_constant__ BackwardArguments a, const __grid_constant__ BackwardMaps maps) {
#ifdef SB_WGMMA
  extern __shared__ __align__(1024) unsigned char memory[];
  const ChunkBlock<VP> block{a, maps, memory};
  block.prepare();
  if (block.thread < kGroupThreads)
    block.pairs_and_values();
  else if (block.thread < 2 * kGroupThreads)
    block.template queries_or_keys<true>();
  else
    block.template queries_or_keys<false>();
#endif
}

template <int VP>
cudaError_t run(const BackwardArguments& a, cudaStream_t stream) {
  BackwardMaps maps;
  const Sizes& z = a.z;
  cudaError_t status = rows_map<KeyTile>(maps.q, a.p.q, z, z.G, z.K);
  if (status == cudaSuccess) status = rows_map<KeyTile>(maps.k, a.p.k, z, z.G, z.K);
  if (status == cudaSuccess) status = rows_map<ValueTile<VP>>(maps.v, a.p.v, z, z.H, z.V);
  if (status == cudaSuccess) status = rows_map<ValueTile<VP>>(maps.d_out, a.d.d_out, z, z.H, z.V);
  if (status == cudaSuccess) status = states_map<GroupStateTile<VP>>(maps.states, a.kept, z);
  if (status == cudaSuccess) status = states_map<GroupStateTile<VP>>(maps.gradients, a.state_gradients, z);
  if (status != cudaSuccess) return status;
  status = launch(walk_back<VP>, dim3(static_cast<unsigned>(z.B * z.H * z.segments.walked)), kStateThreads,
                  StateMemory<VP>::bytes, stream, a, maps);
  if (status != cudaSuccess || a.first.states) return status;
  if (a.p.before) return head_gradients<VP>(a, maps, stream);
  return launch(chunk_gradients<VP>, dim3(static_cast<unsigned>(z.B) * static_cast<unsigned>(z.G * z.parts * z.chunks)),
                kChunkThreads, ChunkMemory<VP>::bytes(z.per_group / z.parts), stream, a, maps);
}

}  // namespace

cudaError_t wgmma_backward(const BackwardArguments& a, cudaStream_t stream) {
  return a.z.V <= 64 ? run<64>(a, stream) : run<96>(a, stream);
}

}  // namespace sb::cuda::attention
