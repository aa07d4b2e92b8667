// Shared parts of the five passes of the generalised delta rule: kernel arguments and the memory between the passes.
//
// In a chunk of 64 steps, b is the cumulative sum of g per key channel, r = b or, with erase_first, b of the step
// before, and S is the initial state of the chunk. Products of vectors and decays are by channel:
//   Qd = scale e^b q;  Ed = e^r e;  Kd = e^(b_end - b) k;  Wd = e^(b_end - b) w
//   P_ij = scale q_i . e^(b_i - b_j) k_j,  Q_ij = scale q_i . e^(b_i - b_j) w_j        j <= i
//   E_ij = e_i . e^(r_i - b_j) k_j,        A_ij = e_i . e^(r_i - b_j) w_j              j < i
//   N = (I + A)^-1;  R = -N (Ed S + E V)                R is minus the erased values
//   O = Qd S + P V + Q R;  S+ = e^b_end S + Kd^T V + Wd^T R
//   Z = -N^T (Q^T dO + Wd dS+);  dV = P^T dO + Kd dS+ + E^T Z;  dS = e^b_end dS+ + Qd^T dO + Ed^T Z
//   dP = scale dO V^T, dQ = scale dO R^T, dE = Z V^T, dA = Z R^T;  dQd = dO S^T, dEd = Z S^T, dKd = V dS+^T, dWd = R
//   dS+^T
// If keys are written (w = k), D = V + R takes the place of V and R. One side of the pairs is left, that of k:
//   D = N (V - Ed S);  O = Qd S + P D;  S+ = e^b_end S + Kd^T D
//   Z = -N^T (P^T dO + Kd dS+);  dV = -Z;  dS = e^b_end dS+ + Qd^T dO + Ed^T Z
//   dP = scale dO D^T, dA = Z D^T;  dQd = dO S^T, dEd = Z S^T, dKd = D dS+^T
// No exponent is above 0. With erase_first, step i + 1 erases from the state after step i, so row i of the erase
// vectors' tile holds e_(i+1), which decays like q_i and meets k_j, w_j for j <= i. Its pairs belong to row i + 1 of E
// and A. Only e_0 reads S undecayed.
//
// pairs computes decayed rows, P, Q, E and N of all chunks in parallel. forward and backward loop over the chunks in
// order (backward from the last), with one warp for 16 columns of V and S^T (or dS^T) in registers. outer computes the
// last line of the formulas, and channels the gradients of q, k, e, w and g from it, for all chunks in parallel. With
// several segments, forward and backward run twice (delta_join.cuh).
#pragma once
#include "kernels/cuda/delta_join.cuh"
#include "kernels/cuda/delta_rows.cuh"
#include "kernels/cuda/general_delta.h"

namespace sb::cuda {

enum DecayedRows { rows_q, rows_e, rows_k, rows_w };
enum PairMatrix { matrix_p, matrix_q, matrix_e, matrix_n, matrix_a = matrix_n };  // the last: N, among gradients dA
// Sides of the pairs: 2, k and w, or 1, if keys are written. There are 2 + Sides decayed rows, Qd, Ed, Kd and Wd, and
// 2 Sides matrices: P, Q, E, N, or P, N.

struct GeneralProblem {
  GeneralDelta in;
  GeneralDeltaGradients d;
  Rows out;
  float* final_state;
  int time, heads, K, V;
  bool exact;
  bool even_decays;  // g can be read in pairs of channels
  int pairs;         // number of (sequence, head)
  int tokens;        // per chunk
  int chunks;
  int key_tile;       // padded K
  int warps, slices;  // of the loops: warps per block, each with 16 columns of V; blocks per pair
  int values;         // padded V: 16 * warps * slices
  Segments segments;
  bool first;         // this is the first pass over the segments
  int transition;     // column of A in `added`: V, rounded up to a multiple of 16
  int added_columns;  // of `added`
  // Memory between passes; E is the type of the precision. Shapes are [pairs][chunks] followed by:
  void* rows;        // E [2 + Sides][64][key_tile]: Qd, Ed, Kd, Wd
  void* matrices;    // E [2 Sides][64][64]: P, Q, E, N
  float* factors;    // [key_tile]: e^b_end
  void* states;      // E [key_tile][values]: S; null: not kept
  void* erased;      // E [64][values]: R or, if keys are written, D; null: not kept
  void* d_states;    // E [key_tile][values]: dS+
  void* solved;      // E [64][values]: Z; not used if keys are written: Z = -dV
  void* d_rows;      // E [2 + Sides][64][key_tile]: dQd, dEd, dKd, dWd
  void* d_matrices;  // E [2 Sides][64][64]: dP, dQ, dE, dA
  float* along;      // [key_tile]: <dS+, S> of each key channel
  // Used with several segments; shapes are [pairs][segments] followed by:
  float* added;   // [K][added_columns], (B, A)
  float* starts;  // [K][V], initial states
  float* d_ends;  // [K][V], D after the first pass, then gradients of final states
  __host__ __device__ int64_t all_chunks() const { return static_cast<int64_t>(pairs) * chunks; }
  int sides() const { return in.writes_keys ? 1 : 2; }
  template <class E, int Sides>
  __device__ E* rows_of(void* memory, int64_t chunk, int which) const {
    return static_cast<E*>(memory) + (chunk * (2 + Sides) + which) * kRows * key_tile;
  }
  template <class E, int Sides>
  __device__ E* matrix_of(void* memory, int64_t chunk, int which) const {
    return static_cast<E*>(memory) + (chunk * 2 * Sides + which) * kRows * kRows;
  }
};

// Maximum warps per block of the loops over chunks, each with 16 columns of V; more columns are divided into slices.
// first_forward: of forward's first pass over the segments, which has fewer operands in registers
constexpr int most_walk_warps(bool bf16_operands, int key_tile, bool first_forward = false) {
  if (first_forward && bf16_operands && key_tile <= 80) return 16;
  return (bf16_operands ? 12 : 8) - (key_tile <= 128 ? 0 : 4);
}

cudaError_t launch_general_pairs(const GeneralProblem& p, Target to);
cudaError_t launch_general_forward(const GeneralProblem& p, Target to);
cudaError_t launch_general_backward(const GeneralProblem& p, Target to);
cudaError_t launch_general_outer(const GeneralProblem& p, Target to);
cudaError_t launch_general_channels(const GeneralProblem& p, Target to);

}  // namespace sb::cuda
