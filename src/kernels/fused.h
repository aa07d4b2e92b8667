// Fused elementwise and row-wise operations around the recurrences; each reads and writes memory once. All functions
// are differentiable in every tensor argument. aten/ has the same formulas in ATen operations: the reference for the
// kernels, and the implementation for devices without a kernel. The first tensor selects the implementation
// (backend.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace sb {

// Causal convolution over 4 frames: y_t[c] = act(b[c] + sum_{i=0..3} w[c,i] x_{t-3+i}[c]), act = silu or identity.
// x [B,T,C] (may be a slice of a wider tensor along the last axis), weight [C,1,4], bias [C] or undefined. `tail`
// [B,3,C] holds the three inputs before t = 0 (undefined: zeros).
at::Tensor conv4(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool silu,
                 const at::Tensor& tail = {});

// Inputs mixed with the frame before: x_t + mu (x_{t-1} - x_t), one tensor for every mu [1,1,C]; x [B,T,C]. `last`
// [B,1,C] is the frame before t = 0 (undefined: zeros). The token shift of RWKV.
std::vector<at::Tensor> token_shift(const at::Tensor& x, const at::Tensor& last, const std::vector<at::Tensor>& mu);

// Operands of RWKV-7's recurrence [B,T,h,K] from projections [B,T,h K] and parameters [h K]: a = sigma(rate),
// g = -e^{-1/2} sigma(decay) (float32 if key has a half-precision type), k = key (1 + (a - 1) key_rate),
// erase = u / max(|u|, 1e-12) per head with u = key key_scale, write = a erase.
struct Rwkv7Operands {
  at::Tensor g, k, erase, write;
};
Rwkv7Operands rwkv7_keys(const at::Tensor& decay, const at::Tensor& rate, const at::Tensor& key,
                         const at::Tensor& key_scale, const at::Tensor& key_rate, int64_t heads);
// RWKV-7's read-out: (norm(o) gain + bias + (sum_K r k bonus) v) gate. The norm subtracts the mean of a head and
// divides by its deviation. o, r, k, v [B,T,h,K]; bonus [h,K]; gain, bias [h K]; gate and result [B,T,h K].
at::Tensor rwkv7_read(const at::Tensor& o, const at::Tensor& r, const at::Tensor& k, const at::Tensor& v,
                      const at::Tensor& bonus, const at::Tensor& gain, const at::Tensor& bias, const at::Tensor& gate,
                      double eps);

// HGRN2's operands from two projections of one shape: q = silu(query), k = 1 - sigma(forget), g = ln sigma(forget)
// (float32 if the projections have a half-precision type).
struct Hgrn2Operands {
  at::Tensor q, k, g;
};
Hgrn2Operands hgrn2_keys(const at::Tensor& query, const at::Tensor& forget);

// mLSTM's read-out: norm(o / max(|n|, e^-m)) gain sigma(gate). `read` [B,T,h,W] has the V columns of o, then n; further
// columns are not used. The norm subtracts the mean of a head and divides by its deviation, eps 1e-6. m [B,T,h] is
// constant; gain [h V]; gate [B,T,h V] or undefined: no gate. Returns [B,T,h V].
at::Tensor mlstm_read(const at::Tensor& read, const at::Tensor& m, const at::Tensor& gain, const at::Tensor& gate);

// Mamba-3's gates [B,T,H], in float32 if dt has a half-precision type, from projections [B,T,H] and bias [H]:
// step = softplus(dt + bias), decay = -max(1e-4, f(rate)) step, here = sigma(trap) step,
// before = step - here; f(u) = 1 + u for u >= 0, else 1 / (1 - u).
struct Mamba3Gates {
  at::Tensor step, decay, here, before;
};
Mamba3Gates mamba3_gates(const at::Tensor& dt, const at::Tensor& rate, const at::Tensor& trap, const at::Tensor& bias);
// Mamba-3's keys and queries [B,T,H,N]: rms_norm(key) + key_bias, eps 1e-5, with pairs of channels (2j, 2j + 1) rotated
// by the angle theta_t = theta_{t-1} + pi tanh(turn_t) step_t, j < A; queries alike. key, query [B,T,N]; gains [N];
// biases [H,N]; turn [B,T,A], 2 A <= N; step [B,T,H]; angle [B,H,A] in double: before the first frame (undefined: 0),
// and after the last one.
struct Mamba3Keys {
  at::Tensor k, q, angle;
};
struct Mamba3Projections {
  at::Tensor key, query, key_gain, query_gain, key_bias, query_bias;
};
Mamba3Keys mamba3_keys(const Mamba3Projections& x, const at::Tensor& turn, const at::Tensor& step,
                       const at::Tensor& angle = {});
// Its last step: key + key_bias and query + query_bias [B,T,H,N], with pairs of channels rotated as above by `angle`
// [B,T,H,A] in double. key, query [B,T,N].
std::pair<at::Tensor, at::Tensor> rotated_keys(const at::Tensor& key, const at::Tensor& query,
                                               const at::Tensor& key_bias, const at::Tensor& query_bias,
                                               const at::Tensor& angle);
// read + (scale here (q . k) + skip) v: a reading of the frames before and what the frame itself writes. read, v
// [B,T,H,V]; q, k [B,T,H,K]; here [B,T,H]; skip [H] or undefined.
at::Tensor own_write(const at::Tensor& read, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& here, const at::Tensor& skip, double scale);
// Rotates the pairs (2j, 2j + 1) of the last axis of x [...,N] by the angles theta [...,n], j < n <= N/2.
at::Tensor rotate_pairs(const at::Tensor& x, const at::Tensor& theta);

