// Gradients of all chunks if every head has its own keys, with `before` (decayed_attention.h). A block takes one chunk
// of one head after the other: while it works on one, the tiles of the next are copied. Three groups share the work:
//   the pairs (transposed, [j, i]), their gradients N and dv;  dq = scale c dO S^T + N^T K;  dk = w until V dS^T + N Q
#include <algorithm>

#include "kernels/cuda/decayed_attention_wgmma_walk_back.cuh"

namespace sb::cuda::attention {
namespace {

constexpr int kPairsReady = 1;  // barrier: N is in shared memory

template <int VP>
struct HeadMemory {
  static constexpr int q = 0, k = q + KeyTile::bytes, x = k + KeyTile::bytes, d_out = x + ValueTile<VP>::bytes;
  static constexpr int state = d_out + ValueTile<VP>::bytes, gradient = state + GroupStateTile<VP>::bytes;
  static constexpr int item = gradient + GroupStateTile<VP>::bytes, pairs = 2 * item, sums = pairs + PairTile::bytes;
  static constexpr int steps = sums + 2 * static_cast<int>(sizeof(HeadSums));
  static constexpr int own = steps + 3 * static_cast<int>(sizeof(GroupSteps));
  static constexpr int full = own + 3 * kChunk * static_cast<int>(sizeof(float));
  static constexpr int bytes = full + 2 * static_cast<int>(sizeof(CopyBarrier));
};
static_assert(HeadMemory<96>::bytes <= 227 * 1024);

// Number of the chunk, head and sequence of an item
struct Item {
  int b, h, chunk, begin, rows;
  __device__ Item(const Sizes& z, int number) {
    const int head = number / z.chunks;
    chunk = number - head * z.chunks, b = head / z.H, h = head - b * z.H;
    begin = chunk * kChunk, rows = min(kChunk, z.T - begin);
  }
};

// The thread's pairs [j, i], j = row, row + 8: weights of dv, N in place of the products k_j . q_i, and sums. m: do_i .
// x_j
template <int NP>
__device__ __forceinline__ void weigh_own_pairs(uint32_t (&weights)[NP / 2][4], float (&products)[NP][4],
                                                float (&by_query)[2 * NP], float (&by_key)[2], float (&own_sum)[2],
                                                float& along_out, const float (&m)[NP][4], const GroupSteps& steps,
                                                const float* own, float scale, float skip, int strip, int row,
                                                int pair) {
  const float sum_row[2] = {steps.sum[row], steps.sum[row + 8]};
  const float write_row[2] = {scale * steps.write[row], scale * steps.write[row + 8]};
  const float own_row[2] = {scale * own[row], scale * own[row + 8]};
#pragma unroll
  for (int n = 0; n < NP; ++n) {
    by_query[2 * n] = by_query[2 * n + 1] = 0;
    weights[n / 2][n % 2 * 2] = weights[n / 2][n % 2 * 2 + 1] = 0;
    if (n / 2 < strip) {  // i < j
#pragma unroll
      for (int e = 0; e < 4; ++e) products[n][e] = 0;
      continue;
    }
    const float2 sums = *reinterpret_cast<const float2*>(steps.sum + n * 8 + pair * 2);
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      float w[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int i = n * 8 + pair * 2 + e, j = row + 8 * up;
        const float product = products[n][2 * up + e], gradient = m[n][2 * up + e];
        const float decay = i > j ? exp2_fast((e ? sums.y : sums.x) - sum_row[up]) : 0.f;
        const bool diagonal = i == j;
        const float factor = diagonal ? own_row[up] : decay * write_row[up];
        w[e] = product * factor;
        products[n][2 * up + e] = gradient * factor;
        by_key[up] = fmaf(product * (scale * decay), gradient, by_key[up]);
        if (diagonal) {
          own_sum[up] = scale * product * gradient;
          along_out += gradient;
          w[e] += skip;
        } else {
          by_query[2 * n + e] = fmaf(product * factor, gradient, by_query[2 * n + e]);
        }
      }
      weights[n / 2][n % 2 * 2 + up] = pack(w[0], w[1]);
    }
  }
}

// Writes the thread's rows of dq or dk: two lanes exchange pairs, so that each has four neighbouring columns
template <int NK>
__device__ __forceinline__ void write_keys(bf16* to, int64_t stride, const float (&y)[NK][4], int row, int rows, int K,
                                           int pair) {
  const bool odd = pair & 1;
#pragma unroll
  for (int n = 0; n < NK; n += 2)
#pragma unroll
    for (int up = 0; up < 2; ++up) {
      const uint32_t first = pack(y[n][2 * up], y[n][2 * up + 1]),
                     second = pack(y[n + 1][2 * up], y[n + 1][2 * up + 1]);
      const uint32_t other = __shfl_xor_sync(~0u, odd ? first : second, 1);
      const int r = row + 8 * up, c = (n + odd) * 8 + pair / 2 * 4;
      if (r < rows && c < K)
        *reinterpret_cast<uint2*>(to + r * stride + c) = odd ? uint2{other, second} : uint2{first, other};
    }
}

template <int VP>
__global__ void __launch_bounds__(kChunkThreads, 1)
    own_key_gradients(const __grid_constant__ BackwardArguments a, const __grid_constant__ BackwardMaps maps) {
#ifdef SB_WGMMA
  using M = HeadMemory<VP>;
  using Values = ValueTile<VP>;
  using States = GroupStateTile<VP>;
  constexpr int NV = VP / 8, NP = kChunk / 8, NK = kGroupKeys / 8;
  extern __shared__ __align__(1024) unsigned char memory[];
  HeadSums* const all_sums = reinterpret_cast<HeadSums*>(memory + M::sums);
  GroupSteps* const all_steps = reinterpret_cast<GroupSteps*>(memory + M::steps);
  float* const all_own = reinterpret_cast<float*>(memory + M::own);
  CopyBarrier* const full = reinterpret_cast<CopyBarrier*>(memory + M::full);
  const uint32_t base = shared_address(memory);

  const Sizes& z = a.z;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32, pair = lane % 4;
  const int strip = warp % 4, row = strip * 16 + lane / 4;  // this thread's rows of every product: row, row + 8
  const int step = static_cast<int>(gridDim.x), first = static_cast<int>(blockIdx.x);
  const int count = (static_cast<int>(z.states()) - first + step - 1) / step;  // of the block's items

  const bool copies = thread == kGroupThreads;  // for all
  const auto copy = [&](int number) {
    if (number >= count || !copies) return;
    const int state = first + number * step;
    const Item item(z, state);
    const uint32_t to = base + static_cast<uint32_t>(number % 2 * M::item);
    CopyBarrier& done = full[number % 2];
    done.expect(M::item);
    copy_tile<KeyTile>(to + M::q, maps.q, item.h, item.begin, item.b, done);
    copy_tile<KeyTile>(to + M::k, maps.k, item.h, item.begin, item.b, done);
    copy_tile<Values>(to + M::x, maps.v, item.h, item.begin, item.b, done);
    copy_tile<Values>(to + M::d_out, maps.d_out, item.h, item.begin, item.b, done);
    copy_tile<States>(to + M::state, maps.states, 0, state, 0, done);
    copy_tile<States>(to + M::gradient, maps.gradients, 0, state, 0, done);
  };
  const auto scan = [&](int number) {
    if (number >= count) return;
    const Item item(z, first + number * step);
    StepSources(a.p, item.b, item.h)
        .scan(all_steps[number % 3], item.begin, z.T - item.begin, lane, all_own + number % 3 * kChunk);
  };
  // Behind it the tiles and steps of an item are there; those of the item before make room.
  const auto enter = [&](int number) {
    threads_barrier(0, kChunkThreads);
    copy(number + 1);
    full[number % 2].wait(number / 2);
    __syncwarp();
  };
  const auto write_sums = [&](int number) {
    const Item item(z, first + number * step);
    write_head(a, all_sums[number % 2], all_steps[number % 3], item.b, item.h, item.chunk, item.rows, lane);
  };

  if (copies) full[0].init(), full[1].init();
  if (warp == 0) scan(0);
  threads_barrier(0, kChunkThreads);  // the copy engine's barriers
  copy(0);

  if (thread < kGroupThreads) {
    for (int number = 0; number < count; ++number) {
      const Item item(z, first + number * step);
      const GroupSteps& steps = all_steps[number % 3];
      HeadSums& sums = all_sums[number % 2];
      const uint32_t at = base + static_cast<uint32_t>(number % 2 * M::item);
      enter(number);
      float products[NP][4], m[NP][4];
      wgmma_fence();
      start_product<kGroupKeys / 16>(products, Along<KeyTile>{at + M::k}, Along<KeyTile>{at + M::q});
      start_product<VP / 16>(m, Along<Values>{at + M::x}, Along<Values>{at + M::d_out});
      wgmma_commit();
      const float skip = a.p.skip ? a.p.skip[item.h] : 0.f;
      uint32_t weights[kChunk / 16][4];  // of dv, [j, i]
      float by_query[2 * NP], by_key[2] = {0, 0}, own_sum[2] = {0, 0}, along_out = 0;
      wgmma_wait<0>(products);
      wgmma_wait<0>(m);
      weigh_own_pairs(weights, products, by_query, by_key, own_sum, along_out, m, steps, all_own + number % 3 * kChunk,
                      a.p.scale, skip, strip, row, pair);
      store_pairs(memory + M::pairs, products, 1, row, pair);
      shared_writes_to_products();
      threads_arrive(kPairsReady, kChunkThreads);
      const float scaled[2] = {steps.until[row] * steps.write[row], steps.until[row + 8] * steps.write[row + 8]};
      float dv[NV][4];
      wgmma_fence();
      start_product<kGroupKeys / 16>(dv, Along<KeyTile>{at + M::k}, Down<States>{at + M::gradient});
      wgmma_commit();
      store_pair_sums(sums, by_query, by_key, along_out, a.p.skip, strip, row, pair, lane);
#pragma unroll
      for (int up = 0; up < 2; ++up) {
        const float x = sum_lanes(own_sum[up], 1, 4);  // one of the four is on the diagonal
        if (pair == 0) sums.own[row + 8 * up] = x;
      }
      wgmma_wait<0>(dv);
      scale_rows(dv, scaled);
      wgmma_fence();
      start_product(dv, weights, Down<Values>{at + M::d_out});
      wgmma_commit();
      bf16* const dx = head_rows(a.d.dv, item.b, item.begin, item.h) + row * a.d.dv.time + pair * 2;
      wgmma_wait<0>(dv);
      write_rows(dx, dv, a.d.dv.time, row, item.rows, z.V);
    }
    threads_barrier(0, kChunkThreads);
    return;
  }

  const auto keys_or_queries = [&]<bool queries>() {
    const Rows& to = queries ? a.d.dq : a.d.dk;
    for (int number = 0; number < count; ++number) {
      const Item item(z, first + number * step);
      const GroupSteps& steps = all_steps[number % 3];
      HeadSums& sums = all_sums[number % 2];
      unsigned char* const tiles = memory + number % 2 * M::item;
      const uint32_t at = shared_address(tiles), left = at + (queries ? M::d_out : M::x),
                     right = at + (queries ? M::state : M::gradient);
      enter(number);
      float y[NK][4];
      wgmma_fence();
      start_product<VP / 16>(y, Along<Values>{left}, Along<States>{right});
      wgmma_commit();
      const float along = sum_lanes(products_of<States>(tiles + M::state, tiles + M::gradient, thread), 1, 32);
      if (lane == 0) sums.along[warp - 4] = along;
      if (queries && warp == 4 && number > 0) write_sums(number - 1);
      if (!queries && warp == 8) scan(number + 1);
      wgmma_wait<0>(y);
      scale_key_rows<queries>(y, sums, steps, tiles + (queries ? M::q : M::k), a.p.scale, row, pair,
                              [&](int n, int up, float write, float y0, float y1) {
                                y[n][2 * up] = write * y0;
                                y[n][2 * up + 1] = write * y1;
                              });
      threads_barrier(kPairsReady, kChunkThreads);
      add_pairs<queries>(y, base + M::pairs, at + M::k, at + M::q);
      write_keys(head_rows(to, item.b, item.begin, item.h), to.time, y, row, item.rows, z.K, pair);
    }
    threads_barrier(0, kChunkThreads);
    if (queries && warp == 4) write_sums(count - 1);
  };
  if (thread < 2 * kGroupThreads)
    keys_or_queries.template operator()<true>();
  else
    keys_or_queries.template operator()<false>();
#endif
}

}  // namespace

template <int VP>
cudaError_t head_gradients(const BackwardArguments& a, const BackwardMaps& maps, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(a.z.states(), multiprocessors()));
  return launch(own_key_gradients<VP>, dim3(blocks), kChunkThreads, HeadMemory<VP>::bytes, stream, a, maps);
}
template cudaError_t head_gradients<64>(const BackwardArguments&, const BackwardMaps&, cudaStream_t);
template cudaError_t head_gradients<96>(const BackwardArguments&, const BackwardMaps&, cudaStream_t);

}  // namespace sb::cuda::attention
