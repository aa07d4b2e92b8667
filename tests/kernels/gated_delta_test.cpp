#include "base/error.h"
#include "kernels/step.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

const std::vector<std::string> kNames = {"q", "k", "v", "beta", "g", "state"};

struct Case {
  int64_t B, T, n, H, K, V;
  double level;  // log-decays: none (3), around -0.1 (1), all of them `level` (<= 0), or a mixture (2)
};

std::string text(const Case& c) {
  return "B " + std::to_string(c.B) + " T " + std::to_string(c.T) + " n " + std::to_string(c.n) + " H " +
         std::to_string(c.H) + " K " + std::to_string(c.K) + " V " + std::to_string(c.V) + " level " +
         std::to_string(c.level);
}

// Unit keys; strengths in (0, 1) for one factor, in (0, 2) for several.
Tensors inputs(const Case& c) {
  const uint64_t seed = static_cast<uint64_t>(c.T * 1000 + c.K * 10 + c.V + c.n);
  const Tensor keys = noise({c.B, c.T, c.n, c.H, c.K}, seed + 2);
  Tensor g;
  if (c.level <= 0) g = at::full({c.B, c.T, c.H}, c.level, at::kDouble);
  if (c.level == 1 || c.level == 2) g = -0.1 * noise({c.B, c.T, c.H}, seed + 4).abs();
  if (c.level == 2) {
    const Tensor choice = noise({c.B, c.T, c.H}, seed + 5);
    g = at::where(choice > 1.6, at::full_like(g, -1e4), at::where(choice > 1.0, at::full_like(g, -30.0), g));
  }
  return {noise({c.B, c.T, c.H, c.K}, seed + 1),
          keys / keys.norm(2, {-1}, true),
          noise({c.B, c.T, c.n, c.H, c.V}, seed + 3),
          at::sigmoid(noise({c.B, c.T, c.n, c.H}, seed + 7)) * (c.n > 1 ? 2 : 1),
          g,
          c.T % 7 == 2 ? Tensor() : noise({c.B, c.H, c.K, c.V}, seed + 6)};
}

double scale(const Tensors& x) {
  return 1 / std::sqrt(static_cast<double>(x[0].size(3)));
}
OutAndState truth(const Tensors& x) {
  return kernels::on(kernels::Backend::naive,
                     [&] { return gated_delta_rule(x[0], x[1], x[2], x[3], x[4], scale(x), x[5]); });
}
OutAndState kernel(const Tensors& x) {
  return gated_delta_rule(x[0], x[1], x[2], x[3], x[4], scale(x), x[5]);
}
OutAndState in_aten(const Tensors& x) {
  return kernels::on(kernels::Backend::aten,
                     [&] { return gated_delta_rule(x[0], x[1], x[2], x[3], x[4], scale(x), x[5]); });
}

Tensors part(const Tensors& x, int64_t begin, int64_t end, const Tensor& state) {
  Tensors y;
  for (size_t i = 0; i < 5; ++i) y.push_back(x[i].defined() ? x[i].slice(1, begin, end) : x[i]);
  y.push_back(state);
  return y;
}

std::vector<Case> cases() {
  const int64_t lengths[] = {1, 2, 3, 63, 64, 65, 127, 200, 513}, widths[] = {16, 64, 81, 96, 128};
  const double levels[] = {1, 0, -30, -1e4, 2, 3};
  std::vector<Case> all;
  for (size_t f = 0; f < 3; ++f) {
    for (size_t t = 0; t < 9; ++t) {
      // The longest sequences take the narrow heads: the loop keeps every state for its gradient.
      const int64_t K = t == 8 ? 16 : widths[(t + f) % 5], V = t == 8 ? 81 : widths[(t + 2 * f + 1) % 5];
      const int64_t n = f == 0 ? 1 : f == 1 ? (t < 7 ? 4 : 1) : 2;
      all.push_back({t % 2 == 0 && t < 6 ? 3 : 1, lengths[t], n, 2, K, V, levels[(t + f) % 6]});
    }
  }
  for (double level : levels) {
    for (int64_t n : {1, 3, 4, 70}) all.push_back({1, n > 4 ? 3 : 40, n, 1, 16, 16, level});
  }
  return all;
}

using GatedDelta = RecurrenceTest;

TEST_F(GatedDelta, KernelInDoubleEqualsTheLoop) {
  for (const Case& c : cases()) {
    const Tensors x = inputs(c);
    expect_close(run(kernel, x, kNames, at::kDouble), run(truth, x, kNames, at::kDouble), 1e-11, text(c));
  }
}

