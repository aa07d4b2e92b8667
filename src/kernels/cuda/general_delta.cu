// The generalised delta rule on CUDA: checks arguments, lays out the memory between the passes, and launches them.
#include <algorithm>

#include "kernels/cuda/general_delta_problem.cuh"
#include "kernels/cuda/sizes.h"

namespace sb::cuda {
namespace {

bool valid(const GeneralDelta& p) {
  return within(p.batch, 1 << 20) && within(p.time, 1 << 24) && within(p.heads, 1 << 16) && within(p.key_width, 256) &&
         within(p.value_width, 256) && p.batch * p.heads * ((p.time + kRows - 1) / kRows) < (int64_t{1} << 31);
}

size_t element(const GeneralDelta& p) {
  return p.precision == Precision::bf16 ? 2 : 4;
}

bool fits(cudaError_t (*pass)(const GeneralProblem&, Target), const GeneralProblem& p) {
  return pass(p, Target::nowhere()) == cudaSuccess;
}

// Forward's first pass over the segments: the largest slices of values and transition that fit
GeneralProblem first_forward(GeneralProblem p) {
  const int warps = p.added_columns / 16;
  p.first = true;
  for (p.slices = ceil_div(warps, most_walk_warps(p.in.precision == Precision::bf16, p.key_tile, true));; ++p.slices) {
    p.warps = std::max(2, ceil_div(warps, p.slices));
    if (p.warps == 2 || fits(launch_general_forward, p)) break;
  }
  p.in.initial_state = nullptr;
  return p;
}

GeneralProblem first_backward(GeneralProblem p) {
  p.first = true;
  p.d.d_final_state = nullptr;
  p.segments = p.segments.some(1, p.segments.count - 1);  // nothing comes before the first one
  return p;
}

DeltaJoin join_of(const GeneralProblem& p, const float* given, float* states) {
  return {p.pairs, p.K, p.V, p.segments.count, p.transition, p.added_columns, p.added, given, states};
}

void take_segments(GeneralProblem& p) {
  p.transition = ceil_div(p.V, 16) * 16;
  p.added_columns = p.transition + ceil_div(p.K, 16) * 16;
  const int64_t blocks = static_cast<int64_t>(p.pairs) * p.slices;
  const int64_t first_blocks = static_cast<int64_t>(p.pairs) * first_forward(p).slices;
  constexpr int first = 7;  // three of four products with keys per chunk
  const int two = p.in.precision == Precision::bf16 && p.warps <= 6 ? 15 : 0;
  p.segments = divide(p.time, p.chunks, {{blocks, 10, two}, {blocks, 10, two}},
                      {{first_blocks, first}, {blocks, first, two * first / 10}});
}

// With slices of V as large as fit on the current device
GeneralProblem sizes(const GeneralDelta& in) {
  const bool low = in.precision == Precision::bf16;
  GeneralProblem p{};
  p.in = in;
  p.time = static_cast<int>(in.time), p.heads = static_cast<int>(in.heads);
  p.K = static_cast<int>(in.key_width), p.V = static_cast<int>(in.value_width);
  p.exact = in.precision == Precision::fp32;
  p.even_decays = in.g_key == 1 && (in.key_width | in.g_batch | in.g_time | in.g_head) % 2 == 0 &&
                  reinterpret_cast<uintptr_t>(in.g) % 8 == 0;
  p.pairs = static_cast<int>(in.batch) * p.heads;
  p.tokens = kRows;
  p.chunks = ceil_div(p.time, kRows);
  for (const int width : {256, 128, 96, 80, 64})
    if (p.K <= width && (low || width != 80)) p.key_tile = width;
  const int warps = ceil_div(p.V, 16);
  for (p.slices = ceil_div(warps, most_walk_warps(low, p.key_tile));; ++p.slices) {
    p.warps = std::max(2, ceil_div(warps, p.slices));  // a tile's row is at most 64 pieces of 16 bytes, one a thread
    p.values = 16 * p.warps * p.slices;
    if (p.warps == 2 || (fits(launch_general_forward, p) && fits(launch_general_backward, p))) break;
  }
  take_segments(p);
  return p;
}

size_t take_kept(GeneralProblem& p, void* memory, bool backward) {
  WorkspacePieces pieces{static_cast<char*>(memory)};
  const size_t all = static_cast<size_t>(p.all_chunks()), wide = element(p.in) * all;
  pieces.take(p.rows, wide * (2 + p.sides()) * kRows * p.key_tile);
  pieces.take(p.matrices, wide * 2 * p.sides() * kRows * kRows);
  pieces.take(p.factors, sizeof(float) * all * p.key_tile);
  if (p.segments.count > 1) {
    const size_t lines = sizeof(float) * static_cast<size_t>(p.pairs) * p.segments.count * p.K;
    pieces.take(p.added, lines * p.added_columns);
    pieces.take(p.starts, lines * p.V);
  }
  if (!backward) return pieces.used;
  pieces.take(p.states, wide * p.key_tile * p.values);
  pieces.take(p.erased, wide * kRows * p.values);
  return pieces.used;
}

size_t take_workspace(GeneralProblem& p, void* memory) {
  WorkspacePieces pieces{static_cast<char*>(memory)};
  const size_t all = static_cast<size_t>(p.all_chunks()), wide = element(p.in) * all;
  pieces.take(p.d_states, wide * p.key_tile * p.values);
  if (!p.in.writes_keys) pieces.take(p.solved, wide * kRows * p.values);
  pieces.take(p.d_rows, wide * (2 + p.sides()) * kRows * p.key_tile);
  pieces.take(p.d_matrices, wide * 2 * p.sides() * kRows * kRows);
  pieces.take(p.along, sizeof(float) * all * p.key_tile);
  if (p.segments.count > 1)
    pieces.take(p.d_ends, sizeof(float) * static_cast<size_t>(p.pairs) * p.segments.count * p.K * p.V);
  return pieces.used;
}

}  // namespace

bool general_delta_fits(const GeneralDelta& in) {
  const GeneralProblem p = sizes(in);
  for (const auto pass : {launch_general_pairs, launch_general_forward, launch_general_backward, launch_general_outer,
                          launch_general_channels})
    if (!fits(pass, p)) return false;
  return true;
}

size_t general_delta_kept_bytes(const GeneralDelta& in, bool backward) {
  GeneralProblem p = sizes(in);
  return take_kept(p, nullptr, backward);
}

size_t general_delta_workspace_bytes(const GeneralDelta& in) {
  GeneralProblem p = sizes(in);
  return take_workspace(p, nullptr);
}

cudaError_t general_delta_forward(const GeneralDelta& in, const Rows& out, float* final_state, void* kept, bool keeps,
                                  cudaStream_t stream) {
  if (!valid(in)) return cudaErrorInvalidValue;
  GeneralProblem p = sizes(in);
  take_kept(p, kept, keeps);
  p.out = out;
  p.final_state = final_state;
  if (const cudaError_t e = launch_general_pairs(p, stream); e != cudaSuccess) return e;
  if (p.segments.count > 1) {
    if (const cudaError_t e = launch_general_forward(first_forward(p), stream); e != cudaSuccess) return e;
    if (const cudaError_t e = launch_join(join_of(p, in.initial_state, p.starts), false, stream); e != cudaSuccess)
      return e;
    p.in.initial_state = p.starts;
  }
  return launch_general_forward(p, stream);
}

cudaError_t general_delta_backward(const GeneralDelta& in, void* kept, const GeneralDeltaGradients& d, void* workspace,
                                   cudaStream_t stream) {
  if (!valid(in)) return cudaErrorInvalidValue;
  GeneralProblem p = sizes(in);
  take_kept(p, kept, true);
  take_workspace(p, workspace);
  p.d = d;
  if (p.segments.count > 1) {
    if (const cudaError_t e = launch_general_backward(first_backward(p), stream); e != cudaSuccess) return e;
    if (const cudaError_t e = launch_join(join_of(p, d.d_final_state, p.d_ends), true, stream); e != cudaSuccess)
      return e;
    p.d.d_final_state = p.d_ends;
  }
  for (const auto pass : {launch_general_backward, launch_general_outer, launch_general_channels})
    if (const cudaError_t status = pass(p, stream); status != cudaSuccess) return status;
  return cudaSuccess;
}

}  // namespace sb::cuda
