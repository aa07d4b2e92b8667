// Pieces the mixers share. Differentiable in every tensor; sums run in an order that no thread count changes.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "kernels/gradient_place.h"
#include "kernels/matmul.h"
#include "kernels/recurrence.h"
#include "models/mixer.h"

namespace sb {

// x W^T + b with a parameter's value, or its copy in bfloat16 where the network has one; the bias may be null or empty.
at::Tensor project(const at::Tensor& x, Param weight, Param bias = nullptr);
at::Tensor project(const at::Tensor& x, const Joined& weight, const Joined& bias = {}, const Padding& padding = {});
inline at::Tensor project(const at::Tensor& x, Param weight, const Padding& padding) {
  return project(x, Joined(weight), {}, padding);
}

// x in float where it is in a half precision: gates, decays and states keep their digits.
at::Tensor wide(const at::Tensor& x);
at::ScalarType wide_type(const at::Tensor& x);

// Gain and eps with which rms_norm over padded rows gives what it gives over the real ones: zeros add nothing to the
// sum of squares, only its mean is taken over more.
struct PaddedNorm {
  PaddedNorm(Param real_gain, const PaddedRows& row, double real_eps);
  at::Tensor gain;
  double eps;
};

// [B,T,n c] -> [B,T,n,c], no copy
at::Tensor heads_of(const at::Tensor& x, int64_t heads);
// [B,T,n,c] -> [B,T,n c]
at::Tensor flat_heads(const at::Tensor& x);

// conv4(x), or silu of it, with the window carried in a slot.
enum class Activation { none, silu };
at::Tensor carried_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Context& context,
                        Activation activation, const std::string& slot = "conv");
// silu(conv4(x)), carried; without a convolution (weight undefined) silu(x).
at::Tensor short_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Context& context,
                      const std::string& slot = "conv");

// A log-decay no smaller than ln a_min (a_min 0: as it is).
at::Tensor bounded_below(const at::Tensor& log_decay, double a_min);

// The recurrences with their state carried in slot "state"; one frame without gradients runs the one-step form.
at::Tensor carried_selective_scan(const Context& context, const at::Tensor& x, const at::Tensor& delta,
                                  const at::Tensor& A_log, const at::Tensor& B, const at::Tensor& C,
                                  const at::Tensor& skip, const at::Tensor& write, double a_min);
at::Tensor carried_attention(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& g, double scale);
at::Tensor carried_delta_rule(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& beta, const at::Tensor& g, double scale);

}  // namespace sb
