// Building blocks shared by the mixers. All are differentiable in every tensor argument. The order of sums does not
// depend on the number of threads.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "kernels/gradient_place.h"
#include "kernels/matmul.h"
#include "kernels/recurrence.h"
#include "models/mixer.h"

namespace sb {

// x W^T + b. Uses the weight's bfloat16 copy (Parameter::copy) if there is one. The bias may be null or empty. Padding
// of rows also pads the bias.
at::Tensor project(const at::Tensor& x, Param weight, Param bias = nullptr);
at::Tensor project(const at::Tensor& x, const Joined& weight, const Joined& bias = {}, const Padding& padding = {});
inline at::Tensor project(const at::Tensor& x, Param weight, const Padding& padding) {
  return project(x, Joined(weight), {}, padding);
}

// Converts float16 and bfloat16 to float32, for gates, decays and states; returns other types unchanged.
at::Tensor wide(const at::Tensor& x);
at::ScalarType wide_type(const at::Tensor& x);

// Gain and eps for which rms_norm over zero-padded rows equals rms_norm over the unpadded rows. Zeros do not change the
// sum of squares, but the mean divides it by the padded width; gain and eps are scaled to compensate.
struct PaddedNorm {
  PaddedNorm(Param real_gain, const PaddedRows& row, double real_eps);
  at::Tensor gain;
  double eps;
};

// [B,T,n c] -> [B,T,n,c], no copy
at::Tensor heads_of(const at::Tensor& x, int64_t heads);
// [B,T,n,c] -> [B,T,n c]
at::Tensor flat_heads(const at::Tensor& x);

// rope() with sense 1 at these positions, [B,T] integers, instead of the frame numbers; x [B,T,h,K].
at::Tensor rope_at(const at::Tensor& x, double base, const at::Tensor& positions);

// conv4(x) or silu(conv4(x)). The last three inputs are carried in the given slot of the state.
enum class Activation { none, silu };
at::Tensor carried_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Context& context,
                        Activation activation, const std::string& slot = "conv");
// silu(conv4(x)) with carried inputs; silu(x) if the weight is undefined.
at::Tensor short_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Context& context,
                      const std::string& slot = "conv");

// ln(a_min + (1 - a_min) e^log_decay), which has a gradient everywhere; unchanged if a_min is 0.
at::Tensor bounded_below(const at::Tensor& log_decay, double a_min);

// The recurrences (kernels/recurrence.h) with their state carried in slot "state". A single frame without gradients
// uses the one-step form (kernels/step.h).
at::Tensor carried_selective_scan(const Context& context, const at::Tensor& x, const at::Tensor& delta,
                                  const at::Tensor& A_log, const at::Tensor& B, const at::Tensor& C,
                                  const at::Tensor& skip, const at::Tensor& write, double a_min);
at::Tensor carried_attention(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& g, double scale);
at::Tensor carried_delta_rule(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& beta, const at::Tensor& g, double scale);
at::Tensor carried_log_linear(const Context& context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& g, const at::Tensor& weights);
at::Tensor carried_general_delta(const Context& context, const DeltaOperands& x, double scale, EraseFrom from);

}  // namespace sb
