#include "kernels/fused.h"

#include "base/error.h"
#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/dropout_stream.h"
#include "kernels/operations.h"

namespace sb {

using at::Tensor;

namespace {

void check_norm(const char* name, const Tensor& x, const Tensor& gain, const Tensor& gate) {
  if (x.dim() == 0) throw bad_input(name, "x, expected at least one axis, got a scalar");
  if (gain.defined() && gain.sizes() != at::IntArrayRef{x.size(-1)})
    throw bad_input(name,
                    "gain, expected " + c10::str(x.sizes().slice(x.dim() - 1)) + ", got " + c10::str(gain.sizes()));
  if (gate.defined() && gate.sizes() != x.sizes())
    throw bad_input(name, "gate, expected " + c10::str(x.sizes()) + ", got " + c10::str(gate.sizes()));
}

Tensor normed(const char* name, const op::RowNorm& op, const Tensor& x, const Tensor& gain, const Tensor& gate) {
  check_norm(name, x, gain, gate);
  return kernels::run(op, {x, gain, gate})[0];
}

void check_steps(const char* name, const Tensor& x, const Tensor& bias, const Tensor& A_log) {
  for (const Tensor& w : {bias, A_log})
    if (x.dim() == 0 || w.sizes() != at::IntArrayRef{x.size(-1)})
      throw bad_input(
          name, "bias and A_log, expected the last axis of " + c10::str(x.sizes()) + ", got " + c10::str(w.sizes()));
}

void check_rate(const char* name, double p) {
  if (!(p >= 0 && p < 1)) throw bad_input(name, "p, expected 0 <= p < 1, got " + std::to_string(p));
}

// Checks the limits of the generator's counters. Returns the samples as a contiguous tensor.
DropoutKey checked_key(const char* name, const Tensor& x, const DropoutKey& key) {
  kernels::check_shape(name, "x with dropout", x, {-1, -1, -1});
  kernels::check_shape(name, "update", key.update, {1});
  kernels::check_shape(name, "samples", key.samples, {x.size(0)});
  for (const Tensor& integers : {key.update, key.samples})
    if (integers.scalar_type() != at::kLong || integers.device() != x.device())
      throw bad_input(name, c10::str("update and samples, expected int64 on ", x.device(), ", got ",
                                     integers.scalar_type(), " on ", integers.device()));
  const auto most = [&](const char* what, int64_t number, int64_t bound) {
    if (number > bound)
      throw bad_input(name, c10::str(what, " under dropout, expected at most ", bound, ", got ", number));
  };
  most("frames", x.size(1), kDropoutFrames);
  most("channels", x.size(2), kDropoutChannels);
  most("the place", key.place, kDropoutPlaces - 1);
  DropoutKey out = key;
  out.samples = key.samples.contiguous();
  return out;
}

}  // namespace

Tensor conv4(const Tensor& x, const Tensor& weight, const Tensor& bias, bool silu, const Tensor& tail) {
  kernels::check_shape("conv4", "x", x, {-1, -1, -1});
  const int64_t C = x.size(2);
  kernels::check_shape("conv4", "weight", weight, {C, 1, 4});
  if (bias.defined()) kernels::check_shape("conv4", "bias", bias, {C});
  if (tail.defined()) kernels::check_shape("conv4", "tail", tail, {x.size(0), 3, C});
  return kernels::run(op::Conv4{silu}, {x, weight, bias, tail})[0];
}

std::vector<Tensor> token_shift(const Tensor& x, const Tensor& last, const std::vector<Tensor>& mu) {
  kernels::check_shape("token_shift", "x", x, {-1, -1, -1});
  const int64_t C = x.size(2);
  if (last.defined()) kernels::check_shape("token_shift", "last", last, {x.size(0), 1, C});
  kernels::Tensors in{x, last};
  for (const Tensor& each : mu) {
    kernels::check_shape("token_shift", "mu", each, {1, 1, C});
    in.push_back(each);
  }
  return kernels::run(op::TokenShift{}, in);
}

Rwkv7Operands rwkv7_keys(const Tensor& decay, const Tensor& rate, const Tensor& key, const Tensor& key_scale,
                         const Tensor& key_rate, int64_t heads) {
  const char* here = "rwkv7_keys";
  kernels::check_shape(here, "key", key, {-1, -1, -1});
  const int64_t d = key.size(2);
  if (heads < 1 || d % heads != 0)
    throw bad_input(here, "heads, expected a divisor of " + std::to_string(d) + ", got " + std::to_string(heads));
  kernels::check_shape(here, "decay", decay, {key.size(0), key.size(1), d});
  kernels::check_shape(here, "rate", rate, {key.size(0), key.size(1), d});
  kernels::check_shape(here, "key_scale", key_scale, {d});
  kernels::check_shape(here, "key_rate", key_rate, {d});
  const auto out = kernels::run(op::Rwkv7Keys{heads}, {decay, rate, key, key_scale, key_rate});
  return {out[0], out[1], out[2], out[3]};
}
Tensor rwkv7_read(const Tensor& o, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& bonus,
                  const Tensor& gain, const Tensor& bias, const Tensor& gate, double eps) {
  const char* here = "rwkv7_read";
  kernels::check_shape(here, "o", o, {-1, -1, -1, -1});
  const int64_t B = o.size(0), T = o.size(1), h = o.size(2), K = o.size(3);
  kernels::check_shape(here, "r", r, {B, T, h, K});
  kernels::check_shape(here, "k", k, {B, T, h, K});
  kernels::check_shape(here, "v", v, {B, T, h, K});
  kernels::check_shape(here, "bonus", bonus, {h, K});
  kernels::check_shape(here, "gain", gain, {h * K});
  kernels::check_shape(here, "bias", bias, {h * K});
  kernels::check_shape(here, "gate", gate, {B, T, h * K});
  return kernels::run(op::Rwkv7Read{eps}, {o, r, k, v, bonus, gain, bias, gate})[0];
}

Hgrn2Operands hgrn2_keys(const Tensor& query, const Tensor& forget) {
  if (query.sizes() != forget.sizes())
    throw bad_input("hgrn2_keys", c10::str("forget, expected ", query.sizes(), ", got ", forget.sizes()));
  const auto out = kernels::run(op::Hgrn2Keys{}, {query, forget});
  return {out[0], out[1], out[2]};
}

Tensor mlstm_read(const Tensor& read, const Tensor& m, const Tensor& gain, const Tensor& gate) {
  const char* here = "mlstm_read";
  kernels::check_shape(here, "read", read, {-1, -1, -1, -1});
  const int64_t B = read.size(0), T = read.size(1), h = read.size(2);
  kernels::check_shape(here, "m", m, {B, T, h});
  kernels::check_shape(here, "gain", gain, {-1});
  const int64_t all = gain.size(0);
  if (h == 0 || all == 0 || all % h != 0 || all / h >= read.size(3))
    throw bad_input(here,
                    c10::str("gain, expected V of each of ", h, " heads, 1 <= V < ", read.size(3), ", got ", all));
  if (gate.defined()) kernels::check_shape(here, "gate", gate, {B, T, all});
  return kernels::run(op::MlstmRead{}, {read, m.detach(), gain, gate})[0];
}

Mamba3Gates mamba3_gates(const Tensor& dt, const Tensor& rate, const Tensor& trap, const Tensor& bias) {
  const char* here = "mamba3_gates";
  kernels::check_shape(here, "dt", dt, {-1, -1, -1});
  kernels::check_shape(here, "rate", rate, {dt.size(0), dt.size(1), dt.size(2)});
  kernels::check_shape(here, "trap", trap, {dt.size(0), dt.size(1), dt.size(2)});
  kernels::check_shape(here, "bias", bias, {dt.size(2)});
  const auto out = kernels::run(op::Mamba3Gates{}, {dt, rate, trap, bias});
  return {out[0], out[1], out[2], out[3]};
}
Mamba3Keys mamba3_keys(const Mamba3Projections& x, const Tensor& turn, const Tensor& step, const Tensor& angle) {
  const char* here = "mamba3_keys";
  kernels::check_shape(here, "key", x.key, {-1, -1, -1});
  const int64_t B = x.key.size(0), T = x.key.size(1), N = x.key.size(2);
  kernels::check_shape(here, "query", x.query, {B, T, N});
  kernels::check_shape(here, "step", step, {B, T, -1});
  kernels::check_shape(here, "turn", turn, {B, T, -1});
  const int64_t H = step.size(2), A = turn.size(2);
  if (2 * A > N)
    throw bad_input(here, "angles, expected at most " + std::to_string(N / 2) + ", got " + std::to_string(A));
  if (T == 0) throw bad_input(here, "frames, expected at least 1, got 0");
  kernels::check_shape(here, "key_gain", x.key_gain, {N});
  kernels::check_shape(here, "query_gain", x.query_gain, {N});
  kernels::check_shape(here, "key_bias", x.key_bias, {H, N});
  kernels::check_shape(here, "query_bias", x.query_bias, {H, N});
  if (angle.defined()) kernels::check_shape(here, "angle", angle, {B, H, A});
  const auto out = kernels::run(
      op::Mamba3Keys{}, {x.key, x.query, x.key_gain, x.query_gain, x.key_bias, x.query_bias, turn, step, angle});
  return {out[0], out[1], out[2]};
}
std::pair<Tensor, Tensor> rotated_keys(const Tensor& key, const Tensor& query, const Tensor& key_bias,
                                       const Tensor& query_bias, const Tensor& angle) {
  const char* here = "rotated_keys";
  kernels::check_shape(here, "key", key, {-1, -1, -1});
  const int64_t B = key.size(0), T = key.size(1), N = key.size(2);
  kernels::check_shape(here, "query", query, {B, T, N});
  kernels::check_shape(here, "angle", angle, {B, T, -1, -1});
  kernels::check_shape(here, "key_bias", key_bias, {angle.size(2), N});
  kernels::check_shape(here, "query_bias", query_bias, {angle.size(2), N});
  if (2 * angle.size(3) > N)
    throw bad_input(here,
                    "angles, expected at most " + std::to_string(N / 2) + ", got " + std::to_string(angle.size(3)));
  kernels::check_alike(here, key, {query});
  kernels::check_alike(here, key, {key_bias, query_bias}, true);
  if (angle.scalar_type() != at::kDouble || angle.device() != key.device())
    throw bad_input(here, c10::str("angle, expected double on ", key.device(), ", got ", angle.scalar_type(), " on ",
                                   angle.device()));
  const auto out = kernels::run(op::RotatedKeys{}, {key, query, key_bias, query_bias, angle});
  return {out[0], out[1]};
}
Tensor own_write(const Tensor& read, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& here,
                 const Tensor& skip, double scale) {
  const char* where = "own_write";
  kernels::check_shape(where, "v", v, {-1, -1, -1, -1});
  const int64_t B = v.size(0), T = v.size(1), H = v.size(2);
  kernels::check_shape(where, "read", read, {B, T, H, v.size(3)});
  kernels::check_shape(where, "q", q, {B, T, H, -1});
  kernels::check_shape(where, "k", k, {B, T, H, q.size(3)});
  kernels::check_shape(where, "here", here, {B, T, H});
  if (skip.defined()) kernels::check_shape(where, "skip", skip, {H});
  kernels::check_alike(where, v, {read, q, k});
  kernels::check_alike(where, v, {here, skip}, /*float32_too=*/true);
  return kernels::run(op::OwnWrite{scale}, {read, q, k, v, here, skip})[0];
}
Tensor rotate_pairs(const Tensor& x, const Tensor& theta) {
  const int64_t pairs = theta.size(-1), rest = x.size(-1) - 2 * pairs;
  const auto turned = x.narrow(-1, 0, 2 * pairs).unflatten(-1, {pairs, 2});
  const auto cos = theta.cos().to(x.scalar_type()), sin = theta.sin().to(x.scalar_type());
  const auto a = turned.select(-1, 0), b = turned.select(-1, 1);
  return at::cat({at::stack({a * cos - b * sin, a * sin + b * cos}, -1).flatten(-2), x.narrow(-1, 2 * pairs, rest)},
                 -1);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  return normed("rms_norm", {Norm::rms, NormGate::none, eps}, x, gain, {});
}
Tensor rms_norm_then_gate(const Tensor& x, const Tensor& gain, const Tensor& gate, double eps) {
  return normed("rms_norm_then_gate", {Norm::rms, NormGate::after, eps}, x, gain, gate);
}
Tensor rms_norm_then_sigmoid(const Tensor& x, const Tensor& gain, const Tensor& gate, double eps) {
  check_norm("rms_norm_then_sigmoid", x, gain, gate);
  return kernels::run(op::SigmoidNorm{eps}, {x, gain, gate})[0];
}
Tensor gate_then_rms_norm(const Tensor& x, const Tensor& gain, const Tensor& gate, double eps) {
  return normed("gate_then_rms_norm", {Norm::rms, NormGate::before, eps}, x, gain, gate);
}
Tensor rms_norm_outer_eps(const Tensor& x, const Tensor& gain, double eps) {
  return normed("rms_norm_outer_eps", {Norm::outer_eps, NormGate::none, eps}, x, gain, {});
}
Tensor l2_normalise(const Tensor& x) {
  return normed("l2_normalise", {Norm::l2, NormGate::none, 1e-6}, x, {}, {});
}

Tensor gate_silu(const Tensor& y, const Tensor& z) {
  if (y.sizes() != z.sizes())
    throw bad_input("gate_silu", "gate, expected " + c10::str(y.sizes()) + ", got " + c10::str(z.sizes()));
  return kernels::run(op::GateSilu{}, {y, z})[0];
}
Tensor gate_sigmoid(const Tensor& y, const Tensor& z, double scale) {
  if (y.sizes() != z.sizes())
    throw bad_input("gate_sigmoid", "gate, expected " + c10::str(y.sizes()) + ", got " + c10::str(z.sizes()));
  return kernels::run(op::GateSigmoid{scale}, {y, z})[0];
}
Tensor gate_swish(const Tensor& ab, const Tensor& beta) {
  if (ab.dim() == 0 || ab.size(-1) % 2 != 0)
    throw bad_input("gate_swish", "ab, expected an even last axis, got " + c10::str(ab.sizes()));
  if (beta.numel() != 1) throw bad_input("gate_swish", "beta, expected one element, got " + c10::str(beta.sizes()));
  return kernels::run(op::GateSwish{}, {ab, beta})[0];
}
Tensor softplus_bias(const Tensor& x, const Tensor& bias) {
  if (x.dim() == 0 || bias.sizes() != at::IntArrayRef{x.size(-1)})
    throw bad_input("softplus_bias",
                    "bias, expected the last axis of " + c10::str(x.sizes()) + ", got " + c10::str(bias.sizes()));
  return kernels::run(op::SoftplusBias{}, {x, bias})[0];
}
Tensor softplus_decay(const Tensor& x, const Tensor& bias, const Tensor& A_log) {
  check_steps("softplus_decay", x, bias, A_log);
  return kernels::run(op::SoftplusDecay{}, {x, bias, A_log})[0];
}
StepAndDecay softplus_gates(const Tensor& x, const Tensor& bias, const Tensor& A_log) {
  check_steps("softplus_gates", x, bias, A_log);
  const auto out = kernels::run(op::SoftplusGates{}, {x, bias, A_log});
  return {out[0], out[1]};
}
Tensor scale_heads(const Tensor& x, const Tensor& w) {
  if (x.dim() < 2 || w.sizes() != x.sizes().slice(0, x.dim() - 1))
    throw bad_input("scale_heads", c10::str("w, expected all axes but the last of ", x.sizes(), ", got ", w.sizes()));
  return kernels::run(op::ScaleHeads{}, {x, w})[0];
}
DeltaKeys delta_keys(const Tensor& k, const Tensor& w) {
  if (k.dim() < 2 || w.sizes() != k.sizes().slice(0, k.dim() - 1))
    throw bad_input("delta_keys", c10::str("w, expected all axes but the last of ", k.sizes(), ", got ", w.sizes()));
  const auto out = kernels::run(op::DeltaKeys{}, {k, w});
  return {out[0], out[1]};
}
Tensor skip_then_gate_then_rms_norm(const Tensor& read, const Tensor& x, const Tensor& skip, const Tensor& gain,
                                    const Tensor& gate, double eps) {
  const char* here = "skip_then_gate_then_rms_norm";
  if (x.dim() < 2 || read.sizes() != x.sizes())
    throw bad_input(here, c10::str("read and x, expected [...,H,P] both, got ", read.sizes(), " and ", x.sizes()));
  kernels::check_shape(here, "skip", skip, {x.size(-2)});
  check_norm(here, x.flatten(-2), gain, gate);
  return kernels::run(op::SkipNorm{eps}, {read, x, skip, gain, gate})[0];
}
Tensor log_sigmoid(const Tensor& x, double scale) {
  return kernels::run(op::LogSigmoid{scale}, {x})[0];
}
Tensor sigmoid_gate(const Tensor& x, double scale) {
  return kernels::run(op::SigmoidGate{scale}, {x})[0];
}

Tensor residual_layer_norm(const Tensor& z, const Tensor& residual, const Tensor& gain, const Tensor& bias, double p,
                           const std::optional<DropoutKey>& key) {
  const char* here = "residual_layer_norm";
  check_rate(here, p);
  if (z.dim() == 0 || z.size(-1) == 0 || z.sizes() != residual.sizes())
    throw bad_input(here, "residual, expected " + c10::str(z.sizes()) + ", got " + c10::str(residual.sizes()));
  for (const Tensor& w : {gain, bias})
    if (w.sizes() != at::IntArrayRef{z.size(-1)})
      throw bad_input(here, c10::str("gain and bias, expected [", z.size(-1), "], got ", w.sizes()));
  op::ResidualLayerNorm op{0, std::nullopt};
  if (key && p > 0) op = {p, checked_key(here, z, *key)};
  return kernels::run(op, {z, residual, gain, bias})[0];
}

Tensor dropout(const Tensor& x, double p, const std::optional<DropoutKey>& key, bool tied_over_time) {
  check_rate("dropout", p);
  if (!key || p == 0) return x;
  return kernels::run(op::Dropout{p, checked_key("dropout", x, *key), tied_over_time}, {x})[0];
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t offset) {
  const char* here = "causal_attention";
  if (q.dim() != 4) throw bad_input(here, "q, expected [B,T,h,K], got " + c10::str(q.sizes()));
  if (offset < 0) throw bad_input(here, "offset, expected >= 0, got " + std::to_string(offset));
  const std::vector<int64_t> expected{q.size(0), q.size(1) + offset, q.size(2), q.size(3)};
  for (const Tensor& x : {k, v})
    if (x.sizes() != at::IntArrayRef(expected))
      throw bad_input(here, c10::str("k and v, expected ", at::IntArrayRef(expected), ", got ", x.sizes()));
  return kernels::run(op::CausalAttention{offset}, {q, k, v})[0];
}

Tensor forgetting_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g, int64_t offset) {
  const char* here = "forgetting_attention";
  if (offset < 0) throw bad_input(here, "offset, expected >= 0, got " + std::to_string(offset));
  kernels::check_shape(here, "q", q, {-1, -1, -1, -1});
  const int64_t B = q.size(0), frames = q.size(1) + offset, h = q.size(2);
  kernels::check_shape(here, "k", k, {B, frames, h, q.size(3)});
  kernels::check_shape(here, "v", v, {B, frames, h, q.size(3)});
  kernels::check_shape(here, "g", g, {B, frames, h});
  kernels::check_alike(here, q, {k, v});
  kernels::check_alike(here, q, {g}, true);
  return kernels::run(op::ForgettingAttention{offset}, {q, k, v, g})[0];
}

