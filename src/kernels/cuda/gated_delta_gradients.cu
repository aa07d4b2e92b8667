// dQ, dK and dg from the states and their gradients, for all chunks in parallel (formulas: gated_delta_problem.cuh).
// One block per chunk and up to 128 key columns. A group of 2 or 4 warps processes 16 rows; each warp has part of the
// columns.
#include "kernels/cuda/gated_delta_problem.cuh"

namespace sb::cuda {
namespace {

constexpr int kSumLd = kRows + 1;

// Warps that share 16 rows
constexpr int column_groups(int keys) {
  return keys > 80 ? 4 : 2;
}

// Columns of V in a stage
template <class E>
constexpr int value_tile = sizeof(E) == 2 ? 48 : 32;

template <class E, int Keys, int Tokens>
struct Stage {
  static constexpr int key_ld = Keys + kPad, value_ld = value_tile<E> + kPad;
  static constexpr size_t bytes = sizeof(E) * (Tokens + 2 * kRows + 2 * Keys) * value_ld;
  E *d_out, *dv, *corrected, *state, *d_state;
  __device__ explicit Stage(char* memory) {
    d_out = reinterpret_cast<E*>(memory);
    dv = d_out + Tokens * value_ld;
    corrected = dv + kRows * value_ld;
    state = corrected + kRows * value_ld;
    d_state = state + Keys * value_ld;
  }
  __device__ void load(const Problem& p, const Chunk& c, int value, int key, TileWalk<E> walk) const {
    const int left = p.values - value;
    const int64_t at = (c.index * p.key_tile + key) * p.values + value;
    load_rows(d_out, value_ld, p.d_out, c, tokens_only(), Tokens, value, walk, p.V);
    load_rows(dv, value_ld, p.dv, c, factors(p), kRows, value, walk, p.V);
    load_tile(corrected, value_ld, static_cast<const E*>(p.corrected) + c.index * kRows * p.values + value, p.values,
              kRows, walk, left);
    load_tile(state, value_ld, static_cast<const E*>(p.states) + at, p.values, Keys, walk, left);
    load_tile(d_state, value_ld, static_cast<const E*>(p.d_states) + at, p.values, Keys, walk, left);
    copy_commit();
  }
};

template <class E, int Keys, int Tokens>
struct Shared {
  using Values = Stage<E, Keys, Tokens>;
  static constexpr int groups = column_groups(Keys), warps = 4 * groups;
  static constexpr int ld = Values::key_ld;
  static constexpr size_t pairs = sizeof(E) * (kRows + Tokens) * kPairLd + sizeof(float) * (kRows * kSumLd + 4 * kRows);
  static constexpr size_t late = 2 * Values::bytes > pairs ? 2 * Values::bytes : pairs;
  static constexpr size_t terms = kGates + groups * 3 * kRows + warps;
  static constexpr size_t bytes = sizeof(float) * terms + sizeof(E) * (kRows + Tokens) * ld + late;
  float *gates, *read_q, *read_k, *write, *inner;  // terms of dg, for each group of columns
  E *k, *q;
  char* stages;
  E *M, *X;       // in place of the stages
  float* sums;    // M o (Q K^T) + X o (K K^T), kSumLd apart
  float* totals;  // of `sums` in quarters of its rows
  __device__ explicit Shared(char* memory) {
    gates = reinterpret_cast<float*>(memory);
    read_q = gates + kGates;
    read_k = read_q + groups * kRows;
    write = read_k + groups * kRows;
    inner = write + groups * kRows;
    k = reinterpret_cast<E*>(inner + warps);
    q = k + kRows * ld;
    stages = reinterpret_cast<char*>(q + Tokens * ld);
    M = reinterpret_cast<E*>(stages);
    X = M + Tokens * kPairLd;
    sums = reinterpret_cast<float*>(X + kRows * kPairLd);
    totals = sums + kRows * kSumLd;
  }
  __device__ Values stage(int i) const { return Values(stages + (i & 1) * Values::bytes); }
};

__device__ inline float dot(const Right<bf16>& x, const Right<bf16>& y) {
  const float2 a = unpack(x.r[0]), b = unpack(y.r[0]), c = unpack(x.r[1]), d = unpack(y.r[1]);
  return a.x * b.x + a.y * b.y + (c.x * d.x + c.y * d.y);
}
__device__ inline float dot(const Right<float>& x, const Right<float>& y) {
  return x.r[0] * y.r[0] + x.r[1] * y.r[1];
}

// sums += left right over the depths from `begin` to `end`. left: 16 rows, or 16 columns if LeftDown; right: [k][n] if
// RightDown, else [n][k]
template <bool LeftDown, bool RightDown, int Tiles, class E>
__device__ __forceinline__ void add_product(Sum (&sums)[Tiles], const E* left, int left_ld, const E* right,
                                            int right_ld, int begin, int end, bool exact) {
  for (int k = begin; k < end; k += Left<E>::depth) {
    Left<E> a;
    if constexpr (LeftDown)
      load_transposed(a, left + k * left_ld, left_ld);
    else
      load(a, left + k, left_ld);
    multiply_step<RightDown>(sums, a, 0, right + (RightDown ? k * right_ld : k), right_ld, exact);
  }
}

// Row 8 h + g of the sums with that row of the tile, over the four lanes that share it
template <int Tiles, class E>
__device__ inline float row_dot(const Sum (&sums)[Tiles], int h, const E* row) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
    const float2 x = load_pair(row + 8 * i + 2 * (lane_id() & 3));
    sum += sums[i][2 * h] * x.x + sums[i][2 * h + 1] * x.y;
  }
  return sum_lanes(sum, 1, 4);
}

