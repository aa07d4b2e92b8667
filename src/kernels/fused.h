// The elementwise and row-wise work around the recurrences, fused so that memory is read and written once. All
// functions are differentiable in every tensor argument. Their formulas in ATen operations (aten/) are what the kernels
// are held to and what devices without a kernel run; which one runs, the tensor decides (backend.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace sb {

// y_t[c] = act(b[c] + sum_{i=0..3} w[c,i] x_{t-3+i}[c]); x [B,T,C] (may be a strided slice of a wider tensor in the
// last dimension), weight [C,1,4], bias [C] or undefined. `tail` [B,3,C] holds the three inputs before t = 0
// (undefined: zeros).
at::Tensor conv4(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool silu,
                 const at::Tensor& tail = {});

// gain * x / sqrt(mean(x^2) + eps) over the last axis.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);
// rms_norm(x) * silu(gate): the order of GLA, RetNet and the delta family.
at::Tensor rms_norm_then_gate(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& gate, double eps);
// rms_norm(x * silu(gate)): the order of Mamba2.
at::Tensor gate_then_rms_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& gate, double eps);
// gain * x / (||x|| / sqrt(n) + eps): the Transformer's own norm, eps outside the root.
at::Tensor rms_norm_outer_eps(const at::Tensor& x, const at::Tensor& gain, double eps = 1e-8);
// x / sqrt(sum(x^2) + 1e-6) over the last axis.
at::Tensor l2_normalise(const at::Tensor& x);
// y * silu(z)
at::Tensor gate_silu(const at::Tensor& y, const at::Tensor& z);
// a sigma(beta a) * b, where ab [...,2n] holds a then b; beta a scalar tensor.
at::Tensor gate_swish(const at::Tensor& ab, const at::Tensor& beta);
// softplus(x + bias), bias over the last axis; the identity above 20.
at::Tensor softplus_bias(const at::Tensor& x, const at::Tensor& bias);
// -e^{A_log} softplus(x + bias): the log-decay of Mamba2 and the gated delta family; A_log, bias over the last axis.
at::Tensor softplus_decay(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& A_log);
// Both of one x: Mamba2's step and log-decay.
struct StepAndDecay {
  at::Tensor step, decay;
};
StepAndDecay softplus_gates(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& A_log);
// w x, a number a head: x [...,H,P], w [...,H]; the result has x's type. The values that Mamba2 writes.
at::Tensor scale_heads(const at::Tensor& x, const at::Tensor& w);
// rms_norm((read + skip x) * silu(gate)) over all heads: Mamba2's read-out. read, x [...,H,P], skip [H] a factor a
// head, gain [H P], gate and result [...,H P].
at::Tensor skip_then_gate_then_rms_norm(const at::Tensor& read, const at::Tensor& x, const at::Tensor& skip,
                                        const at::Tensor& gain, const at::Tensor& gate, double eps);
// scale * log(sigma(x)): the log-decay of GLA (scale 1/16).
at::Tensor log_sigmoid(const at::Tensor& x, double scale);
// scale * sigma(x), in float where x is in a half precision: the write strength of the delta rules.
at::Tensor sigmoid_gate(const at::Tensor& x, double scale);

// Dropout keyed by the counter-based generator: an element's fate depends on this and on (sample, frame, channel), so
// neither on padding nor on how a batch is cut. Update and samples may live on a device; nobody reads them on the host.
struct DropoutKey {
  uint64_t seed = 0;   // the run's
  uint32_t place = 0;  // in the network; below 2^24
  at::Tensor update;   // [1] int64
  at::Tensor samples;  // [B] int64: the numbers of the rows among all samples of the run
};
// LayerNorm(dropout(z) + residual), eps 1e-5; key absent or p = 0: no dropout. With dropout z is [B,T,C].
at::Tensor residual_layer_norm(const at::Tensor& z, const at::Tensor& residual, const at::Tensor& gain,
                               const at::Tensor& bias, double p, const std::optional<DropoutKey>& key);
// dropout alone, x [B,T,C] (Transformer's MLP; S4D with `tied_over_time`: every frame has the mask of frame 0).
at::Tensor dropout(const at::Tensor& x, double p, const std::optional<DropoutKey>& key, bool tied_over_time = false);

// Causal softmax attention; q, k, v [B,T,h,K]; scale K^-1/2; never holds [T,T]. `offset`: keys before the first query
// (k, v then have T + offset rows).
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t offset = 0);
// Rotary embedding by halves, x [B,T,h,K], positions offset..offset+T-1. sense +1: y1 = x1 cos + x2 sin (Transformer);
// -1: y1 = x1 cos - x2 sin (RetNet).
at::Tensor rope(const at::Tensor& x, double base, int sense, int64_t offset = 0);

// Decoder and loss in one: logits = h W^T + b are formed in row blocks and dropped.
// h [rows,d]; weight [C,d]; bias [C]; target [rows] int64, rows with target < 0 are padding.
// Returns the sum of cross-entropies over real rows divided by `normaliser` (one element, on the device of h;
// undefined: their number). On the CPU targets out of range and targets that are all padding are refused. `copy` as
// project's (matmul.h).
at::Tensor decoder_cross_entropy(const at::Tensor& h, const at::Tensor& weight, const at::Tensor& bias,
                                 const at::Tensor& target, const at::Tensor& normaliser = {},
                                 const at::Tensor& copy = {});

}  // namespace sb
