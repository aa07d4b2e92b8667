// Computes gates, inverse and P of all chunks in parallel (formulas: gated_delta_problem.cuh).
#include "kernels/cuda/delta_inverse.cuh"
#include "kernels/cuda/gated_delta_problem.cuh"
#include "kernels/least_log_decay.h"

namespace sb::cuda {
namespace {

constexpr int kThreads = 128;

// Prefix sums in double, so that small log-decays still count after one of -800. Executed by one warp, two rows per
// lane.
__device__ void make_gates(const Problem& p, const Chunk& c, float* gates) {
  const int lane = lane_id();
  double sum[2];
  for (int i = 0; i < 2; ++i) {
    const int row = 2 * lane + i, token = factors(p).token(row), factor = row - token * p.n;
    float g = 0, beta = 0;
    if (token < c.tokens) {
      if (p.g.data && factor == 0) g = row_start<float>(p.g, c)[token * p.g.time];
      if (g < static_cast<float>(kLeastLogDecay)) g = static_cast<float>(kLeastLogDecay);
      beta = row_start<float>(p.beta, c)[token * p.beta.time + factor * p.beta.factor];
    }
    if (fabsf(beta) < kLeastBeta) beta = kLeastBeta;
    gates[gate_beta * kRows + row] = beta;
    gates[beta_inverse_squared * kRows + row] = 1 / (beta * beta);
    sum[i] = g * kLog2E;
  }
  sum[1] += sum[0];
  double last;
  const double before = sum_before(sum[1], lane, &last);
  for (int i = 0; i < 2; ++i) {
    const int row = 2 * lane + i;
    const double gamma = before + sum[i];
    const float high = static_cast<float>(gamma);
    gates[gamma_high * kRows + row] = high;
    gates[gamma_low * kRows + row] = static_cast<float>(gamma - high);
    gates[since_start * kRows + row] = exp2f(high);
    gates[until_end * kRows + row] = exp2f(static_cast<float>(last - gamma));
  }
}

// A and its inverse take the place of k and q.
template <class E, int KeyTile, int Tokens>
struct PrepareShared {
  static constexpr int key_ld = KeyTile + kPad;
  static constexpr size_t keys = sizeof(E) * (kRows + Tokens) * key_ld, matrices = sizeof(float) * 2 * kRows * kFloatLd;
  static constexpr size_t bytes = sizeof(float) * kGates + (keys > matrices ? keys : matrices);
  float *gates, *A, *inverse;
  E *k, *q;
  __device__ explicit PrepareShared(char* memory) {
    gates = reinterpret_cast<float*>(memory);
    A = gates + kGates;
    inverse = A + kRows * kFloatLd;
    k = reinterpret_cast<E*>(gates + kGates);
    q = k + kRows * key_ld;
  }
};

template <class E, int KeyTile, int Tokens>
__global__ void __launch_bounds__(kThreads) prepare(const Problem p) {
  using Shared = PrepareShared<E, KeyTile, Tokens>;
  constexpr int depth = Left<E>::depth, ld = Shared::key_ld;
  const Shared s(shared_memory());
  const Chunk c(p, blockIdx.x / p.chunks, blockIdx.x % p.chunks);
  const TileWalk<E> walk(KeyTile);
  load_rows(s.k, ld, p.k, c, factors(p), kRows, 0, walk, p.K);
  load_rows(s.q, ld, p.q, c, tokens_only(), Tokens, 0, walk, p.K);
  copy_commit();
  const int warp = threadIdx.x / 32, first = 16 * warp;
  if (warp == 0) make_gates(p, c, s.gates);
  copy_wait<0>();
  __syncthreads();
  for (int i = threadIdx.x; i < kGates; i += kThreads) gates_of(p, c)[i] = s.gates[i];

  Sum keys[8], sums[8];
  clear(keys);
  clear(sums);
#pragma unroll
  for (int k = 0; k < KeyTile; k += depth) {
    Left<E> a;
    load(a, s.k + first * ld + k, ld);
    multiply_step<false>(keys, a, k, s.k, ld, true);
    if (first < Tokens) {
      load(a, s.q + first * ld + k, ld);
      multiply_step<false>(sums, a, k, s.k, ld, true);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kFloatLd; i += kThreads) s.inverse[i] = 0;
  const PairDecay decay(s.gates, first, 0, p.n);
  const float beta[2] = {s.gates[gate_beta * kRows + decay.row(0)], s.gates[gate_beta * kRows + decay.row(2)]};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      keys[i][e] = decay.column(i, e) < decay.row(e) ? keys[i][e] * decay.of_rows(i, e) * beta[e >> 1] : 0.f;
    }
  }
  store_sums(keys, s.A + first * kFloatLd, kFloatLd);
  if (first < Tokens) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int token = decay.row(e), col = decay.column(i, e);
        const bool seen = token < c.tokens && col < (token + 1) * p.n;
        sums[i][e] = seen ? p.scale * sums[i][e] * decay.of_tokens(i, e) : 0.f;
      }
    }
    store_sums(sums, pairs_of<E>(p.P, c) + first * kRows, kRows);
  }

  __syncthreads();
  invert_chunk(s.A, s.inverse, warp);
  E* inverse = pairs_of<E>(p.inverse, c);
  for (int i = threadIdx.x; i < kRows * kRows / 2; i += kThreads) {
    const float *x = s.inverse + (i / 32) * kFloatLd + (i % 32) * 2, *beta = s.gates + gate_beta * kRows + (i % 32) * 2;
    store_pair(inverse + 2 * i, x[0] * beta[0], x[1] * beta[1]);
  }
}

struct Launch {
  const Problem& p;
  Target to;
  template <class E, int KeyTile, int Tokens>
  cudaError_t operator()() const {
    return launch(prepare<E, KeyTile, Tokens>, dim3(p.pairs * p.chunks), kThreads,
                  PrepareShared<E, KeyTile, Tokens>::bytes, to, p);
  }
};

}  // namespace

cudaError_t launch_prepare(const Problem& p, bool bf16_operands, Target to) {
  return dispatch(p, bf16_operands, Launch{p, to});
}

}  // namespace sb::cuda