template <int Tiles>
__device__ inline void scale_row(Sum (&sums)[Tiles], int h, float scale) {
#pragma unroll
  for (int i = 0; i < Tiles; ++i) sums[i][2 * h] *= scale, sums[i][2 * h + 1] *= scale;
}

// The warp's rows of dQ or dK, columns from `column`
template <int Tiles, class E>
__device__ inline void store_gradient(const Sum (&sums)[Tiles], const View& view, const Chunk& c, Factors f, int first,
                                      int column, int width) {
  E* const start = row_start<E>(view, c) + column + 2 * (lane_id() & 3);
  const int left = width - column - 2 * (lane_id() & 3);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = first + (lane_id() >> 2) + 8 * h;
    if (f.token(row) >= c.tokens) continue;
    E* x = start + f.offset(view, row);
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
      if (view.aligned && 8 * i + 1 < left) {
        store_pair(x + 8 * i, sums[i][2 * h], sums[i][2 * h + 1]);
      } else {
        if (8 * i < left) x[8 * i] = E(sums[i][2 * h]);
        if (8 * i + 1 < left) x[8 * i + 1] = E(sums[i][2 * h + 1]);
      }
    }
  }
}

// dg of every token from the terms in shared memory; the first eight warps
template <class S>
__device__ void store_decay_gradient(const Problem& p, const Chunk& c, const S& s) {
  // sums[r][j] <- sum of rows r.. of its quarter; totals of the quarters
  const int j = threadIdx.x % kRows, quarter = threadIdx.x / kRows;
  if (quarter < 4) {
    float run = 0;
#pragma unroll
    for (int r = 15; r >= 0; --r) {
      float& sum = s.sums[(16 * quarter + r) * kSumLd + j];
      run += sum;
      sum = run;
    }
    s.totals[quarter * kRows + j] = run;
  }
  __syncthreads();
  // A lane has two columns, a warp eight tokens.
  const int warp = threadIdx.x / 32, lane = lane_id();
  if (warp >= 8) return;
  float read[2] = {0, 0}, write[2] = {0, 0}, later[2][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int column = lane + 32 * h;
    for (int group = 0; group < S::groups; ++group) {
      read[h] += s.read_q[group * kRows + column] + s.read_k[group * kRows + column];
      write[h] += s.write[group * kRows + column];
    }
    later[h][3] = 0;
#pragma unroll
    for (int q = 2; q >= 0; --q) later[h][q] = later[h][q + 1] + s.totals[(q + 1) * kRows + column];
  }
  float sums[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int first = min((8 * warp + i) * p.n, kRows - 1), q = first / 16;
    sums[i] = 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int column = lane + 32 * h;
      const float after = q == 0 ? later[h][0] : q == 1 ? later[h][1] : q == 2 ? later[h][2] : 0.f;
      sums[i] += column < first ? write[h] + (s.sums[first * kSumLd + column] + after) : read[h];
    }
  }
  // Eight sums over 32 lanes: token i ends in the lanes whose upper bits are i.
  fold_sums<4, 16>(sums, lane);
  fold_sums<2, 8>(sums, lane);
  fold_sums<1, 4>(sums, lane);
  float sum = sums[0];
  sum += __shfl_xor_sync(~0u, sum, 2);
  sum += __shfl_xor_sync(~0u, sum, 1);
  const int token = 8 * warp + lane / 4;
  if (lane % 4 || token >= p.tokens) return;
  float inner = 0;
  for (int i = 0; i < S::warps; ++i) inner += s.inner[i];
  sum += s.gates[since_start * kRows + kRows - 1] * inner;
  if (p.parts > 1) {
    p.dg_parts[(static_cast<int64_t>(blockIdx.y) * p.pairs * p.chunks + c.index) * kRows + token] = sum;
  } else if (token < c.tokens) {
    row_start<float>(p.dg, c)[token * p.dg.time] = sum;
  }
}

