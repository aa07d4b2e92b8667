// The functions of fused.h in plain ATen operations, differentiable by autograd: the truth of their tests, the baseline
// of `bench kernels`, and what tensors of another device or type run.
#pragma once
#include "kernels/fused.h"

namespace sb::plain {

// Radians a position of pair j under rope: 1 / base^{j/half}, each operation rounded to float as peers' tables are, so
// that their weights meet the angles they were trained with.
double rope_rate(double base, int64_t j, int64_t half);

at::Tensor conv4(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool silu,
                 const at::Tensor& tail = {});
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);
at::Tensor rms_norm_then_gate(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& gate, double eps);
at::Tensor gate_then_rms_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& gate, double eps);
at::Tensor rms_norm_outer_eps(const at::Tensor& x, const at::Tensor& gain, double eps = 1e-8);
at::Tensor l2_normalise(const at::Tensor& x);
at::Tensor gate_silu(const at::Tensor& y, const at::Tensor& z);
at::Tensor gate_swish(const at::Tensor& ab, const at::Tensor& beta);
at::Tensor softplus_bias(const at::Tensor& x, const at::Tensor& bias);
at::Tensor log_sigmoid(const at::Tensor& x, double scale);
// 0 where an element is dropped, 1 / (1 - p) elsewhere; shape of x, or [B,1,C] when tied over time. In operations on
// tensors, so that any device makes the masks; on the CPU by our kernel.
at::Tensor dropout_scale(const at::Tensor& x, double p, const DropoutKey& key, bool tied_over_time);
at::Tensor dropout_scale_in_operations(const at::Tensor& x, double p, const DropoutKey& key, bool tied_over_time);
at::Tensor residual_layer_norm(const at::Tensor& z, const at::Tensor& residual, const at::Tensor& gain,
                               const at::Tensor& bias, double p, const std::optional<DropoutKey>& key);
at::Tensor dropout(const at::Tensor& x, double p, const std::optional<DropoutKey>& key, bool tied_over_time = false);
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t offset = 0);
at::Tensor rope(const at::Tensor& x, double base, int sense, int64_t offset = 0);
at::Tensor decoder_cross_entropy(const at::Tensor& h, const at::Tensor& weight, const at::Tensor& bias,
                                 const at::Tensor& target, double normaliser = 0);

}  // namespace sb::plain
