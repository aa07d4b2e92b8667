// Attention with decaying scores, with a trapezoidal rule, behind a solver, and over levels of blocks: each against its
// loop, in pieces, and against finite differences.
#include "kernels/fused.h"
#include "kernels/operations.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

struct NewerCase {
  const char* name;
  std::vector<std::string> operands;
  Tensors inputs;  // the last one, or the last three of the trapezoid, are carried
  Recurrence f;
};

Tensor decays(at::IntArrayRef sizes, uint64_t seed, bool strong) {
  const Tensor g = -0.2 * noise(sizes, seed).abs();
  return strong ? at::where(noise(sizes, seed + 50) > 1.3, at::full_like(g, -40.0), g) : g;
}

NewerCase forgetting(int64_t T, bool strong) {
  return {"forgetting_attention",
          {"q", "k", "v", "g"},
          {noise({2, T, 2, 8}, 1), noise({2, T, 2, 8}, 2), noise({2, T, 2, 8}, 3), decays({2, T, 2}, 4, strong)},
          [](const Tensors& x) -> OutAndState {
            const Tensor out = forgetting_attention(x[0], x[1], x[2], x[3]);
            return {out, out.sum()};
          }};
}

NewerCase trapezoid(int64_t T, bool strong) {
  return {"trapezoid_attention",
          {"q", "k", "v", "g", "here", "before", "skip", "state", "last k", "last v"},
          {noise({2, T, 2, 6}, 1), noise({2, T, 2, 6}, 2), noise({2, T, 2, 5}, 3), decays({2, T, 2}, 4, strong),
           noise({2, T, 2}, 5).abs(), noise({2, T, 2}, 6).abs(), noise({2}, 10), noise({2, 2, 6, 5}, 7),
           noise({2, 2, 6}, 8), noise({2, 2, 5}, 9)},
          [](const Tensors& x) {
            return trapezoid_attention(x[0], x[1], x[2], x[3], x[4], x[5], x[6], 0.4, {x[7], x[8], x[9]});
          }};
}

// The state is as a sequence leaves it: G is symmetric and positive.
NewerCase mesa(int64_t T, bool strong) {
  const Tensor root = noise({2, 2, 6, 6}, 7), G = at::matmul(root, root.transpose(-1, -2)) / 6;
  const Tensor k = noise({2, T, 2, 6}, 2);
  return {"mesa_attention",
          {"q", "k", "v", "beta", "g", "ridge", "state"},
          {noise({2, T, 2, 6}, 1), k / k.norm(2, {-1}, true), noise({2, T, 2, 5}, 3), at::sigmoid(noise({2, T, 2}, 5)),
           decays({2, T, 2}, 4, strong), 0.5 + noise({2, 6}, 6).abs(), at::cat({G, noise({2, 2, 6, 5}, 8)}, -1)},
          [](const Tensors& x) {
            const Tensor first = x[6].narrow(-1, 0, 6), S = x[6].narrow(-1, 6, 5);
            const Tensor state = at::cat({(first + first.transpose(-1, -2)) / 2, S}, -1);
            return mesa_attention(x[0], x[1], x[2], x[3], x[4], x[5], 30, state);
          }};
}

NewerCase log_linear(int64_t T, bool strong) {
  return {"log_linear_attention",
          {"q", "k", "v", "g", "weights"},
          {noise({2, T, 1, 6}, 1), noise({2, T, 1, 6}, 2), noise({2, T, 2, 5}, 3), decays({2, T, 2}, 4, strong),
           noise({2, T, 2, 10}, 5).abs()},
          [](const Tensors& x) { return log_linear_attention(x[0], x[1], x[2], x[3], x[4]); }};
}

std::vector<NewerCase> all(int64_t T, bool strong = false) {
  return {forgetting(T, strong), trapezoid(T, strong), mesa(T, strong), log_linear(T, strong)};
}

using NewerAttention = RecurrenceTest;

TEST_F(NewerAttention, InDoubleEqualsTheLoop) {
  for (const bool strong : {false, true})
    for (const int64_t T : {2, 63, 64, 65, 150})
      for (const NewerCase& c : all(T, strong))
        expect_close(run(c.f, c.inputs, c.operands, at::kDouble), run(on_naive(c.f), c.inputs, c.operands, at::kDouble),
                     1e-9, std::string(c.name) + " T " + std::to_string(T));
}

TEST_F(NewerAttention, InFloatStaysWithinAHundredThousandth) {
  for (const bool strong : {false, true})
    for (NewerCase c : all(150, strong)) {
      for (Tensor& t : c.inputs) t = t.to(at::kFloat).to(at::kDouble);
      expect_close(run(c.f, c.inputs, c.operands, at::kFloat), run(on_naive(c.f), c.inputs, c.operands, at::kDouble),
                   1e-5, c.name);
    }
}

