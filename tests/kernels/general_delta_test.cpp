#include "base/error.h"
#include "kernels/step.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

const std::vector<std::string> kOperands = {"q", "k", "v", "erase", "write", "g", "state"};

struct Case {
  int64_t B, T, H, K, V;
  int64_t decays;  // 0: none, 1: one per head, 2: one per key channel
  double level;    // log-decays: around -0.1 (1), all of them `level` (<= 0), or a mixture with very strong ones (2)
  EraseFrom from;
};

std::string text(const Case& c) {
  return "B " + std::to_string(c.B) + " T " + std::to_string(c.T) + " K " + std::to_string(c.K) + " V " +
         std::to_string(c.V) + " decays " + std::to_string(c.decays) + " level " + std::to_string(c.level) +
         (c.from == EraseFrom::before_decay ? " before" : " after");
}

// Unit vectors erase; writes are multiples of them below 1, which keeps the state bounded, plus a little of another
// direction, so that no symmetry hides a mistake.
Tensors inputs(const Case& c) {
  const uint64_t seed = static_cast<uint64_t>(c.T * 1000 + c.K * 10 + c.V + c.decays);
  const std::vector<int64_t> keys = {c.B, c.T, c.H, c.K};
  const Tensor direction = noise(keys, seed + 2), erase = direction / direction.norm(2, {-1}, true);
  Tensor g;
  if (c.decays > 0) {
    const std::vector<int64_t> sizes = c.decays == 1 ? std::vector<int64_t>{c.B, c.T, c.H} : keys;
    g = c.level <= 0 ? at::full(sizes, c.level, at::kDouble) : -0.1 * noise(sizes, seed + 4).abs();
    const Tensor choice = noise(sizes, seed + 5);
    if (c.level == 2)
      g = at::where(choice > 1.6, at::full_like(g, -1e4), at::where(choice > 1.0, at::full_like(g, -30.0), g));
  }
  return {noise(keys, seed + 1),
          0.5 * noise(keys, seed + 8) / std::sqrt(static_cast<double>(c.K)),
          noise({c.B, c.T, c.H, c.V}, seed + 3),
          erase,
          erase * at::sigmoid(noise(keys, seed + 7)) + 0.05 * noise(keys, seed + 9),
          g,
          c.T % 7 == 2 ? Tensor() : noise({c.B, c.H, c.K, c.V}, seed + 6)};
}

Recurrence rule(EraseFrom from) {
  return [from](const Tensors& x) {
    return general_delta_rule({x[0], x[1], x[2], x[3], x[4], x[5]}, 1 / std::sqrt(static_cast<double>(x[0].size(3))),
                              from, x[6]);
  };
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay}) {
    for (const int64_t decays : {0, 1, 2})
      for (const int64_t T : {1, 2, 15, 16, 17, 64, 65, 150})
        all.push_back({T < 20 ? 2 : 1, T, 2, T == 65 ? 81 : 16, T == 64 ? 16 : 24, decays, 1, from});
    for (const int64_t decays : {1, 2})
      for (const double level : {0.0, -1e4, 2.0}) all.push_back({1, 90, 1, 16, 8, decays, level, from});
  }
  return all;
}

using GeneralDelta = RecurrenceTest;

TEST_F(GeneralDelta, KernelInDoubleEqualsTheLoop) {
  for (const Case& c : cases()) {
    const Tensors x = inputs(c);
    expect_close(run(rule(c.from), x, kOperands, at::kDouble), run(on_naive(rule(c.from)), x, kOperands, at::kDouble),
                 1e-10, text(c));
  }
}

// All gradients of log-decays are near e^-30 then. ATen's, differences of sums, are lost in rounding; the kernel's not.
TEST_F(GeneralDelta, KernelKeepsTinyGradientsOfStrongDecays) {
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay}) {
    const Case c{1, 90, 1, 16, 8, 2, -30, from};
    expect_close(run(rule(from), inputs(c), kOperands, at::kDouble),
                 run(on_naive(rule(from)), inputs(c), kOperands, at::kDouble), 1e-10, text(c));
  }
}

