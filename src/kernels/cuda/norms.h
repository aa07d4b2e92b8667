// Norms over rows on CUDA, without torch, with or without a gate:
//   y = gain s u,  u = x, or u = x silu(z) for NormGate::before;  y is multiplied by silu(z) for NormGate::after, by
//   sigma(z) for NormGate::sigmoid
//   with a skip (only for NormGate::before): u = (x + D w) silu(z), D one factor per head; Mamba2's read-out
//   rms: s = 1 / sqrt(mean(u^2) + eps)   outer_eps: 1 / (sqrt(mean(u^2)) + eps)   l2: 1 / sqrt(sum(u^2) + eps)
// x, z, y [tokens, heads, width]; gain [width]. The backward pass needs only x and z:
//   t = gain gy (times the gate that comes after);  du = s t - c u (t . u),  c = -ds/d(sum of squares) 2 / s
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

inline constexpr int kMaxNormWidth = 6144;

enum class NormKind { rms, outer_eps, l2 };
enum class NormGate { none, after, before, sigmoid };

struct RowNorm {
  int64_t tokens = 0;
  int heads = 1, width = 0;  // width <= kMaxNormWidth
  Element element = Element::bf16;
  NormKind kind = NormKind::rms;
  NormGate gate = NormGate::none;
  float eps = 1e-5f;
  const float* gain = nullptr;  // null: ones
  RowsIn x, z;                  // z: the gate's input
  // Only for l2 without gain or gate: the rows' scales s, [tokens, heads]. Forward writes them. If backward gets them,
  // its `x` must be forward's output y, so that the caller need not keep x. Null: not written, and backward's `x` is x.
  float* scales = nullptr;
  // Skip connection, only for NormGate::before: w has the shape of x, skip is D [width / skip_width], skip_width >= 8.
  // Null: no skip.
  RowsIn w;
  const float* skip = nullptr;
  int skip_width = 0;
};

cudaError_t row_norm_forward(const RowNorm& p, const RowsOut& y, cudaStream_t stream);

// The scratch memory must be aligned to 16 bytes.
size_t row_norm_scratch_bytes(const RowNorm& p);
// dz is used only with a gate; d_gain may be null. With a skip, dx is the gradient of x + D w, from which head_scale.h
// computes the gradients of D and w. Deterministic.
cudaError_t row_norm_backward(const RowNorm& p, const RowsIn& gy, const RowsOut& dx, const RowsOut& dz, float* d_gain,
                              void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
