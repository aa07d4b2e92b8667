// Dropout masks: where they come from, what they do not depend on.
#include "kernels/aten/dropout.h"
#include "base/error.h"
#include "fused_claims.h"
#include "kernels/dropout_stream.h"

namespace sb::test {
namespace {

using Dropout = RecurrenceTest;

// Philox4x32-10 as its authors define it, a word at a time: independent of random/philox.h.
std::array<uint32_t, 4> blocks_of(std::array<uint32_t, 4> x, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto high = [](uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); };
    const uint32_t y0 = high(0xCD9E8D57, x[2]) ^ x[1] ^ k0, y1 = 0xCD9E8D57 * x[2];
    const uint32_t y2 = high(0xD2511F53, x[0]) ^ x[3] ^ k1, y3 = 0xD2511F53 * x[0];
    x = {y0, y1, y2, y3};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
}

uint32_t half_word(uint64_t seed, uint32_t place, int64_t update, int64_t sample, int64_t frame, int64_t channel) {
  const auto words = blocks_of({static_cast<uint32_t>(frame << 12 | channel / 8), static_cast<uint32_t>(sample),
                                static_cast<uint32_t>(update), place << 8 | 5},
                               seed);
  return words[static_cast<size_t>(channel % 8 / 2)] >> 16 * (channel % 2) & 0xffff;
}

TEST_F(Dropout, UsesPhilox) {
  const auto zero = blocks_of({0, 0, 0, 0}, 0);
  EXPECT_EQ(zero[0], 0x6627e8d5U);
  EXPECT_EQ(zero[3], 0x9b00dbd8U);
}

TEST_F(Dropout, MaskDependsOnHalfWordPerSampleFrameAndChannel) {
  const uint64_t seed = 0x123456789abcdef0;
  const uint32_t place = 0xabcdef;
  const int64_t update = (int64_t{3} << 32) + 17;
  const std::vector<int64_t> samples{5, (int64_t{1} << 40) + 70000, 0};
  const DropoutKey key = dropout_key(seed, place, update, samples);
  for (const int64_t channels : {1, 8, 23, 64, 200})
    for (const double p : {0.3, 0x1p-16, 1 - 0x1p-20}) {
      const double dropped = std::min(std::round(p * 0x1p16), 0x1p16 - 1);
      const auto kept = static_cast<float>(0x1p16 / (0x1p16 - dropped));
      const Tensor x = at::ones({3, 17, channels}), y = dropout(x, p, key);
      Tensor expected = at::empty_like(x);
      auto out = expected.accessor<float, 3>();
      for (int64_t b = 0; b < 3; ++b)
        for (int64_t t = 0; t < 17; ++t)
          for (int64_t c = 0; c < channels; ++c)
            out[b][t][c] =
                half_word(seed, place, update, samples[static_cast<size_t>(b)], t, c) >= dropped ? kept : 0.0F;
      EXPECT_TRUE(at::equal(y, expected)) << channels << " " << p;
      EXPECT_TRUE(at::equal(dropout(x, p, key, true), expected.narrow(1, 0, 1).expand_as(x))) << channels << " " << p;
      EXPECT_TRUE(at::equal(aten::dropout_factors({p, key, false}, x), expected)) << channels << " " << p;
      EXPECT_TRUE(at::equal(aten::dropout_factors({p, key, true}, x), expected.narrow(1, 0, 1)));
    }
  // Rates below half a step drop nothing.
  EXPECT_TRUE(at::equal(dropout(at::ones({3, 40, 20}), 1e-6, key), at::ones({3, 40, 20})));
}

TEST_F(Dropout, SupportsMaximumFramesAndChannels) {
  const DropoutKey key = dropout_key(7, 1, 2, {3});
  const int64_t frames = kDropoutFrames;
  const Tensor y = dropout(at::ones({1, frames, 1}), 0.5, key).flatten();
  for (const int64_t t : {int64_t{0}, int64_t{1}, frames / 2, frames - 1})
    EXPECT_EQ(y[t].item<float>() > 0, half_word(7, 1, 2, 3, t, 0) >= 0x8000) << t;
  const Tensor wide = dropout(at::ones({1, 2, kDropoutChannels}), 0.5, key);
  for (const int64_t c : {int64_t{0}, int64_t{8}, kDropoutChannels - 1})
    EXPECT_EQ(wide[0][1][c].item<float>() > 0, half_word(7, 1, 2, 3, 1, c) >= 0x8000) << c;
  EXPECT_THROW(dropout(at::ones({1, frames + 1, 1}), 0.5, key), Error);
  EXPECT_THROW(dropout(at::ones({1, 1, kDropoutChannels + 1}), 0.5, key), Error);
  EXPECT_THROW(dropout(at::ones({1, 1, 1}), 0.5, dropout_key(7, 1 << 24, 2, {3})), Error);
}

// Micro-batches, ranks and length buckets use the same masks.
TEST_F(Dropout, MasksDoNotDependOnPaddingOrBatchSplit) {
  for (const int64_t channels : {5, 64, 72, 256}) {
    const std::vector<int64_t> samples{12, 13, 14, 15};
    const auto norm = [&](const Tensor& z, const std::vector<int64_t>& rows) {
      return residual_layer_norm(z, at::zeros_like(z), at::ones({channels}), at::zeros({channels}), 0.4,
                                 dropout_key(1, 2, 3, rows));
    };
    const Tensor x = noise({4, 33, channels}, 1).to(at::kFloat);
    const Tensor whole = dropout(x, 0.4, dropout_key(1, 2, 3, samples)), normed = norm(x, samples);
    for (const int64_t parts : {2, 4}) {
      const int64_t each = 4 / parts;
      for (int64_t m = 0; m < parts; ++m) {
        const std::vector<int64_t> mine(samples.begin() + m * each, samples.begin() + (m + 1) * each);
        const Tensor rows = x.narrow(0, m * each, each);
        EXPECT_TRUE(at::equal(dropout(rows, 0.4, dropout_key(1, 2, 3, mine)), whole.narrow(0, m * each, each)));
        EXPECT_TRUE(at::equal(norm(rows, mine), normed.narrow(0, m * each, each)));
      }
    }
    const Tensor padded = at::constant_pad_nd(x, {0, 0, 0, 29});
    EXPECT_TRUE(at::equal(dropout(padded, 0.4, dropout_key(1, 2, 3, samples)).narrow(1, 0, 33), whole));
    EXPECT_TRUE(at::equal(norm(padded, samples).narrow(1, 0, 33), normed));
  }
}

TEST_F(Dropout, KeepsExpectedShare) {
  const int64_t n = 400000;
  for (double p : {0.1, 0.5, 0.9}) {
    const Tensor y = dropout(at::ones({1, 100, n / 100}), p, dropout_key(1, 2, 0, {0}));
    const double kept = y.ne(0).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(kept, 1 - p, 5 * std::sqrt(p * (1 - p) / static_cast<double>(n)));
  }
}

TEST_F(Dropout, MasksRepeatByKeyAndDifferBetweenKeys) {
  const Tensor x = at::ones({1, 8, 200});
  const auto mask = [&](uint64_t seed, uint32_t place, int64_t update, int64_t sample) {
    return dropout(x, 0.5, dropout_key(seed, place, update, {sample}));
  };
  const Tensor one = mask(1, 2, 3, 4);
  EXPECT_TRUE(at::equal(one, mask(1, 2, 3, 4)));
  for (const Tensor& other : {mask(2, 2, 3, 4), mask(1, 3, 3, 4), mask(1, 2, 4, 4), mask(1, 2, 3, 5)})
    EXPECT_NEAR(one.eq(other).to(at::kDouble).mean().item<double>(), 0.5, 0.08);
  EXPECT_TRUE(at::equal(dropout(x, 0.5, std::nullopt), x));
}

TEST_F(Dropout, GradientsUseTheSameMask) {
  const DropoutKey key = dropout_key(3, 4, 5, {6, 7, 8});
  for (const bool tied : {false, true})
    expect_fused(
        tied ? "tied" : "dropout", [&](const Tensors& in) { return dropout(in[0], 0.4, key, tied); },
        [&](const Tensors& in) {
          return in[0] * aten::dropout_factors({0.4, key, tied}, in[0].detach());
        },
        {noise({3, 50, 21}, 1)});
}

TEST_F(Dropout, RejectsInvalidKeys) {
  const Tensor x = at::ones({2, 3, 4});
  EXPECT_THROW(dropout(x, 1.0, dropout_key(1, 2, 3, {4, 5})), Error);
  EXPECT_THROW(dropout(x, 0.5, dropout_key(1, 2, 3, {4})), Error);
  EXPECT_THROW(dropout(at::ones({2, 3}), 0.5, dropout_key(1, 2, 3, {4, 5})), Error);
  try {
    dropout(x, 0.5, DropoutKey{});
    FAIL() << "made a mask from nothing";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[dropout] update, expected [1], got nothing");
  }
}

}  // namespace
}  // namespace sb::test
