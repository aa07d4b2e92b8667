// Softmax attention, decoder with cross-entropy, the norm behind dropout.
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "fused_claims.h"

namespace sb::test {
namespace {

using FusedBlocks = RecurrenceTest;

TEST_F(FusedBlocks, AttentionEqualsPlainSoftmax) {
  for (int64_t time : {1, 2, 63, 64, 65, 130}) {
    for (int64_t width : {4, 16, 81}) {
      for (int64_t offset : {0, 1, 70}) {
        if (time + offset == 1) continue;  // one key: every gradient of its score is zero
        const Tensors x{noise({2, time, 3, width}, 1), noise({2, time + offset, 3, width}, 2),
                        noise({2, time + offset, 3, width}, 3)};
        expect_fused(
            "T " + std::to_string(time) + " K " + std::to_string(width) + " offset " + std::to_string(offset),
            [&](const Tensors& in) { return causal_attention(in[0], in[1], in[2], offset); }, x, 5e-6);
      }
    }
  }
}

TEST_F(FusedBlocks, AttentionSurvivesLargeScores) {
  const Tensor q = 300 * noise({1, 70, 1, 16}, 1), k = noise({1, 70, 1, 16}, 2), v = noise({1, 70, 1, 16}, 3);
  const Tensor exact = kernels::on(kernels::Backend::aten, [&] { return causal_attention(q, k, v); });
  EXPECT_LE(relative_error(causal_attention(q, k, v), exact), 1e-10);
  EXPECT_LE(relative_error(causal_attention(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat)), exact), 1e-3);
}

TEST_F(FusedBlocks, CachedStepsEqualWholeAttention) {
  const Tensor q = noise({2, 66, 2, 8}, 1), k = noise({2, 66, 2, 8}, 2), v = noise({2, 66, 2, 8}, 3);
  const Tensor whole = causal_attention(q, k, v);
  for (int64_t t : {0, 1, 63, 64, 65}) {
    const Tensor one = causal_attention(q.narrow(1, t, 1), k.narrow(1, 0, t + 1), v.narrow(1, 0, t + 1), t);
    EXPECT_LE(relative_error(one, whole.narrow(1, t, 1)), 1e-13) << t;
  }
}

TEST_F(FusedBlocks, AttentionInHalfPrecisionRoundsOnlyItsOutput) {
  const auto low = [](int64_t time, uint64_t seed) { return noise({2, time, 2, 16}, seed).to(at::kBFloat16); };
  const int64_t offset = 200;
  const Tensor q = (4 * low(40, 1)).to(at::kBFloat16), k = low(40 + offset, 2), v = low(40 + offset, 3);
  const Tensor exact = causal_attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), offset);
  const Tensor found = causal_attention(q, k, v, offset);
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  EXPECT_LE(relative_error(found.to(at::kDouble), exact.to(at::kBFloat16).to(at::kDouble)), 5e-4);
}

TEST_F(FusedBlocks, AttentionInQueryBlocksEqualsSingleQueries) {
  const int64_t keys = 1 << 16, queries = 20;  // more scores than are made at a time
  const Tensor q = noise({16, queries, 1, 2}, 1).to(at::kFloat), k = noise({16, keys, 1, 2}, 2).to(at::kFloat),
               v = noise({16, keys, 1, 2}, 3).to(at::kFloat);
  const kernels::UseBackend aten(kernels::Backend::aten);
  const Tensor whole = causal_attention(q, k, v, keys - queries);
  for (const int64_t t : {0, 15, 16, 19}) {
    const int64_t seen = keys - queries + t + 1;
    const Tensor one = causal_attention(q.narrow(1, t, 1), k.narrow(1, 0, seen), v.narrow(1, 0, seen), seen - 1);
    EXPECT_LE(relative_error(one, whole.narrow(1, t, 1)), 1e-5) << t;
  }
}

Tensor some_targets(int64_t rows, int64_t classes, bool with_padding) {
  const Tensor target = at::remainder(at::arange(rows, at::kLong) * 7919, classes);
  return with_padding
             ? at::where(at::remainder(at::arange(rows, at::kLong), 3).eq(1), at::full_like(target, -1), target)
             : target;
}

TEST_F(FusedBlocks, DecoderLossEqualsLogSoftmax) {
  for (int64_t rows : {1, 5, 130, 300}) {
    for (int64_t classes : {2, 7, 201}) {
      for (const Tensor& normaliser : {Tensor(), at::full({1}, 11.0), at::full({}, 11, at::kLong)}) {
        const Tensor target = some_targets(rows, classes, rows > 1);
        const Tensors x{noise({rows, 12}, 1), noise({classes, 12}, 2), noise({classes}, 3)};
        expect_fused(
            std::to_string(rows) + " rows, " + std::to_string(classes) + " classes",
            [&](const Tensors& in) { return decoder_cross_entropy(in[0], in[1], in[2], target, normaliser); }, x, 5e-6);
      }
    }
  }
}

TEST_F(FusedBlocks, DecoderLossSumsOverRowGroups) {
  const int64_t rows = 4500;  // more than two groups
  const Tensor target = some_targets(rows, 9, true);
  expect_fused(
      "groups", [&](const Tensors& in) { return decoder_cross_entropy(in[0], in[1], in[2], target); },
      {noise({rows, 6}, 1), noise({9, 6}, 2), noise({9}, 3)}, 5e-6);
}

