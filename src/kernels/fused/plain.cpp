#include "kernels/plain.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "kernels/cpu/tensor_rows.h"
#include "kernels/fused/dropout_mask.h"

namespace sb::plain {

using at::Tensor;

Tensor conv4(const Tensor& x, const Tensor& weight, const Tensor& bias, bool silu, const Tensor& tail) {
  const int64_t time = x.size(1);
  const Tensor before = tail.defined() ? tail : at::zeros({x.size(0), 3, x.size(2)}, x.options());
  const Tensor row = at::cat({before, x}, 1);
  const Tensor w = weight.reshape({-1, 4});
  Tensor y = row.narrow(1, 3, time) * w.select(1, 3);
  for (int64_t i = 0; i < 3; ++i) y = y + row.narrow(1, i, time) * w.select(1, i);
  if (bias.defined()) y = y + bias;
  return silu ? at::silu(y) : y;
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  return gain * x * (x.square().mean(-1, true) + eps).rsqrt();
}
Tensor rms_norm_then_gate(const Tensor& x, const Tensor& gain, const Tensor& gate, double eps) {
  return rms_norm(x, gain, eps) * at::silu(gate);
}
Tensor gate_then_rms_norm(const Tensor& x, const Tensor& gain, const Tensor& gate, double eps) {
  return rms_norm(x * at::silu(gate), gain, eps);
}
Tensor rms_norm_outer_eps(const Tensor& x, const Tensor& gain, double eps) {
  const double root = std::sqrt(static_cast<double>(x.size(-1)));
  return gain * x / (x.norm(2, {-1}, true) / root + eps);
}
Tensor l2_normalise(const Tensor& x) {
  return x * (x.square().sum(-1, true) + 1e-6).rsqrt();
}

Tensor gate_silu(const Tensor& y, const Tensor& z) {
  return y * at::silu(z);
}
Tensor gate_swish(const Tensor& ab, const Tensor& beta) {
  const auto half = ab.chunk(2, -1);
  return half[0] * at::sigmoid(beta * half[0]) * half[1];
}
Tensor softplus_bias(const Tensor& x, const Tensor& bias) {
  return at::softplus(x + bias);
}
Tensor log_sigmoid(const Tensor& x, double scale) {
  return at::log_sigmoid(x) * scale;
}

namespace {

constexpr int64_t kWord = 0xffffffff;

// The 64-bit products of 32-bit words with a number, in two halves; words are int64 in 0 .. 2^32 - 1.
std::pair<Tensor, Tensor> product(const Tensor& words, uint32_t factor) {
  const Tensor whole = words * static_cast<int64_t>(factor);  // modulo 2^64
  return {at::bitwise_and(at::bitwise_right_shift(whole, 32), kWord), at::bitwise_and(whole, kWord)};
}

// Words 0 .. 3 of the blocks with these counters.
std::array<Tensor, 4> philox(std::array<Tensor, 4> c, uint64_t seed) {
  auto k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto [a_high, a_low] = product(c[0], kPhiloxFactor[0]);
    const auto [b_high, b_low] = product(c[2], kPhiloxFactor[1]);
    c = {at::bitwise_xor(at::bitwise_xor(b_high, c[1]), static_cast<int64_t>(k0)), b_low,
         at::bitwise_xor(at::bitwise_xor(a_high, c[3]), static_cast<int64_t>(k1)), a_low};
    k0 += kPhiloxKeyStep[0];
    k1 += kPhiloxKeyStep[1];
  }
  return c;
}

}  // namespace

