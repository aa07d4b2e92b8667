// The ceiling of objective `predict` against enumeration of everything that can happen.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "tasks/automata.h"
#include "tasks/ceiling.h"
#include "tasks/filter.h"
#include "tasks/gap_task.h"
#include "tasks/partly_asked.h"

namespace sb {
namespace {

using Frames = std::vector<int16_t>;
using Law = std::vector<double>;

// One way a sample can look: states of its elements and of the one that would follow, frames, where elements begin.
struct Outcome {
  std::vector<int> states;
  Frames frames;
  std::vector<size_t> start;
  double probability;
};

class AllOutcomes {
 public:
  AllOutcomes(const Automaton& automaton, const GapConfig& gap, int length)
      : a_(automaton), gap_(gap), length_(static_cast<size_t>(length)), forbidden_(test::forbidden(automaton)) {
    for (const int s : a_.start) grow({s}, 1.0 / static_cast<double>(a_.start.size()));
    double accepted = 0;
    for (const auto& [string, p] : strings_) accepted += p;
    for (auto& [string, p] : strings_) p /= accepted;
    concatenate({}, 1);
    for (const auto& [states, p] : samples_) lay({states, {}, {0}, p});
  }
  std::vector<Outcome> outcomes;

 private:
  void grow(const std::vector<int>& states, double p) {
    if (states.size() > length_) return;
    const int last = states.back();
    if (last == a_.end) {
      strings_.emplace_back(states, p);
      return;
    }
    for (int edge = a_.row[last]; edge < a_.row[last + 1]; ++edge) {
      auto longer = states;
      longer.push_back(a_.dst[edge]);
      grow(longer, p * a_.prob[edge]);
    }
  }

  void concatenate(const std::vector<int>& states, double p) {
    if (states.size() > length_) {
      samples_[{states.begin(), states.begin() + static_cast<ptrdiff_t>(length_) + 1}] += p;
      return;
    }
    for (const auto& [string, q] : strings_) {
      auto longer = states;
      longer.insert(longer.end(), string.begin(), string.end());
      concatenate(longer, p * q);
    }
  }

  void lay(const Outcome& so_far) {
    const size_t e = so_far.start.size() - 1;
    if (e == length_) {
      outcomes.push_back(so_far);
      return;
    }
    const int s = so_far.states[e];
    const bool wrong = gap_.content == GapContent::forbidden_symbol;
    const std::vector<int32_t> content = wrong ? forbidden_[static_cast<size_t>(s)] : std::vector<int32_t>{kBlankFrame};
    const bool gapped = gap_.law != GapLaw::none && static_cast<int>(e) >= gap_.start && !content.empty();
    const Law law = gapped ? gap_length_law(gap_) : Law{1};
    for (size_t n = 0; n < law.size(); ++n) {
      const double chance = gapped ? gap_.probability * law[n] + (n == 0 ? 1 - gap_.probability : 0) : 1;
      if (chance == 0) continue;
      std::function<void(Outcome, size_t)> fill = [&](Outcome next, size_t left) {
        if (left == 0) {
          next.start.push_back(next.frames.size());
          lay(next);
          return;
        }
        for (const int32_t c : content) {
          Outcome more = next;
          more.frames.push_back(static_cast<int16_t>(c));
          more.probability /= static_cast<double>(content.size());
          fill(more, left - 1);
        }
      };
      Outcome next = so_far;
      next.frames.push_back(static_cast<int16_t>(a_.symbol[s]));
      next.probability *= chance;
      fill(next, n);
    }
  }

  const Automaton& a_;
  const GapConfig& gap_;
  size_t length_;
  std::vector<std::vector<int32_t>> forbidden_;
  std::vector<std::pair<std::vector<int>, double>> strings_;
  std::map<std::vector<int>, double> samples_;
};

struct Joint {
  double weight = 0;
  Law next, law;  // joint weights of the next class; the grammar's laws, weighted

  void add(double p, int next_class, const Law& grammar) {
    next.resize(grammar.size());
    law.resize(grammar.size());
    weight += p;
    next[static_cast<size_t>(next_class)] += p;
    for (size_t c = 0; c < grammar.size(); ++c) law[c] += p * grammar[c];
  }
  Law next_law() const { return scaled(next); }
  Law mean_law() const { return scaled(law); }