TEST_F(GeneralDelta, ChunkAlgorithmInAtenEqualsTheLoop) {
  for (const Case& c : cases()) {
    const Tensors x = inputs(c);
    expect_close(run(on_aten(rule(c.from)), x, kOperands, at::kDouble),
                 run(on_naive(rule(c.from)), x, kOperands, at::kDouble), 1e-10, text(c));
  }
}

TEST_F(GeneralDelta, FloatStaysWithinAFewMillionths) {
  for (const int64_t decays : {1, 2}) {
    for (const double level : {1.0, 2.0}) {
      const Case c{2, 130, 2, 64, 96, decays, level, decays == 1 ? EraseFrom::before_decay : EraseFrom::after_decay};
      Tensors x = inputs(c);
      for (Tensor& t : x) t = t.defined() ? t.to(at::kFloat).to(at::kDouble) : t;
      expect_close(run(rule(c.from), x, kOperands, at::kFloat), run(on_naive(rule(c.from)), x, kOperands, at::kDouble),
                   5e-6, text(c));
    }
  }
}

// w = beta k, e = k, v -> beta v, after the decay
TEST_F(GeneralDelta, TheGatedDeltaRuleIsASpecialCase) {
  const Tensors x = inputs({2, 80, 2, 16, 24, 1, 1, EraseFrom::after_decay});
  const Tensor &k = x[3], beta = at::sigmoid(noise({2, 80, 2}, 77)), strength = beta.unsqueeze(-1);
  const OutAndState general =
      general_delta_rule({x[0], k, strength * x[2], k, strength * k, x[5]}, 0.25, EraseFrom::after_decay, x[6]);
  const OutAndState scalar =
      gated_delta_rule(x[0], k.unsqueeze(2), x[2].unsqueeze(2), beta.unsqueeze(2), x[5], 0.25, x[6]);
  EXPECT_LE(relative_error(general.out, scalar.out), 1e-12);
  EXPECT_LE(relative_error(general.state, scalar.state), 1e-12);
}

// One tensor is k and write, as in KDA and Gated DeltaNet-2.
TEST_F(GeneralDelta, RuleThatWritesItsKeysEqualsTheLoop) {
  const std::vector<std::string> operands = {"q", "k", "v", "erase", "g", "state"};
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay}) {
    const Recurrence shared = [&](const Tensors& x) {
      return general_delta_rule({x[0], x[1], x[2], x[3], x[1], x[4]}, 0.25, from, x[5]);
    };
    const auto given = [&](const Case& c) {
      const Tensors x = inputs(c);
      return Tensors{x[0], x[4], x[2], x[3], x[5], x[6]};
    };
    for (const int64_t decays : {1, 2})
      for (const int64_t T : {1, 16, 17, 65, 150}) {
        const Case c{2, T, 2, T == 65 ? 81 : 16, T == 150 ? 40 : 24, decays, 2, from};
        const Results loop = run(on_naive(shared), given(c), operands, at::kDouble);
        expect_close(run(shared, given(c), operands, at::kDouble), loop, 1e-10, text(c));
        expect_close(run(on_aten(shared), given(c), operands, at::kDouble), loop, 1e-10, text(c));
      }
    expect_slopes_match(shared, given({1, 70, 2, 5, 3, 2, 1, from}), operands, 1e-6);
    const Case c{2, 130, 2, 64, 96, 2, 1, from};
    const Tensors x = inputs(c);
    const auto apart = general_delta_rule({x[0], x[4], x[2], x[3], x[4].clone(), x[5]}, 0.25, from, x[6]);
    EXPECT_LE(relative_error(shared(given(c)).out, apart.out), 1e-12);
  }
}

