// The gated delta rule on CUDA: checks arguments, lays out the memory between the passes, and launches them.
#include <algorithm>

#include "kernels/cuda/gated_delta_problem.cuh"
#include "kernels/cuda/sizes.h"

namespace sb::cuda {
namespace {

bool bf16_operands(const DeltaShape& shape) {
  return shape.precision == DeltaPrecision::bf16;
}

bool supported(const DeltaShape& s) {
  return s.batch >= 0 && s.time >= 0 && s.heads > 0 && s.factors >= 1 && s.factors <= 4 && s.K >= 1 && s.K <= 256 &&
         s.V >= 1 && s.V <= 512;
}

bool fits(cudaError_t (*pass)(const Problem&, bool, Target), const Problem& p, bool bf16) {
  return pass(p, bf16, Target::nowhere()) == cudaSuccess;
}

// Pads the keys to `width`, and chooses the largest slices of V and parts of the keys that fit on the current device.
// Returns whether there are any.
bool take_tiles(Problem& p, bool bf16, int width) {
  const int warps = ceil_div(p.V, 16), most_slices = ceil_div(warps, 2);
  p.key_tile = width;
  p.parts = ceil_div(width, kKeyPart);
  if (width % kSmallKeyPart == 0 && !fits(launch_gradients, p, bf16)) p.parts = width / kSmallKeyPart;
  for (p.slices = ceil_div(warps, most_warps(bf16, width)); p.slices <= most_slices; ++p.slices) {
    p.warps = std::max(2, ceil_div(warps, p.slices));  // a tile's row is at most 64 pieces of 16 bytes, one a thread
    p.values = 16 * p.warps * p.slices;
    if (fits(launch_forward, p, bf16) && fits(launch_backward, p, bf16)) break;
  }
  return p.slices <= most_slices && fits(launch_prepare, p, bf16) && fits(launch_gradients, p, bf16);
}

// Measured: in forward, one block with two stages of tiles is faster than two blocks with one; in backward it is not.
int stages(bool bf16, Problem p, bool forward) {
  if (!bf16 || p.key_tile > 128) return 1;
  if (!forward && backward_blocks(true, p.key_tile) == 2) return 1;
  p.stages = 2;
  return fits(forward ? launch_forward : launch_backward, p, true) ? 2 : 1;
}

// Forward's first pass over the segments: the largest slices of values and transition that fit
Problem first_forward(Problem p, bool bf16) {
  const int warps = p.added_columns / 16;
  p.first = true;
  p.stages = 1;
  for (p.slices = ceil_div(warps, most_warps(bf16, p.key_tile, true));; ++p.slices) {
    p.warps = std::max(2, ceil_div(warps, p.slices));
    if (p.warps == 2 || fits(launch_forward, p, bf16)) break;
  }
  p.stages = stages(bf16, p, true);
  p.state = nullptr;
  return p;
}

Problem first_backward(Problem p) {
  p.first = true;
  p.d_final_state = nullptr;
  p.segments = p.segments.some(1, p.segments.count - 1);  // nothing comes before the first one
  return p;
}

DeltaJoin join_of(const Problem& p, const float* given, float* states) {
  return {p.pairs, p.K, p.V, p.segments.count, p.transition, p.added_columns, p.added, given, states};
}

// Times as measured (bench/notes/gpu_long.md): the first pass has three of forward's five products, and all of
// backward's, without its outputs.
Segments segments(const Problem& p, bool bf16) {
  const int64_t blocks = static_cast<int64_t>(p.pairs) * p.slices;
  const int64_t first_blocks = static_cast<int64_t>(p.pairs) * first_forward(p, bf16).slices;
  if (backward_blocks(bf16, p.key_tile) == 2)
    return divide(p.time, p.chunks, {{blocks, 10}, {blocks, 13, 20}}, {{first_blocks, 6}, {blocks, 10, 15}});
  return divide(p.time, p.chunks, {{blocks, 10}, {blocks, 10}}, {{first_blocks, 6}, {blocks, 8}});
}

Problem sizes(const DeltaShape& shape) {
  Problem p{};
  p.time = shape.time, p.heads = shape.heads, p.n = shape.factors, p.K = shape.K, p.V = shape.V;
  p.token_factor = 256 / p.n + 1;
  p.scale = shape.scale;
  p.exact = shape.precision == DeltaPrecision::fp32;
  p.pairs = shape.batch * shape.heads;
  p.tokens = kRows / p.n;
  p.chunks = ceil_div(p.time, p.tokens);
  p.stages = 1;
  for (const int width : {64, 80, 96, 128, 256}) {
    if (p.K <= width && (bf16_operands(shape) || width % 32 == 0) && take_tiles(p, bf16_operands(shape), width)) break;
  }
  p.transition = ceil_div(p.V, 16) * 16;
  p.added_columns = p.transition + ceil_div(p.K, 16) * 16;
  p.segments = segments(p, bf16_operands(shape));
  return p;
}

size_t element(const DeltaShape& shape) {
  return bf16_operands(shape) ? 2 : 4;
}

// Memory that forward needs, and (`keeps`) that it saves for backward
size_t take_forward(Problem& p, size_t element, void* memory, bool keeps) {
  WorkspacePieces pieces{static_cast<char*>(memory)};
  const size_t all = static_cast<size_t>(p.pairs) * p.chunks;
  pieces.take(p.gates, all * kGates * sizeof(float));
  pieces.take(p.inverse, all * kRows * kRows * element);
  pieces.take(p.P, all * kRows * kRows * element);
  if (p.segments.count > 1) {
    const size_t rows = static_cast<size_t>(p.pairs) * p.segments.count * p.K;
    pieces.take(p.added, rows * p.added_columns * sizeof(float));
    pieces.take(p.starts, rows * p.V * sizeof(float));
  }
  if (!keeps) return pieces.used;
  pieces.take(p.corrected, all * p.values * kRows * element);
  pieces.take(p.states, all * p.values * p.key_tile * element);
  return pieces.used;
}

size_t take_backward(Problem& p, size_t element, void* memory) {
  WorkspacePieces pieces{static_cast<char*>(memory)};
  const size_t all = static_cast<size_t>(p.pairs) * p.chunks;
  pieces.take(p.d_states, all * p.values * p.key_tile * element);
  if (p.slices > 1) pieces.take(p.dbeta_slices, p.slices * all * kRows * sizeof(float));
  if (p.parts > 1) pieces.take(p.dg_parts, p.parts * all * kRows * sizeof(float));
  if (p.segments.count > 1) {
    pieces.take(p.d_ends, static_cast<size_t>(p.pairs) * p.segments.count * p.K * p.V * sizeof(float));
  }
  return pieces.used;
}

View view(const DeltaView& v, size_t element) {
  const auto whole = [&](int64_t stride) { return stride * static_cast<int64_t>(element) % 16 == 0; };
  const bool aligned = reinterpret_cast<uintptr_t>(v.data) % 16 == 0 && whole(v.batch) && whole(v.time) &&
                       whole(v.factor) && whole(v.head);
  return {static_cast<char*>(v.data), v.batch, v.head, static_cast<int>(v.time), static_cast<int>(v.factor), aligned};
}

void take_inputs(Problem& p, const DeltaInputs& in, size_t element) {
  p.q = view(in.q, element), p.k = view(in.k, element), p.v = view(in.v, element);
  p.beta = view(in.beta, sizeof(float)), p.g = view(in.g, sizeof(float));
  p.state = in.state;
}

// rows of `parts` partial results [parts][pairs][chunks][64] to the tensor
__global__ void add_parts(const Problem p, const float* partial, int parts, View to, int n) {
  const Chunk c(p, blockIdx.x / p.chunks, blockIdx.x % p.chunks);
  const int row = threadIdx.x, token = row / n;
  if (token >= c.tokens) return;
  const int64_t all = static_cast<int64_t>(p.pairs) * p.chunks;
  float sum = 0;
  for (int i = 0; i < parts; ++i) sum += partial[(i * all + c.index) * kRows + row];
  row_start<float>(to, c)[token * to.time + (row - token * n) * to.factor] = sum;
}

cudaError_t copy_state(const Problem& p, float* to, const float* from, cudaStream_t stream) {
  const size_t bytes = sizeof(float) * p.pairs * p.K * p.V;
  if (!to || !bytes) return cudaSuccess;
  if (!from) return cudaMemsetAsync(to, 0, bytes, stream);
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace

bool gated_delta_fits(const DeltaShape& shape) {
  if (shape.K > 256) return false;  // wider than any key tile
  Problem p = sizes(shape);
  return take_tiles(p, bf16_operands(shape), p.key_tile);
}

size_t gated_delta_kept_bytes(const DeltaShape& shape) {
  Problem p = sizes(shape);
  return take_forward(p, element(shape), nullptr, true);
}

size_t gated_delta_scratch_bytes(const DeltaShape& shape, bool backward) {
  Problem p = sizes(shape);
  return backward ? take_backward(p, element(shape), nullptr) : take_forward(p, element(shape), nullptr, false);
}

cudaError_t gated_delta_forward(const DeltaShape& shape, const DeltaInputs& in, const DeltaOutputs& out, void* kept,
                                void* scratch, cudaStream_t stream) {
  if (!supported(shape)) return cudaErrorInvalidValue;
  Problem p = sizes(shape);
  if (!p.pairs || !p.chunks) return copy_state(p, out.state, in.state, stream);
  take_inputs(p, in, element(shape));
  take_forward(p, element(shape), kept ? kept : scratch, kept != nullptr);
  p.out = view(out.out, element(shape));
  p.final_state = out.state;
  const bool bf16 = bf16_operands(shape);
  p.stages = stages(bf16, p, true);
  if (const cudaError_t e = launch_prepare(p, bf16, stream); e != cudaSuccess) return e;
  if (p.segments.count > 1) {
    if (const cudaError_t e = launch_forward(first_forward(p, bf16), bf16, stream); e != cudaSuccess) return e;
    if (const cudaError_t e = launch_join(join_of(p, p.state, p.starts), false, stream); e != cudaSuccess) return e;
    p.state = p.starts;
  }
  return launch_forward(p, bf16, stream);
}

cudaError_t gated_delta_backward(const DeltaShape& shape, const DeltaInputs& in, const DeltaGradients& grad, void* kept,
                                 void* scratch, cudaStream_t stream) {
  if (!supported(shape)) return cudaErrorInvalidValue;
  Problem p = sizes(shape);
  if (!p.pairs || !p.chunks) return copy_state(p, grad.d_state, grad.d_final_state, stream);
  const bool bf16 = bf16_operands(shape);
  take_inputs(p, in, element(shape));
  take_forward(p, element(shape), kept, true);
  take_backward(p, element(shape), scratch);
  p.d_out = view(grad.d_out, element(shape));
  p.dq = view(grad.dq, element(shape)), p.dk = view(grad.dk, element(shape)), p.dv = view(grad.dv, element(shape));
  p.dbeta = view(grad.dbeta, sizeof(float)), p.dg = view(grad.dg, sizeof(float));
  p.d_final_state = grad.d_final_state, p.d_state = grad.d_state;
  p.stages = stages(bf16, p, false);
  if (p.segments.count > 1) {
    if (const cudaError_t e = launch_backward(first_backward(p), bf16, stream); e != cudaSuccess) return e;
    if (const cudaError_t e = launch_join(join_of(p, p.d_final_state, p.d_ends), true, stream); e != cudaSuccess)
      return e;
    p.d_final_state = p.d_ends;
  }
  if (const cudaError_t e = launch_backward(p, bf16, stream); e != cudaSuccess) return e;
  if (const cudaError_t e = launch_gradients(p, bf16, stream); e != cudaSuccess) return e;
  const dim3 grid(p.pairs * p.chunks);
  if (p.slices > 1) {
    if (const cudaError_t e = launch(add_parts, grid, kRows, 0, stream, p, p.dbeta_slices, p.slices, p.dbeta, p.n);
        e != cudaSuccess) {
      return e;
    }
  }
  if (p.parts > 1 && p.g.data) return launch(add_parts, grid, kRows, 0, stream, p, p.dg_parts, p.parts, p.dg, 1);
  return cudaSuccess;
}

}  // namespace sb::cuda