// gain * x / sqrt(mean(x^2) + eps) over the last axis.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);
// rms_norm(x) * silu(gate), as in GLA, RetNet and the delta rules.
at::Tensor rms_norm_then_gate(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& gate, double eps);
// rms_norm(x) * sigma(gate): the read-out of KDA and Gated DeltaNet-2.
at::Tensor rms_norm_then_sigmoid(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& gate, double eps);
// rms_norm(x * silu(gate)), as in Mamba2.
at::Tensor gate_then_rms_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& gate, double eps);
// gain * x / (||x|| / sqrt(n) + eps), with eps outside the root, as in our Transformer.
at::Tensor rms_norm_outer_eps(const at::Tensor& x, const at::Tensor& gain, double eps = 1e-8);
// x / sqrt(sum(x^2) + 1e-6) over the last axis.
at::Tensor l2_normalise(const at::Tensor& x);
// y * silu(z)
at::Tensor gate_silu(const at::Tensor& y, const at::Tensor& z);
// scale y sigma(z): values and erase vectors of Gated DeltaNet-2
at::Tensor gate_sigmoid(const at::Tensor& y, const at::Tensor& z, double scale = 1);
// a sigma(beta a) * b. The last axis of ab [...,2n] holds a, then b. beta is a scalar tensor.
at::Tensor gate_swish(const at::Tensor& ab, const at::Tensor& beta);
// softplus(x + bias), bias over the last axis; returns x + bias where it exceeds 20.
at::Tensor softplus_bias(const at::Tensor& x, const at::Tensor& bias);
// -e^{A_log} softplus(x + bias), A_log and bias over the last axis: the log-decay of Mamba2 and the gated delta rules.
at::Tensor softplus_decay(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& A_log);
// softplus_bias and softplus_decay of the same x: Mamba2's step and log-decay.
struct StepAndDecay {
  at::Tensor step, decay;
};
StepAndDecay softplus_gates(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& A_log);
// w x with one factor per head: x [...,H,P], w [...,H]; the result has x's type. The values that Mamba2 writes.
at::Tensor scale_heads(const at::Tensor& x, const at::Tensor& w);
// The keys of a delta rule with one strength per head: erases by k, writes by w k (as scale_heads). On a GPU, one pass
// sums the gradients of both.
struct DeltaKeys {
  at::Tensor erase, key;
};
DeltaKeys delta_keys(const at::Tensor& k, const at::Tensor& w);
// rms_norm((read + skip x) * silu(gate)) over all heads: Mamba2's read-out. read, x [...,H,P]; skip [H], one factor per
// head; gain [H P]; gate and result [...,H P].
at::Tensor skip_then_gate_then_rms_norm(const at::Tensor& read, const at::Tensor& x, const at::Tensor& skip,
                                        const at::Tensor& gain, const at::Tensor& gate, double eps);
// scale * log(sigma(x)): the log-decay of GLA (scale 1/16).
at::Tensor log_sigmoid(const at::Tensor& x, double scale);
// scale * sigma(x), in float32 if x has a half-precision type: the write strength of the delta rules.
at::Tensor sigmoid_gate(const at::Tensor& x, double scale);

// Key of a dropout mask. Whether an element is dropped depends only on this key and on (sample, frame, channel), not on
// padding or on how a batch is split (dropout_stream.h). Update and samples may be on a device; the host does not read
// them there.
struct DropoutKey {
  uint64_t seed = 0;   // of the run
  uint32_t place = 0;  // identifies the dropout within the network; below 2^24
  at::Tensor update;   // [1] int64
  at::Tensor samples;  // [B] int64: index of each row's sample in the run
};
// LayerNorm(dropout(z) + residual), eps 1e-5. No dropout if the key is absent or p = 0; with dropout, z is [B,T,C].
at::Tensor residual_layer_norm(const at::Tensor& z, const at::Tensor& residual, const at::Tensor& gain,
                               const at::Tensor& bias, double p, const std::optional<DropoutKey>& key);
// Dropout, x [B,T,C]. `tied_over_time`: every frame uses the mask of frame 0, as in S4D.
at::Tensor dropout(const at::Tensor& x, double p, const std::optional<DropoutKey>& key, bool tied_over_time = false);

// Causal softmax attention with scale K^-1/2; q, k, v [B,T,h,K]. Never holds a [T,T] matrix. `offset`: number of keys
// before the first query; k and v then have T + offset frames.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t offset = 0);
// The same with decaying scores: adds the sum of the log-decays g [B,T+offset,h] of all frames after the key.
at::Tensor forgetting_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& g,
                                int64_t offset = 0);
// Rotary embedding of x [B,T,h,K] at positions offset..offset+T-1; x1 and x2 are the halves of the last axis. sense +1:
// y1 = x1 cos + x2 sin (Transformer); -1: y1 = x1 cos - x2 sin (RetNet).
at::Tensor rope(const at::Tensor& x, double base, int sense, int64_t offset = 0);
// Its angle per frame for each pair of channels, [half] double: cpu::rope_rate, on the device of `like`
at::Tensor rope_rates(double base, int64_t half, const at::TensorOptions& like);

// Decoder and loss in one operation: computes logits = h W^T + b in blocks of rows and discards them.
// h [rows,d]; weight [C,d]; bias [C]; target [rows] int64; rows with target < 0 are padding.
// Returns the sum of cross-entropies over the other rows, divided by `normaliser` (one element, on the device of h;
// undefined: the number of these rows). On the CPU, throws if a target is out of range or if the divisor is 0.
// `copy`: see project() in matmul.h.
at::Tensor decoder_cross_entropy(const at::Tensor& h, const at::Tensor& weight, const at::Tensor& bias,
                                 const at::Tensor& target, const at::Tensor& normaliser = {},
                                 const at::Tensor& copy = {});

}  // namespace sb