TEST_F(NewerAttention, GradientsMatchFiniteDifferences) {
  for (const NewerCase& c : all(70)) {
    SCOPED_TRACE(c.name);
    expect_slopes_match(c.f, c.inputs, c.operands, 1e-6);
  }
}

// The queries are the last frames of the sequence, as behind a cache.
TEST_F(NewerAttention, ForgettingBehindEarlierFramesEqualsTheLoop) {
  for (const auto& [T, offset] : {std::pair<int64_t, int64_t>{70, 5}, {150, 64}, {150, 70}, {130, 129}}) {
    NewerCase c = forgetting(T, true);
    c.f = [offset = offset](const Tensors& x) -> OutAndState {
      const Tensor out = forgetting_attention(x[0].narrow(1, offset, x[0].size(1) - offset), x[1], x[2], x[3], offset);
      return {out, out.sum()};
    };
    SCOPED_TRACE(std::to_string(T) + " behind " + std::to_string(offset));
    expect_close(run(c.f, c.inputs, c.operands, at::kDouble), run(on_naive(c.f), c.inputs, c.operands, at::kDouble),
                 1e-9, c.name);
    ASSERT_TRUE(kernels::has_kernel(op::ForgettingAttention{offset}, c.inputs));
  }
}

// Gradients of gates are sums over all pairs of frames around them.
TEST_F(NewerAttention, ForgettingLongSequencesInFloatStaysWithinAHundredThousandth) {
  NewerCase c = forgetting(1500, false);
  for (Tensor& t : c.inputs) t = t.to(at::kFloat).to(at::kDouble);
  expect_close(run(c.f, c.inputs, c.operands, at::kFloat), run(on_aten(c.f), c.inputs, c.operands, at::kDouble), 1e-5,
               c.name);
}

TEST_F(NewerAttention, AGateLeavesTheBytesOfOutputsBeforeIt) {
  const Tensors x = forgetting(150, false).inputs;
  const auto out = [&](const Tensor& g) {
    return forgetting_attention(x[0].to(at::kFloat), x[1].to(at::kFloat), x[2].to(at::kFloat), g.to(at::kFloat));
  };
  const Tensor before = out(x[3]);
  for (const int64_t t : {1, 63, 64, 149}) {
    const Tensor changed = x[3].clone();
    changed.select(1, t).sub_(3);
    EXPECT_TRUE(at::equal(out(changed).narrow(1, 0, t), before.narrow(1, 0, t))) << t;
    EXPECT_FALSE(at::equal(out(changed).select(1, t), before.select(1, t))) << t;
  }
}

TEST_F(NewerAttention, BytesDoNotDependOnTheThreads) {
  const int before = at::get_num_threads();
  // Also at the sizes of networks, at which a BLAS divides its products by the number of threads.
  std::vector<NewerCase> cases = all(150);
  cases.push_back(forgetting(150, false));
  cases.back().inputs = {noise({3, 150, 2, 32}, 1), noise({3, 150, 2, 32}, 2), noise({3, 150, 2, 32}, 3),
                         decays({3, 150, 2}, 4, false)};
  cases.push_back(log_linear(150, false));
  cases.back().inputs = {noise({3, 150, 1, 128}, 1), noise({3, 150, 1, 128}, 2), noise({3, 150, 8, 16}, 3),
                         decays({3, 150, 8}, 4, false), noise({3, 150, 8, 15}, 5).abs()};
  cases.push_back(cases.back());
  cases.back().f = [](const Tensors& x) -> OutAndState {
    const Tensor joined = at::cat({x[2].flatten(2), x[1].squeeze(2), x[0].squeeze(2)}, 2);
    const Tensor q = joined.narrow(2, 256, 128).unsqueeze(2), k = joined.narrow(2, 128, 128).unsqueeze(2);
    const Tensor out = log_linear_attention(q, k, x[2], x[3], x[4], 0, {}, /*final_state=*/false).out;
    return {out, out.sum()};
  };
  for (const NewerCase& c : cases) {
    at::set_num_threads(1);
    const Results one = run(c.f, c.inputs, c.operands, at::kFloat);
    for (const int threads : {2, 4}) {
      at::set_num_threads(threads);
      expect_same_bytes(run(c.f, c.inputs, c.operands, at::kFloat), one, c.name);
    }
  }
  at::set_num_threads(before);
}