Tensor dropout_scale_in_operations(const Tensor& x, double p, const DropoutKey& key, bool tied_over_time) {
  const int64_t batch = x.size(0), frames = tied_over_time ? 1 : x.size(1), channels = x.size(2);
  const auto integers = key.samples.options();
  const Tensor first = at::bitwise_left_shift(at::arange(frames, integers), 12).unsqueeze(1) +
                       at::arange((channels + 7) / 8, integers);  // [frames, blocks]
  const std::array<Tensor, 4> words =
      philox({first, at::bitwise_and(key.samples, kWord).view({batch, 1, 1}), at::bitwise_and(key.update, kWord),
              at::full({1}, static_cast<int64_t>(dropout_word(key.place)), integers)},
             key.seed);
  std::vector<Tensor> halves;
  for (const Tensor& word : words) {
    const Tensor whole = word.expand({batch, frames, first.size(1)});
    halves.push_back(at::bitwise_and(whole, 0xffff));
    halves.push_back(at::bitwise_right_shift(whole, 16));
  }
  const Tensor half = at::stack(halves, -1).view({batch, frames, -1}).narrow(-1, 0, channels);
  return half.ge(dropped_halves(p)).to(x.scalar_type()) * kept_scale(p);
}

Tensor dropout_scale(const Tensor& x, double p, const DropoutKey& key, bool tied_over_time) {
  if (!x.device().is_cpu()) return dropout_scale_in_operations(x, p, key, tied_over_time);
  const Tensor samples = key.samples.contiguous();
  const int64_t frames = tied_over_time ? 1 : x.size(1), channels = x.size(2);
  const DropoutMask mask{
      key.seed, key.place, static_cast<uint32_t>(*key.update.data_ptr<int64_t>()), samples.data_ptr<int64_t>(), frames,
      channels, p};
  const Tensor scale = at::empty({x.size(0), frames, channels}, at::kDouble);
  cpu::Ranges(x.size(0) * frames, channels).split([&](int64_t begin, int64_t end) {
    DropoutRows(mask, end - begin).fill(begin, end, scale.data_ptr<double>() + begin * channels);
  });
  return scale.to(x.options());
}
Tensor dropout(const Tensor& x, double p, const std::optional<DropoutKey>& key, bool tied_over_time) {
  if (!key || p == 0) return x;
  return x * dropout_scale(x, p, *key, tied_over_time);
}
Tensor residual_layer_norm(const Tensor& z, const Tensor& residual, const Tensor& gain, const Tensor& bias, double p,
                           const std::optional<DropoutKey>& key) {
  return at::layer_norm(plain::dropout(z, p, key) + residual, {z.size(-1)}, gain, bias, 1e-5);
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t offset) {
  const auto heads_first = [](const Tensor& x) { return x.transpose(1, 2); };
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const Tensor later = at::ones({q.size(1), k.size(1)}, q.options().dtype(at::kBool)).triu(offset + 1);
  const Tensor score = at::matmul(heads_first(q), heads_first(k).transpose(-1, -2)) * scale;
  const Tensor weight = at::softmax(score.masked_fill(later, -INFINITY), -1);
  return heads_first(at::matmul(weight, heads_first(v)));
}

Tensor rope(const Tensor& x, double base, int sense, int64_t offset) {
  const int64_t half = x.size(-1) / 2;
  const auto doubles = x.options().dtype(at::kDouble);
  Tensor turn = at::empty({half}, at::kDouble);
  for (int64_t j = 0; j < half; ++j) turn.data_ptr<double>()[j] = rope_rate(base, j, half);
  turn = turn.to(x.device());
  const Tensor angle = at::arange(offset, offset + x.size(1), doubles).unsqueeze(-1) * turn * sense;
  const Tensor c = angle.cos().unsqueeze(1).to(x.scalar_type()), s = angle.sin().unsqueeze(1).to(x.scalar_type());
  const Tensor x1 = x.narrow(-1, 0, half), x2 = x.narrow(-1, half, half);
  return at::cat({x1 * c + x2 * s, x2 * c - x1 * s}, -1);
}

Tensor decoder_cross_entropy(const Tensor& h, const Tensor& weight, const Tensor& bias, const Tensor& target,
                             double normaliser) {
  const Tensor real = target.ge(0).nonzero().squeeze(-1);
  const Tensor logits = at::addmm(bias, h.index_select(0, real), weight.t());
  const Tensor picked = at::log_softmax(logits, -1).gather(1, target.index_select(0, real).unsqueeze(-1));
  return -picked.sum() / (normaliser == 0 ? static_cast<double>(real.size(0)) : normaliser);
}

}  // namespace sb::plain
