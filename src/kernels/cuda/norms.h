// Norms over rows on CUDA, without torch, with or without a SiLU gate:
//   y = gain s u,  u = x, or x silu(z) where the gate comes before;  times silu(z) where it comes after
//   with a skip (gate before) u = (x + D w) silu(z), D one number a head: Mamba2's read-out
//   rms: s = 1 / sqrt(mean(u^2) + eps)   outer_eps: 1 / (sqrt(mean(u^2)) + eps)   l2: 1 / sqrt(sum(u^2) + eps)
// x, z, y [tokens, heads, width]; gain [width]. Nothing is kept for the backward pass but x and z:
//   t = gain gy (times silu(z) where the gate comes after);  du = s t - c u (t . u),  c = -ds/d(sum of squares) 2 / s
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

inline constexpr int kMostNormWidth = 6144;

enum class NormKind { rms, outer_eps, l2 };
enum class NormGate { none, after, before };

struct RowNorm {
  int64_t tokens = 0;
  int heads = 1, width = 0;  // width <= kMostNormWidth
  int padded = 0;            // columns of an output row from width to here are written as zeros
  Element element = Element::bf16;
  NormKind kind = NormKind::rms;
  NormGate gate = NormGate::none;
  float eps = 1e-5f;
  const float* gain = nullptr;  // null: ones
  RowsIn x, z;                  // z: the gate's input
  // l2 without gain or gate: the rows' factors, [tokens, heads]. Forward leaves them; a backward pass that is given
  // them takes what forward made for x, so that nobody has to keep x. Null: none are left, x is x.
  float* scales = nullptr;
  // A skip: w of x's shape, D [width / skip_width], skip_width >= 8; null: none. Only with the gate before.
  RowsIn w;
  const float* skip = nullptr;
  int skip_width = 0;
};

cudaError_t row_norm_forward(const RowNorm& p, const RowsOut& y, cudaStream_t stream);

// Bytes; 16-byte aligned
size_t row_norm_scratch_bytes(const RowNorm& p);
// dz with a gate; d_gain null: not wanted. With a skip dx is the gradient of x + D w, of which head_scale.h makes those
// of D and w. The same bytes on every run.
cudaError_t row_norm_backward(const RowNorm& p, const RowsIn& gy, const RowsOut& dx, const RowsOut& dz, float* d_gain,
                              void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