// Mamba-3's write of a frame depends on the next one. No output may.
TEST_F(NewerAttention, AFrameOfTheTrapezoidLeavesTheBytesOfOutputsBeforeIt) {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const NewerCase c = trapezoid(90, false);
    Tensors x;
    for (const Tensor& t : c.inputs) x.push_back(t.to(type));
    const Tensor out = c.f(x).out;
    for (const int64_t t : {1, 15, 63, 64, 65, 89}) {
      Tensors changed = x;
      for (size_t i = 0; i < 6; ++i) {
        changed[i] = x[i].clone();
        changed[i].select(1, t).mul_(3).sub_(i == 3 ? 1 : 7);
      }
      EXPECT_TRUE(at::equal(c.f(changed).out.narrow(1, 0, t), out.narrow(1, 0, t))) << "frame " << t;
    }
  }
}

TEST_F(NewerAttention, TheTrapezoidInPiecesEqualsTheWhole) {
  const NewerCase c = trapezoid(90, false);
  const OutAndState whole = c.f(c.inputs);
  for (const int64_t cut : {1, 30, 64, 89}) {
    Tensors first = c.inputs, second = c.inputs;
    for (size_t i = 0; i < 6; ++i) {
      first[i] = c.inputs[i].narrow(1, 0, cut);
      second[i] = c.inputs[i].narrow(1, cut, 90 - cut);
    }
    const OutAndState a = c.f(first);
    second[7] = a.state;
    second[8] = c.inputs[1].select(1, cut - 1);
    second[9] = c.inputs[2].select(1, cut - 1);
    const OutAndState b = c.f(second);
    EXPECT_LE(relative_error(at::cat({a.out, b.out}, 1), whole.out), 1e-12) << cut;
    EXPECT_LE(relative_error(b.state, whole.state), 1e-12) << cut;
  }
}

// 10 levels: from position 256 on, the last one holds all that is further back.
TEST_F(NewerAttention, LevelsInPiecesEqualTheWholeInEitherForm) {
  const int64_t T = 700;
  const Tensors x = log_linear(T, false).inputs;
  const OutAndState whole = log_linear_attention(x[0], x[1], x[2], x[3], x[4]);
  for (const std::vector<int64_t>& pieces : {std::vector<int64_t>{1, 699},
                                             {63, 2, 635},
                                             {64, 64, 572},
                                             {100, 7, 593},
                                             {3, 1, 4, 1, 5, 9, 2, 675},
                                             {650, 50}})
    for (const bool loop : {false, true}) {
      Tensors out;
      Tensor state;
      int64_t from = 0;
      for (const int64_t length : pieces) {
        const auto part = [&](size_t i) { return x[i].narrow(1, from, length); };
        const auto scan = [&] {
          return log_linear_attention(part(0), part(1), part(2), part(3), part(4), from, state);
        };
        const OutAndState read = loop ? kernels::on(kernels::Backend::naive, scan) : scan();
        out.push_back(read.out);
        state = read.state;
        from += length;
      }
      EXPECT_LE(relative_error(at::cat(out, 1), whole.out), 1e-11);
      EXPECT_LE(relative_error(state, whole.state), 1e-11);
    }
}

TEST_F(NewerAttention, LevelsGiveTheSameBytesWithoutTheFinalState) {
  const Tensors x = log_linear(150, false).inputs;
  const auto outputs = [&](bool final_state) {
    Tensors leaves;
    for (const Tensor& t : x) leaves.push_back(t.detach().clone().set_requires_grad(true));
    const OutAndState read =
        log_linear_attention(leaves[0], leaves[1], leaves[2], leaves[3], leaves[4], 0, {}, final_state);
    EXPECT_EQ(read.state.defined(), final_state);
    read.out.sum().backward();
    Tensors all = {read.out.detach()};
    for (const Tensor& t : leaves) all.push_back(t.grad());
    return all;
  };
  const Tensors with = outputs(true), without = outputs(false);
  for (size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(at::equal(with[i], without[i])) << i;
}

// The definition, pair by pair.
TEST_F(NewerAttention, LevelsFollowTheHighestDifferingBit) {
  const int64_t T = 140;
  const Tensors x = log_linear(T, false).inputs;
  const Tensor got = log_linear_attention(x[0], x[1], x[2], x[3], x[4]).out, sums = x[3].cumsum(1);
  for (const int64_t t : {0, 1, 5, 64, 127, 128, 139}) {
    Tensor expected = at::zeros({2, 2, 5}, at::kDouble);
    for (int64_t s = 0; s <= t; ++s) {
      int64_t level = 0;
      while ((t ^ s) >> level > 0) ++level;
      const Tensor weight = x[4].select(1, t).select(-1, level) * (sums.select(1, t) - sums.select(1, s)).exp();
      const Tensor score = (x[0].select(1, t) * x[1].select(1, s)).sum(-1);
      expected = expected + (weight * score).unsqueeze(-1) * x[2].select(1, s);
    }
    EXPECT_LE(relative_error(got.select(1, t), expected), 1e-12) << t;
  }
}

}  // namespace
}  // namespace sb::test