// X, M and the pair terms of dg. The rows of `sums` are those of X; a token's row of M counts at its first factor.
template <class E, int Keys, class S, int Tiles>
__device__ __forceinline__ void store_pairs(Sum (&M)[Tiles], Sum (&X)[Tiles], const Problem& p, const Chunk& c,
                                            const S& s, int first, int pair, bool queries, bool pairs_q, bool pairs_k,
                                            bool exact) {
  constexpr int ld = S::ld;
  const PairDecay decay(s.gates, first, pair, p.n);
  Sum keys[Tiles];  // K K^T, then X o (K K^T)
  clear(keys);
  if (pairs_k) {
    if (p.g.data) add_product<false, false>(keys, s.k + first * ld, ld, s.k + pair * ld, ld, 0, Keys, exact);
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float x = decay.column(i, e) < decay.row(e) ? -X[i][e] * decay.of_rows(i, e) : 0.f;
        X[i][e] = x;
        keys[i][e] *= x;
      }
    }
  }
  store_sums(X, s.X + first * kPairLd + pair, kPairLd);
  if (p.n > 1) {
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s.sums[decay.row(e) * kSumLd + decay.column(i, e)] = keys[i][e];
    }
    __syncthreads();
  }
  if (queries) {
    Sum queried[Tiles];  // Q K^T
    clear(queried);
    if (pairs_q && p.g.data)
      add_product<false, false>(queried, s.q + first * ld, ld, s.k + pair * ld, ld, 0, Keys, exact);
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int token = decay.row(e), col = decay.column(i, e), row = token * p.n;
        const bool seen = token < c.tokens && col < row + p.n;
        const float x = seen ? p.scale * M[i][e] * decay.of_tokens(i, e) : 0.f;
        M[i][e] = x;
        float* sum = s.sums + row * kSumLd + col;
        if (p.n == 1) {
          *sum = keys[i][e] + x * queried[i][e];
        } else if (seen) {
          *sum += x * queried[i][e];
        }
      }
    }
    store_sums(M, s.M + first * kPairLd + pair, kPairLd);
  }
}