TEST_F(GeneralDelta, SequenceCutAnywhereEqualsTheWhole) {
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay}) {
    const Tensors x = inputs({2, 90, 2, 16, 40, 2, 1, from});
    const Results whole = run(rule(from), x, kOperands, at::kDouble);
    for (const int64_t cut : {1, 16, 64, 77, 89}) {
      const auto part = [&](const Tensors& y, int64_t begin, int64_t end, const Tensor& state) {
        Tensors out;
        for (size_t i = 0; i < 6; ++i) out.push_back(y[i].slice(1, begin, end));
        out.push_back(state);
        return out;
      };
      const auto in_two = [&](const Tensors& y) -> OutAndState {
        const OutAndState first = rule(from)(part(y, 0, cut, y[6])), second = rule(from)(part(y, cut, 90, first.state));
        return {at::cat({first.out, second.out}, 1), second.state};
      };
      expect_close(run(in_two, x, kOperands, at::kDouble), whole, 1e-11, "cut at " + std::to_string(cut));
    }
  }
}

TEST_F(GeneralDelta, StepsEqualTheSequence) {
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay}) {
    const Tensors x = inputs({2, 70, 2, 16, 24, 2, 1, from});
    const OutAndState whole = rule(from)(x);
    Tensor state = x[6].clone();
    Tensors out;
    for (int64_t t = 0; t < 70; ++t) {
      const auto at_t = [&](size_t i) { return x[i].select(1, t); };
      out.push_back(general_delta_rule_step({at_t(0), at_t(1), at_t(2), at_t(3), at_t(4), at_t(5)}, 0.25, from, state));
    }
    EXPECT_LE(relative_error(at::stack(out, 1), whole.out), 1e-12);
    EXPECT_LE(relative_error(state, whole.state), 1e-12);
  }
}

TEST_F(GeneralDelta, GradientsMatchFiniteDifferences) {
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay})
    for (const int64_t decays : {0, 1, 2})
      expect_slopes_match(rule(from), inputs({1, 70, 2, 5, 3, decays, 1, from}), kOperands, 1e-6);
}

TEST_F(GeneralDelta, HalfPrecisionIsComputedInFloat) {
  Tensors half;
  for (const Tensor& t : inputs({1, 70, 2, 16, 16, 2, 1, EraseFrom::before_decay})) half.push_back(t.to(at::kBFloat16));
  const OutAndState scan = rule(EraseFrom::before_decay)(half);
  EXPECT_EQ(scan.out.scalar_type(), at::kBFloat16);
  for (Tensor& t : half) t = t.to(at::kDouble);
  EXPECT_LE(relative_error(scan.out, on_naive(rule(EraseFrom::before_decay))(half).out), 1.0 / 128);
}

TEST_F(GeneralDelta, BytesDoNotDependOnTheThreads) {
  const int before = at::get_num_threads();
  const Tensors x = inputs({3, 80, 4, 24, 40, 2, 1, EraseFrom::after_decay});
  at::set_num_threads(1);
  const Results one = run(rule(EraseFrom::after_decay), x, kOperands, at::kFloat);
  for (const int threads : {2, 4}) {
    at::set_num_threads(threads);
    expect_same_bytes(run(rule(EraseFrom::after_decay), x, kOperands, at::kFloat), one,
                      std::to_string(threads) + " threads");
  }
  at::set_num_threads(before);
}

TEST_F(GeneralDelta, WrongShapesAreNamedInOneLine) {
  Tensors x = inputs({1, 3, 4, 8, 8, 2, 1, EraseFrom::after_decay});
  x[3] = x[3].narrow(2, 0, 1);
  try {
    rule(EraseFrom::after_decay)(x);
    FAIL() << "accepted one vector for four heads";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[general_delta_rule] erase, expected [1, 3, 4, 8], got [1, 3, 1, 8]");
  }
}

}  // namespace
}  // namespace sb::test