TEST_F(FusedBlocks, PaddingRowsHaveNoInfluenceAndNoGradient) {
  const Tensor target = some_targets(30, 5, true), real = target.ge(0);
  Tensor h = noise({30, 4}, 1);
  const Tensor w = noise({5, 4}, 2), b = noise({5}, 3);
  const double loss = decoder_cross_entropy(h, w, b, target).item<double>();
  h = at::where(real.unsqueeze(1), h, at::full_like(h, 1e3)).requires_grad_();
  const Tensor again = decoder_cross_entropy(h, w, b, target);
  EXPECT_EQ(again.item<double>(), loss);
  again.backward();
  EXPECT_EQ(h.grad().masked_select(real.logical_not().unsqueeze(1)).abs().max().item<double>(), 0);
}

TEST_F(FusedBlocks, RejectsLossOverPaddingOnly) {
  try {
    decoder_cross_entropy(at::ones({3, 4}), at::ones({5, 4}), at::ones({5}), at::full({3}, -1, at::kLong));
    FAIL() << "made a mean over no rows";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[decoder_cross_entropy] target, expected at least one row that is not padding, got none");
  }
  EXPECT_THROW(decoder_cross_entropy(at::ones({1, 4}), at::ones({5, 4}), at::ones({5}), at::full({1}, 5, at::kLong)),
               Error);
}

TEST_F(FusedBlocks, ShareOfABatchMayBePaddingOnly) {
  Tensor h = noise({3, 4}, 1).requires_grad_();
  Tensor w = noise({5, 4}, 2).requires_grad_();
  const Tensor loss = decoder_cross_entropy(h, w, at::ones({5}, w.options().requires_grad(false)),
                                            at::full({3}, -1, at::kLong), at::full({1}, 7.0));
  EXPECT_EQ(loss.item<double>(), 0);
  loss.backward();
  EXPECT_EQ(h.grad().abs().max().item<double>(), 0);
  EXPECT_EQ(w.grad().abs().max().item<double>(), 0);
}

TEST_F(FusedBlocks, ResidualNormEqualsItsParts) {
  for (int64_t width : {3, 64, 81, 300}) {
    for (double p : {0.0, 0.2}) {
      const std::optional<DropoutKey> key = dropout_key(11, 5, 3, {4, 9});
      expect_fused(
          "width " + std::to_string(width) + " p " + std::to_string(p),
          [&](const Tensors& in) { return residual_layer_norm(in[0], in[1], in[2], in[3], p, key); },
          {noise({2, 37, width}, 1), noise({2, 37, width}, 2), noise({width}, 3), noise({width}, 4)}, 5e-6);
    }
  }
}

// The variance is the difference of two sums only if that is accurate: rows of every kind keep their precision.
TEST_F(FusedBlocks, ResidualNormIsAccurateForOffsetRows) {
  Tensor z = noise({3, 2000}, 1), residual = noise({3, 2000}, 2);
  z[0][0] = 1000;
  z[1] += 1000;
  z[2] += 30;
  const Tensor gain = noise({2000}, 3), bias = noise({2000}, 4);
  // What float can know of the sum, then in double.
  const Tensor u = (z.to(at::kFloat) + residual.to(at::kFloat)).to(at::kDouble), centred = u - u.mean(1, true);
  const Tensor truth = centred / (centred.square().mean(1, true) + 1e-5).sqrt() * gain + bias;
  const Tensor got = residual_layer_norm(z.to(at::kFloat), residual.to(at::kFloat), gain.to(at::kFloat),
                                         bias.to(at::kFloat), 0, std::nullopt);
  EXPECT_LE(relative_error(got[0], truth[0]), 3e-6);
  EXPECT_LE(relative_error(got[1], truth[1]), 1e-4);  // the mean's own rounding, 6e-5 of a deviation
  EXPECT_LE(relative_error(got[2], truth[2]), 3e-6);
}

// The last backward pass overwrites the saved tensors; earlier ones must not.
TEST_F(FusedBlocks, ResidualNormRepeatsGradientsOfRetainedGraph) {
  for (const std::optional<DropoutKey>& key : {std::optional<DropoutKey>(), std::optional(dropout_key(3, 4, 0, {0}))})
    for (const int64_t rows : {1, 4, 5, 37}) {
      Tensors in{noise({1, rows, 70}, 1), noise({1, rows, 70}, 2), noise({70}, 3), noise({70}, 4)};
      for (Tensor& x : in) x = x.to(at::kFloat).requires_grad_();
      const Tensor y = residual_layer_norm(in[0], in[1], in[2], in[3], key ? 0.3 : 0, key);
      const Tensor weight = noise({1, rows, 70}, 5).to(at::kFloat);
      const Tensors first = torch::autograd::grad({y}, in, {weight}, true),
                    second = torch::autograd::grad({y}, in, {weight}, true),
                    last = torch::autograd::grad({y}, in, {weight});
      for (size_t i = 0; i < in.size(); ++i) {
        EXPECT_TRUE(at::equal(first[i], second[i])) << rows << " " << i;
        EXPECT_TRUE(at::equal(first[i], last[i])) << rows << " " << i;
      }
    }
}

}  // namespace
}  // namespace sb::test
