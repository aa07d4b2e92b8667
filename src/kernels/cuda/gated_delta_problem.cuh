// Shared parts of the four passes of the gated delta rule: kernel arguments, the memory between passes, and copies
// between rows of the caller's tensors and tiles.
//
// A chunk has 64 rows: `tokens` = 64 / n tokens with n factors each. gamma is the cumulative sum of g within the chunk,
// L_ij = e^{gamma_i - gamma_j}, c = e^{gamma}, u = e^{gamma_last - gamma}, and S is the initial state of the chunk:
//   A = strict_lower(beta_i (k_i.k_j) L_ij)       N = (I + A)^{-1} diag(beta)
//   P = scale lower((q_i.k_j) L_ij), a row for each token
//   E = V - c K S       V' = N E
//   O = scale c Q S + P V'       S+ = c_last S + (u K)^T V'
//   dV' = P^T dO + u K dS+       dV = N^T dV'       dbeta = dV.V' / beta^2
//   dS = c_last dS+ + scale (c Q)^T dO - (c K)^T dV
//   M = scale lower(dO V'^T) o L       X = -strict_lower(dV V'^T) o L
//   dQ = scale c dO S^T + M K
//   dK = -c dV S^T + u V' dS+^T + M^T Q + X K + X^T K
//   dg_t = c_last <dS+, S> + sum of write terms before t + sum of read terms from t on
//          + sum over pairs (row from t on, column before t) of M o (Q K^T) + X o (K K^T)
// Read terms are q_i.(first term of dQ)_i + k_i.(first term of dK)_i; write terms are k_i.(second term of dK)_i.
// prepare computes gamma, N and P of all chunks in parallel. forward and backward loop over the chunks in order
// (backward from the last), with one warp for 16 columns of V and S^T (or dS^T) in registers. gradients computes the
// rest for all chunks in parallel.
// With several segments, forward and backward run twice (delta_join.cuh).
#pragma once
#include "kernels/cuda/delta_join.cuh"
#include "kernels/cuda/delta_rows.cuh"
#include "kernels/cuda/gated_delta.h"