Tensor rope(const Tensor& x, double base, int sense, int64_t offset) {
  if (x.dim() != 4 || x.size(3) % 2 != 0)
    throw bad_input("rope", "x, expected [B,T,h,K] with even K, got " + c10::str(x.sizes()));
  if (sense != 1 && sense != -1) throw bad_input("rope", "sense, expected 1 or -1, got " + std::to_string(sense));
  return kernels::run(op::Rope{base, sense, offset}, {x})[0];
}

Tensor decoder_cross_entropy(const Tensor& h, const Tensor& weight, const Tensor& bias, const Tensor& target,
                             const Tensor& normaliser, const Tensor& copy) {
  const char* here = "decoder_cross_entropy";
  if (h.dim() != 2 || weight.dim() != 2 || h.size(1) != weight.size(1))
    throw bad_input(here, c10::str("h [rows,d] and weight [C,d], got ", h.sizes(), " and ", weight.sizes()));
  if (bias.sizes() != at::IntArrayRef{weight.size(0)})
    throw bad_input(here, c10::str("bias, expected [", weight.size(0), "], got ", bias.sizes()));
  if (target.sizes() != at::IntArrayRef{h.size(0)} || target.scalar_type() != at::kLong)
    throw bad_input(here, c10::str("target, expected int64 [", h.size(0), "], got ", target.sizes()));
  if (copy.defined()) kernels::check_shape(here, "copy", copy, {weight.size(0), weight.size(1)});
  if (normaliser.defined() && normaliser.numel() != 1)
    throw bad_input(here, c10::str("normaliser, expected one element, got ", normaliser.sizes()));
  const Tensor divisor = (normaliser.defined() ? normaliser.detach().reshape({1}) : target.ge(0).sum().reshape({1}))
                             .to(h.device(), at::kDouble);
  return kernels::run(op::DecoderCrossEntropy{}, {h, weight, bias, target, divisor, copy})[0];
}

}  // namespace sb