template <class E, int Keys, int Tokens>
__global__ void __launch_bounds__(128 * column_groups(Keys), sizeof(E) == 2 && Keys <= 80 ? 2 : 1)
    gradients(const Problem p) {
  using S = Shared<E, Keys, Tokens>;
  constexpr int depth = Left<E>::depth, ld = S::ld, value_ld = S::Values::value_ld;
  constexpr int tiles = Keys / 8 / S::groups, pair_tiles = kRows / 8 / S::groups;
  const S s(shared_memory());
  const Chunk c(p, blockIdx.x / p.chunks, blockIdx.x % p.chunks);
  const int warp = threadIdx.x / 32, group = warp % S::groups, first = 16 * (warp / S::groups);
  const int g = lane_id() >> 2, t = lane_id() & 3;
  const int key = Keys * blockIdx.y, column = 8 * tiles * group, pair = 8 * pair_tiles * group;
  const bool exact = p.exact, queries = Tokens == kRows || first < Tokens;
  const bool pairs_q = queries && pair < (first + 16) * p.n, pairs_k = pair < first + 16;

  const TileWalk<E> keys_walk(Keys), values_walk(value_tile<E>);
  load_rows(s.k, ld, p.k, c, factors(p), kRows, key, keys_walk, p.K);
  load_rows(s.q, ld, p.q, c, tokens_only(), Tokens, key, keys_walk, p.K);
  load_tile(s.gates, kRows, gates_of(p, c), kRows, gate_count, TileWalk<float>(kRows));
  s.stage(0).load(p, c, 0, key, values_walk);
  for (int i = threadIdx.x; i < S::groups * kRows; i += blockDim.x) s.read_q[i] = 0;

  // Over V: dO V'^T and dV V'^T; dO S^T, dV S^T and V' dS^T; <dS, S>
  Sum M[pair_tiles], X[pair_tiles], dq[tiles], read[tiles], dk[tiles];
  clear(M);
  clear(X);
  clear(dq);
  clear(read);
  clear(dk);
  float inner = 0;
  for (int value = 0, i = 0; value < p.values; value += value_tile<E>, ++i) {
    copy_wait<0>();
    __syncthreads();
    if (value + value_tile<E> < p.values) s.stage(i + 1).load(p, c, value + value_tile<E>, key, values_walk);
    const typename S::Values v = s.stage(i);
    const int count = min(value_tile<E>, p.values - value);
    for (int k = 0; k < count; k += depth) {
      Left<E> a_out, a_dv, a_corrected;
      if (queries) load(a_out, v.d_out + first * value_ld + k, value_ld);
      load(a_dv, v.dv + first * value_ld + k, value_ld);
      load(a_corrected, v.corrected + first * value_ld + k, value_ld);
      if (pairs_q || pairs_k) {
#pragma unroll
        for (int j = 0; j < pair_tiles; j += 2) {
          Right<E> b[2];
          load(b, v.corrected + (pair + 8 * j) * value_ld + k, value_ld);
          if (pairs_q) multiply(M[j], a_out, b[0], exact), multiply(M[j + 1], a_out, b[1], exact);
          if (pairs_k) multiply(X[j], a_dv, b[0], exact), multiply(X[j + 1], a_dv, b[1], exact);
        }
      }
      const bool counts = (k / depth) % 4 == warp / S::groups;  // four warps read the same states
#pragma unroll
      for (int j = 0; j < tiles; j += 2) {
        Right<E> b[2], d[2];
        const int at = (column + 8 * j) * value_ld + k;
        if (j + 1 < tiles) {
          load(b, v.state + at, value_ld);
          load(d, v.d_state + at, value_ld);
        } else {
          load(b[0], v.state + at, value_ld);
          load(d[0], v.d_state + at, value_ld);
        }
#pragma unroll
        for (int m = 0; m < 2 && j + m < tiles; ++m) {
          if (queries) multiply(dq[j + m], a_out, b[m], exact);
          multiply(read[j + m], a_dv, b[m], exact);
          multiply(dk[j + m], a_corrected, d[m], exact);
          if (counts) inner += dot(b[m], d[m]);
        }
      }
    }
  }
  __syncthreads();

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = first + g + 8 * h, token_row = min(row * p.n, kRows - 1);
    scale_row(dq, h, p.scale * s.gates[since_start * kRows + token_row]);
    scale_row(read, h, -s.gates[since_start * kRows + row]);
    scale_row(dk, h, s.gates[until_end * kRows + row]);
    const E* k = s.k + row * ld + column;
    const float read_k = row_dot(read, h, k), write = row_dot(dk, h, k);
    if (t == 0) s.read_k[kRows * group + row] = read_k, s.write[kRows * group + row] = write;
    if (queries) {
      const float read_q = row_dot(dq, h, s.q + row * ld + column);
      if (t == 0 && row < c.tokens) s.read_q[kRows * group + token_row] = read_q;
    }
  }
#pragma unroll
  for (int step = 16; step; step /= 2) inner += __shfl_xor_sync(~0u, inner, step);
  if (lane_id() == 0) s.inner[warp] = inner;
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) dk[i][e] += read[i][e];
  }

  store_pairs<E, Keys>(M, X, p, c, s, first, pair, queries, pairs_q, pairs_k, exact);
  __syncthreads();

  if (queries) {
    add_product<false, true>(dq, s.M + first * kPairLd, kPairLd, s.k + column, ld, 0, min(kRows, (first + 16) * p.n),
                             exact);
    store_gradient<tiles, E>(dq, p.dq, c, tokens_only(), first, key + column, p.K);
  }
  add_product<false, true>(dk, s.X + first * kPairLd, kPairLd, s.k + column, ld, 0, first + 16, exact);
  add_product<true, true>(dk, s.X + first, kPairLd, s.k + column, ld, first, kRows, exact);
  add_product<true, true>(dk, s.M + first, kPairLd, s.q + column, ld, factors(p).token(first) / 16 * 16, Tokens, exact);
  store_gradient<tiles, E>(dk, p.dk, c, factors(p), first, key + column, p.K);
  if (p.g.data) store_decay_gradient(p, c, s);
}

struct Launch {
  const Problem& p;
  Target to;
  template <class E, int KeyTile, int Tokens>
  cudaError_t operator()() const {
    constexpr int keys = KeyTile < kKeyPart ? KeyTile : kKeyPart;
    return KeyTile / p.parts == kSmallKeyPart ? run<E, kSmallKeyPart, Tokens>() : run<E, keys, Tokens>();
  }
  template <class E, int Keys, int Tokens>
  cudaError_t run() const {
    return launch(gradients<E, Keys, Tokens>, dim3(p.pairs * p.chunks, p.parts), 128 * column_groups(Keys),
                  Shared<E, Keys, Tokens>::bytes, to, p);
  }
};

}  // namespace

cudaError_t launch_gradients(const Problem& p, bool bf16_operands, Target to) {
  return dispatch(p, bf16_operands, Launch{p, to});
}

}  // namespace sb::cuda