namespace sb::cuda {

constexpr int kKeyPart = 128;         // maximum key columns per block of `gradients`
constexpr int kSmallKeyPart = 64;     // the same for devices with less shared memory
constexpr float kLeastBeta = 1e-15f;  // minimum magnitude of beta, since dbeta divides by beta^2

// Rows of `gates` for every chunk, kRows floats each: gamma / ln 2 (high and low part), beta, beta^-2, c, u
enum Gate { gamma_high, gamma_low, gate_beta, beta_inverse_squared, since_start, until_end, gate_count };
constexpr int kGates = gate_count * kRows;

struct Problem {
  int time, heads, n, K, V;
  int token_factor;  // for rows of a chunk, row / n = row * token_factor >> 8
  float scale;
  bool exact;
  int pairs;   // number of (sequence, head)
  int tokens;  // per chunk
  int chunks;
  int key_tile;       // padded K
  int warps, slices;  // warps per block, each with 16 columns of V; blocks per pair
  int values;         // padded V: 16 * warps * slices
  int parts;          // parts of the keys in `gradients`, of kKeyPart or kSmallKeyPart columns if several
  int stages;         // buffers for tiles in shared memory, in forward or backward
  Segments segments;
  bool first;         // this is the first pass over the segments
  int transition;     // column of A in `added`: V, rounded up to a multiple of 16
  int added_columns;  // of `added`
  View q, k, v, beta, g, out, d_out, dq, dk, dv, dbeta, dg;
  const float *state, *d_final_state;
  float *final_state, *d_state;
  // Memory between passes; E is the type of the precision. Shapes are [pairs][chunks] followed by:
  float* gates;         // [kGates]
  void* inverse;        // E [64][64], N
  void* P;              // E [64][64]; rows are tokens
  void* corrected;      // E [64][values], V'; null: not kept
  void* states;         // E [key_tile][values], S; null: not kept
  void* d_states;       // E [key_tile][values], dS+
  float* dbeta_slices;  // complete shape [slices][pairs][chunks][64]; used if slices > 1
  float* dg_parts;      // complete shape [parts][pairs][chunks][64]; used if parts > 1
  // Used with several segments; shapes are [pairs][segments] followed by:
  float* added;   // [K][added_columns], (B, A)
  float* starts;  // [K][V], initial states
  float* d_ends;  // [K][V], D after the first pass, then gradients of final states
};

cudaError_t launch_prepare(const Problem& p, bool bf16_operands, Target to);
cudaError_t launch_forward(const Problem& p, bool bf16_operands, Target to);
cudaError_t launch_backward(const Problem& p, bool bf16_operands, Target to);
cudaError_t launch_gradients(const Problem& p, bool bf16_operands, Target to);

// Maximum warps per block in forward and backward, each with 16 columns of V; more columns are divided into slices.
// first_forward: of forward's first pass over the segments, which has fewer operands in registers
constexpr int most_warps(bool bf16_operands, int key_tile, bool first_forward = false) {
  if (!bf16_operands) return key_tile <= 128 ? 8 : 4;
  if (first_forward && key_tile <= 80) return 16;
  return key_tile <= 64 ? 8 : key_tile <= 80 ? 9 : key_tile <= 128 ? 12 : 8;
}
// Blocks of backward per multiprocessor
constexpr int backward_blocks(bool bf16_operands, int key_tile) {
  return bf16_operands && key_tile <= 80 ? 2 : 1;
}

__device__ inline Factors factors(const Problem& p) {
  return {p.n, p.token_factor};
}

// e^{gamma_row - gamma_column} for the lane's elements in 16 rows of a matrix of pairs, whose rows are the chunk's rows
// (of_rows) or its tokens (of_tokens)
struct PairDecay {
  const float* gates;
  int first_row, first_column;
  float row_high[2], row_low[2], token_high[2], token_low[2];
  __device__ PairDecay(const float* gates, int row, int column, int n) : gates(gates) {
    first_row = row + (lane_id() >> 2), first_column = column + 2 * (lane_id() & 3);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = first_row + 8 * h, t = min(r * n, kRows - 1);
      row_high[h] = gates[gamma_high * kRows + r], row_low[h] = gates[gamma_low * kRows + r];
      token_high[h] = gates[gamma_high * kRows + t], token_low[h] = gates[gamma_low * kRows + t];
    }
  }
  __device__ int row(int e) const {
    return first_row + 8 * (e >> 1);
  }
  __device__ int column(int i, int e) const {
    return first_column + 8 * i + (e & 1);
  }
  __device__ float of_rows(int i, int e) const {
    return between(row_high[e >> 1], row_low[e >> 1], column(i, e));
  }
  __device__ float of_tokens(int i, int e) const {
    return between(token_high[e >> 1], token_low[e >> 1], column(i, e));
  }
  __device__ float between(float high, float low, int column) const {
    return exp2_fast((high - gates[gamma_high * kRows + column]) + (low - gates[gamma_low * kRows + column]));
  }
};

__device__ inline float* gates_of(const Problem& p, const Chunk& c) {
  return p.gates + c.index * kGates;
}
// Calls f<E, key tile, maximum tokens per chunk>.
template <class F>
cudaError_t dispatch(const Problem& p, bool bf16_operands, F f) {
  const bool four = p.n == 4;
#define SB_TILE(E, width) \
  if (p.key_tile == width) return four ? f.template operator()<E, width, 16>() : f.template operator()<E, width, 64>()
  if (bf16_operands) {
    SB_TILE(bf16, 64);
    SB_TILE(bf16, 80);
    SB_TILE(bf16, 96);
    SB_TILE(bf16, 128);
    if (p.key_tile == 256) return f.template operator()<bf16, 256, 64>();
  } else {
    if (p.key_tile == 64) return f.template operator()<float, 64, 64>();
    if (p.key_tile == 96) return f.template operator()<float, 96, 64>();
    if (p.key_tile == 128) return f.template operator()<float, 128, 64>();
    if (p.key_tile == 256) return f.template operator()<float, 256, 64>();
  }
#undef SB_TILE
  return cudaErrorInvalidValue;
}

}  // namespace sb::cuda