TEST_F(GatedDelta, KernelInFloatIsWithinTwoMillionths) {
  for (int64_t n : {1, 4}) {
    for (double level : {1.0, -30.0, 2.0, 3.0}) {
      const Case c{2, n == 1 ? 200 : 70, n, 2, 64, 96, level};
      Tensors x = inputs(c);
      for (Tensor& t : x) t = t.defined() ? t.to(at::kFloat).to(at::kDouble) : t;
      expect_close(run(kernel, x, kNames, at::kFloat), run(truth, x, kNames, at::kDouble), 2e-6, text(c));
    }
  }
}

TEST_F(GatedDelta, ChunkAlgorithmInAtenEqualsTheLoop) {
  for (int64_t n : {1, 3}) {
    for (double level : {1.0, 2.0, 3.0}) {
      const Case c{2, 81, n, 2, 24, 17, level};
      const Tensors x = inputs(c);
      expect_close(run(in_aten, x, kNames, at::kDouble), run(truth, x, kNames, at::kDouble), 1e-10, text(c));
    }
  }
}

TEST_F(GatedDelta, HalfPrecisionIsComputedInFloat) {
  Tensors half;
  for (const Tensor& t : inputs({1, 70, 1, 2, 16, 16, 1})) half.push_back(t.to(at::kBFloat16));
  const OutAndState scan = kernel(half);
  EXPECT_EQ(scan.out.scalar_type(), at::kBFloat16);
  for (Tensor& t : half) t = t.to(at::kDouble);
  EXPECT_LE(relative_error(scan.out, truth(half).out), 1.0 / 128);
}

TEST_F(GatedDelta, SequenceCutAnywhereEqualsTheWhole) {
  for (int64_t n : {1, 4}) {
    const Tensors x = inputs({2, 90, n, 2, 16, 40, 1});
    const Results whole = run(kernel, x, kNames, at::kDouble);
    for (int64_t cut : {1, 16, 64, 77, 89}) {
      const auto in_two = [&](const Tensors& y) -> OutAndState {
        const OutAndState first = kernel(part(y, 0, cut, y[5])), second = kernel(part(y, cut, 90, first.state));
        return {at::cat({first.out, second.out}, 1), second.state};
      };
      expect_close(run(in_two, x, kNames, at::kDouble), whole, 1e-12, "cut at " + std::to_string(cut));
    }
  }
}

TEST_F(GatedDelta, StepsEqualTheSequence) {
  for (const Case& c : {Case{2, 70, 1, 2, 16, 24, 3}, Case{2, 70, 4, 2, 24, 16, 1}}) {
    const Tensors x = inputs(c);
    const OutAndState whole = kernel(x);
    Tensor state = x[5].clone();
    Tensors out;
    for (int64_t t = 0; t < c.T; ++t) {
      const auto at_t = [&](const Tensor& y) { return y.defined() ? y.select(1, t) : y; };
      out.push_back(gated_delta_rule_step(at_t(x[0]), at_t(x[1]), at_t(x[2]), at_t(x[3]), at_t(x[4]), scale(x), state));
    }
    EXPECT_LE(relative_error(at::stack(out, 1), whole.out), 1e-13);
    EXPECT_LE(relative_error(state, whole.state), 1e-13);
  }
}

TEST_F(GatedDelta, GradientsMatchFiniteDifferences) {
  for (int64_t n : {1, 3}) expect_slopes_match(kernel, inputs({1, 70, n, 2, 5, 3, 1}), kNames, 1e-6);
}

TEST_F(GatedDelta, BytesDoNotDependOnThreads) {
  for (int64_t n : {1, 4}) expect_same_on_threads(kernel, inputs({3, 80, n, 4, 24, 40, 1}), kNames);
}

TEST_F(GatedDelta, SlicesOfWiderTensorsGiveTheSameBytes) {
  const Tensors x = inputs({2, 70, 4, 2, 16, 24, 1});
  const OutAndState plain = kernel(x);
  const Tensor wide = at::cat({x[1].flatten(2), x[2].flatten(2), x[3].flatten(2)}, 2);
  const auto slice = [&](int64_t from, int64_t width) {
    return wide.narrow(2, from, 8 * width).unflatten(2, {4, 2, width});
  };
  const OutAndState strided = kernel({x[0], slice(0, 16), slice(128, 24), slice(320, 1).squeeze(-1), x[4], x[5]});
  expect_same_bytes({{"out", strided.out}, {"state", strided.state}}, {{"out", plain.out}, {"state", plain.state}}, "");
}

TEST_F(GatedDelta, ReportsWrongShapesInOneLine) {
  Tensors x = inputs({1, 3, 2, 4, 8, 8, 1});
  x[3] = x[3].narrow(2, 0, 1);
  try {
    kernel(x);
    FAIL() << "accepted one strength for two factors";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[gated_delta_rule] beta, expected [1, 3, 2, 4], got [1, 3, 1, 4]");
  }
}

}  // namespace
}  // namespace sb::test
