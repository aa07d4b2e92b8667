// Dropout, and the norm after it. Masks are computed with tensor operations, so that the host need not read update and
// samples from a device.
#include "kernels/aten/dropout.h"

#include <ATen/ATen.h>

#include <array>

#include "kernels/cpu/bind/dropout.h"
#include "kernels/dropout_stream.h"

namespace sb::aten {

using at::Tensor;
using kernels::Tensors;

namespace {

constexpr int64_t kWord = 0xffffffff;

// High and low words of the 64-bit products of 32-bit words and a number; words are int64 in 0..2^32 - 1.
std::pair<Tensor, Tensor> wide_product(const Tensor& words, uint32_t factor) {
  const Tensor whole = words * static_cast<int64_t>(factor);  // modulo 2^64
  return {at::bitwise_and(at::bitwise_right_shift(whole, 32), kWord), at::bitwise_and(whole, kWord)};
}

// Words 0 .. 3 of the blocks with these counters.
std::array<Tensor, 4> philox(std::array<Tensor, 4> c, uint64_t seed) {
  auto k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto [a_high, a_low] = wide_product(c[0], kPhiloxFactor[0]);
    const auto [b_high, b_low] = wide_product(c[2], kPhiloxFactor[1]);
    c = {at::bitwise_xor(at::bitwise_xor(b_high, c[1]), static_cast<int64_t>(k0)), b_low,
         at::bitwise_xor(at::bitwise_xor(a_high, c[3]), static_cast<int64_t>(k1)), a_low};
    k0 += kPhiloxKeyStep[0];
    k1 += kPhiloxKeyStep[1];
  }
  return c;
}

}  // namespace

Tensor dropout_factors(const op::Dropout& op, const Tensor& x) {
  const int64_t batch = x.size(0), frames = op.tied_over_time ? 1 : x.size(1), channels = x.size(2);
  const auto integers = op.key.samples.options();
  const Tensor first = at::bitwise_left_shift(at::arange(frames, integers), 12).unsqueeze(1) +
                       at::arange((channels + 7) / 8, integers);  // [frames, blocks]
  const std::array<Tensor, 4> words =
      philox({first, at::bitwise_and(op.key.samples, kWord).view({batch, 1, 1}), at::bitwise_and(op.key.update, kWord),
              at::full({1}, static_cast<int64_t>(dropout_word(op.key.place)), integers)},
             op.key.seed);
  std::vector<Tensor> halves;
  for (const Tensor& word : words) {
    const Tensor whole = word.expand({batch, frames, first.size(1)});
    halves.push_back(at::bitwise_and(whole, 0xffff));
    halves.push_back(at::bitwise_right_shift(whole, 16));
  }
  const Tensor half = at::stack(halves, -1).view({batch, frames, -1}).narrow(-1, 0, channels);
  return half.ge(dropped_halves(op.p)).to(x.scalar_type()) * kept_scale(op.p);
}

Tensors dropout(const op::Dropout& op, const Tensors& in, Tensors*) {
  return {in[0] * (in[0].device().is_cpu() ? cpu::dropout_factors(op, in[0]) : dropout_factors(op, in[0]))};
}

// z, residual, gain, bias
Tensors residual_layer_norm(const op::ResidualLayerNorm& op, const Tensors& in, Tensors*) {
  const Tensor z = op.p == 0 ? in[0] : dropout({op.p, *op.key, false}, {in[0]}, nullptr)[0];
  const auto type = at::result_type(z, in[2]);
  return {at::layer_norm(z.to(type) + in[1].to(type), {z.size(-1)}, in[2].to(type), in[3].to(type), 1e-5)
              .to(in[1].scalar_type())};
}

}  // namespace sb::aten