 private:
  Law scaled(Law values) const {
    for (double& v : values) v /= weight;
    return values;
  }
};

struct Expected {
  double accuracy = 0, upper_bound = 0, kl = 0, kl_bound = 0;
};

double divergence(const Law& p, const Law& q) {
  double sum = 0;
  for (size_t c = 0; c < p.size(); ++c) sum += p[c] > 0 ? p[c] * std::log(p[c] / q[c]) : 0;
  return sum;
}

size_t best_of(const Law& law) {
  return static_cast<size_t>(std::max_element(law.begin(), law.end()) - law.begin());
}

// The metric's expectation over all outcomes, with the predictions that enumeration gives; on the way the filter's laws
// are held to them.
Expected enumerate(const std::shared_ptr<const Sampler>& sampler, const TaskConfig& task) {
  const Automaton& a = sampler->automaton();
  const int length = sampler->config().length;
  const AllOutcomes all(a, task.test, length);
  std::vector<Law> laws(static_cast<size_t>(a.states()), Law(static_cast<size_t>(a.vocab)));
  for (int s = 0; s < a.states(); ++s) next_symbol_law(*sampler, s, laws[static_cast<size_t>(s)].data());
  std::map<Frames, Joint> causal;
  std::map<std::pair<Frames, size_t>, Joint> segment;
  const auto each = [&](const Outcome& o, const auto& visit) {
    for (size_t e = 0; e + 1 < o.start.size(); ++e)
      for (size_t t = o.start[e]; t < o.start[e + 1]; ++t)
        visit(e, Frames(o.frames.begin(), o.frames.begin() + static_cast<ptrdiff_t>(t) + 1), t + 1 == o.start[e + 1]);
  };
  for (const Outcome& o : all.outcomes)
    each(o, [&](size_t e, const Frames& prefix, bool last) {
      const int next = a.symbol[o.states[e + 1]];
      const Law& law = laws[static_cast<size_t>(o.states[e])];
      causal[prefix].add(o.probability, next, law);
      if (last) segment[{prefix, o.start[e + 1] - o.start[e]}].add(o.probability, next, law);
    });

  ExactFilter filter(sampler, task, Split::test);
  Law got(static_cast<size_t>(a.vocab));
  const auto expect_equal = [&](const Law& expected) {
    for (size_t c = 0; c < got.size(); ++c) EXPECT_NEAR(got[c], expected[c], 1e-12);
  };
  for (const auto& [prefix, joint] : causal) {
    filter.reset();
    for (const int16_t symbol : prefix) filter.frame(symbol);
    filter.next_classes(got.data());
    expect_equal(joint.next_law());
    filter.mean_law(got.data());
    expect_equal(joint.mean_law());
  }

  Expected out;
  for (const Outcome& o : all.outcomes) {
    Law next(got.size()), law(got.size());
    each(o, [&](size_t e, const Frames& prefix, bool last) {
      const double frames = static_cast<double>(o.start[e + 1] - o.start[e]);
      const Law now = causal.at(prefix).next_law(), mean = causal.at(prefix).mean_law();
      for (size_t c = 0; c < got.size(); ++c) {
        next[c] += now[c];
        law[c] += mean[c] / frames;
      }
      if (!last) return;
      const Joint& known = segment.at({prefix, o.start[e + 1] - o.start[e]});
      const Law& truth = laws[static_cast<size_t>(o.states[e])];
      out.kl += o.probability * divergence(truth, law) / length;
      out.kl_bound += o.probability * divergence(truth, known.mean_law()) / length;
      if (e + 1 < static_cast<size_t>(length)) {
        const auto followed = static_cast<size_t>(a.symbol[o.states[e + 1]]);
        out.accuracy += best_of(next) == followed ? o.probability / (length - 1) : 0;
        out.upper_bound += o.probability * known.next_law()[best_of(known.next_law())] / (length - 1);
      }
      std::fill(next.begin(), next.end(), 0.0);
      std::fill(law.begin(), law.end(), 0.0);
    });
  }
  return out;
}

TEST(PredictCeiling, IsExpectedMetricUnderExactDistributions) {
  const GapContent wrong = GapContent::forbidden_symbol;
  for (const auto& automaton : {test::twins(), test::forked(), test::random_automaton(3)}) {
    for (const GapConfig& gap : {GapConfig{}, GapConfig{.law = GapLaw::constant},
                                 GapConfig{.law = GapLaw::constant, .probability = 0.4, .content = wrong}}) {
      TaskConfig task;
      task.objective = Objective::predict;
      task.test = gap;
      const auto sampler = test::sampler(automaton, 4);
      const Expected expected = enumerate(sampler, task);
      CeilingRequest request;
      request.samples = 4000;
      const PredictCeiling c = predict_ceiling(GapTask(sampler, task), request);
      EXPECT_NEAR(c.accuracy, expected.accuracy, 4.5 * c.stderr_ + 1e-9);
      EXPECT_NEAR(c.counted, expected.accuracy, 4.5 * c.counted_stderr + 1e-9);
      EXPECT_NEAR(c.upper_bound, expected.upper_bound, 4.5 * c.stderr_ + 1e-9);
      EXPECT_NEAR(c.kl, expected.kl, 4.5 * c.kl_stderr + 1e-9);
      EXPECT_NEAR(c.kl_counted, expected.kl, 4.5 * c.kl_counted_stderr + 1e-9);
      EXPECT_NEAR(c.kl_bound, expected.kl_bound, 4.5 * c.kl_stderr + 1e-9);
      EXPECT_LE(c.accuracy, c.upper_bound + 1e-12);
      EXPECT_GE(c.kl, c.kl_bound - 1e-12);
      if (gap.content != wrong) {
        EXPECT_NEAR(c.accuracy, c.upper_bound, 1e-12) << "frames tell data from gaps";
        EXPECT_NEAR(c.kl, c.kl_bound, 1e-12);
      }
    }
  }
}

TEST(PredictCeiling, HasZeroDivergenceIfStateIsKnown) {
  // Every symbol names its state.
  const auto automaton = test::automaton(3, {0, 1, 2}, {1, 2}, {{1, 2, 1}, {1, 0, 2}, {2, 1, 3}, {2, 0, 1}});
  TaskConfig task = paper_task(2);
  task.objective = Objective::predict;
  CeilingRequest request;
  request.samples = 50;
  const PredictCeiling c = predict_ceiling(GapTask(test::sampler(automaton, 30), task), request);
  EXPECT_NEAR(c.kl, 0, 1e-12);
  EXPECT_NEAR(c.kl_counted, 0, 1e-12);
  EXPECT_GT(c.accuracy, 0.5);
  EXPECT_LT(c.accuracy, 0.8);
  EXPECT_EQ(c.by_position.size(), 29U);
  EXPECT_EQ(c.kl_by_position.size(), 30U);
}

// Predicts the next symbol, but only after odd elements, and in every third sample only after the second.
class Masked final : public test::PartlyAsked {
 public:
  using PartlyAsked::PartlyAsked;
  void answers(const Batch& batch, int row, int32_t* out) const override {
    all_.answers(batch, row, out);
    for (int e = 0; e < batch.elements; ++e)
      if (!asks(batch.samples[static_cast<size_t>(row)], e)) out[e] = -1;
  }
  bool has_law() const override { return true; }
  void law(int32_t state, double* over_answers) const override { all_.law(state, over_answers); }
  std::unique_ptr<Oracle> oracle(Split split) const override { return all_.oracle(split); }

  static bool asks(uint64_t sample, int element) { return sample % 3 == 0 ? element == 1 : element % 2 == 1; }
};

TEST(PredictCeiling, IsOverTheElementsThatHaveAnAnswer) {
  TaskConfig config;
  config.objective = Objective::predict;
  config.test = {.law = GapLaw::constant, .probability = 0.4, .content = GapContent::forbidden_symbol};
  constexpr int kElements = 9, kSamples = 40;
  const GapTask every(test::sampler(test::forked(), kElements), config);
  const Masked masked(every);
  CeilingRequest request;
  double right = 0, asked = 0;  // from the ceilings of single samples
  std::vector<double> right_at(kElements, 0.0), asked_at(kElements, 0.0);
  request.samples = 1;
  for (int i = 0; i < kSamples; ++i) {
    request.first = static_cast<uint64_t>(i);
    const PredictCeiling one = predict_ceiling(every, request);
    for (int e = 0; e + 1 < kElements; ++e) {
      if (!Masked::asks(request.first, e)) continue;
      const auto at = static_cast<size_t>(e);
      right += one.by_position[at];
      right_at[at] += one.by_position[at];
      ++asked;
      ++asked_at[at];
    }
  }
  request.first = 0;
  request.samples = kSamples;
  const PredictCeiling c = predict_ceiling(masked, request), all = predict_ceiling(every, request);
  EXPECT_NEAR(c.accuracy, right / asked, 1e-12);
  EXPECT_GT(std::abs(c.accuracy - all.accuracy), 1e-3) << "the mask makes a difference";
  EXPECT_LE(c.accuracy, c.upper_bound + 1e-12);
  EXPECT_EQ(c.kl, all.kl) << "every element has a law";
  ASSERT_EQ(c.by_position.size(), 8U);
  for (size_t e = 0; e < c.by_position.size(); ++e) {
    if (asked_at[e] == 0) {
      EXPECT_TRUE(std::isnan(c.by_position[e])) << e;
    } else {
      EXPECT_NEAR(c.by_position[e], right_at[e] / asked_at[e], 1e-12) << e;
    }
  }
}

TEST(PredictCeiling, DoesNotDependOnThreadsAndMarksInexactCeilings) {
  TaskConfig task = paper_task(3);
  task.objective = Objective::predict;
  task.test.start = 0;
  CeilingRequest request;
  request.samples = 600;
  request.threads = 1;
  const auto sampler = test::sampler(test::forked(), 20);
  const PredictCeiling one = predict_ceiling(GapTask(sampler, task), request);
  request.threads = 3;
  const PredictCeiling three = predict_ceiling(GapTask(sampler, task), request);
  EXPECT_EQ(one.accuracy, three.accuracy);
  EXPECT_EQ(one.kl, three.kl);
  EXPECT_EQ(one.kl_by_position, three.kl_by_position);
  EXPECT_TRUE(one.exact);
  task.noise = 1.5;
  EXPECT_FALSE(predict_ceiling(GapTask(sampler, task), request).exact);
  request.samples = 0;
  EXPECT_THROW(predict_ceiling(GapTask(sampler, task), request), Error);
}

}  // namespace
}  // namespace sb
