// The filter against enumeration of everything that can happen: strings, their concatenation, gaps and wrong symbols.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "../base/expect.h"
#include "base/error.h"
#include "tasks/automata.h"
#include "tasks/filter.h"

namespace sb {
namespace {

using Frames = std::vector<int16_t>;
using Weights = std::vector<double>;  // by state id

struct String {
  std::vector<int> states;
  double probability;
};

class Enumeration {
 public:
  Enumeration(const Automaton& automaton, const GapConfig& gap, int length)
      : a_(automaton), gap_(gap), length_(length), forbidden_(test::forbidden(automaton)), law_(gap_length_law(gap)) {
    for (const int s : a_.start) grow({s}, 1.0 / static_cast<double>(a_.start.size()));
    double accepted = 0;
    for (const String& string : strings_) accepted += string.probability;
    for (String& string : strings_) string.probability /= accepted;
    concatenate({}, 1);
    for (const auto& [states, probability] : samples_) element(states, 0, {}, {}, {}, probability);
  }

  std::map<Frames, Weights> label;                             // after these frames: joint weight of the label's id
  std::map<std::pair<Frames, int>, Weights> label_of_segment;  // … and of an element of 1 + n frames that ends here

 private:
  void grow(std::vector<int> states, double probability) {
    if (static_cast<int>(states.size()) > length_) return;
    const int last = states.back();
    if (last == a_.end) {
      strings_.push_back({states, probability});
      return;
    }
    for (int edge = a_.row[last]; edge < a_.row[last + 1]; ++edge) {
      std::vector<int> longer = states;
      longer.push_back(a_.dst[edge]);
      grow(std::move(longer), probability * a_.prob[edge]);
    }
  }

  void concatenate(const std::vector<int>& states, double probability) {
    if (static_cast<int>(states.size()) >= length_) {
      samples_[{states.begin(), states.begin() + length_}] += probability;
      return;
    }
    for (const String& string : strings_) {
      std::vector<int> longer = states;
      longer.insert(longer.end(), string.states.begin(), string.states.end());
      concatenate(longer, probability * string.probability);
    }
  }

  // Adds every way the elements from e on can look. `labels` and `ends` describe the frames so far.
  void element(const std::vector<int>& states, size_t e, Frames frames, std::vector<int> labels,
               std::vector<std::pair<size_t, int>> ends, double probability) {
    if (e == states.size()) {
      record(frames, labels, ends, probability);
      return;
    }
    const int s = states[e];
    frames.push_back(static_cast<int16_t>(a_.symbol[s]));
    labels.push_back(a_.id[s]);
    const bool wrong = gap_.content == GapContent::forbidden_symbol;
    const bool gapped =
        gap_.law != GapLaw::none && static_cast<int>(e) >= gap_.start && !(wrong && forbidden_[s].empty());
    for (size_t n = 0; n < law_.size(); ++n) {
      const double chance =
          gapped ? gap_.probability * law_[n] + (n == 0 ? 1 - gap_.probability : 0) : (n == 0 ? 1 : 0);
      if (chance == 0) continue;
      std::vector<Frames> contents{{}};
      for (size_t i = 0; i < n; ++i) {
        std::vector<Frames> longer;
        for (const Frames& content : contents) {
          for (const int32_t c : wrong ? forbidden_[s] : std::vector<int32_t>{kBlankFrame}) {
            longer.push_back(content);
            longer.back().push_back(static_cast<int16_t>(c));
          }
        }
        contents = std::move(longer);
      }
      for (const Frames& content : contents) {
        Frames more = frames;
        more.insert(more.end(), content.begin(), content.end());
        std::vector<int> more_labels = labels;
        more_labels.insert(more_labels.end(), n, a_.id[s]);
        auto more_ends = ends;
        more_ends.emplace_back(more.size(), static_cast<int>(n));
        element(states, e + 1, std::move(more), std::move(more_labels), std::move(more_ends),
                probability * chance / static_cast<double>(contents.size()));
      }
    }
  }

  void record(const Frames& frames, const std::vector<int>& labels, const std::vector<std::pair<size_t, int>>& ends,
              double probability) {
    const auto states = static_cast<size_t>(a_.states());
    for (size_t t = 1; t <= frames.size(); ++t) {
      Weights& weights = label[{frames.begin(), frames.begin() + static_cast<ptrdiff_t>(t)}];
      weights.resize(states);
      weights[labels[t - 1]] += probability;
    }
    for (const auto& [t, n] : ends) {
      Weights& weights = label_of_segment[{{frames.begin(), frames.begin() + static_cast<ptrdiff_t>(t)}, n}];
      weights.resize(states);
      weights[labels[t - 1]] += probability;
    }
  }

  const Automaton& a_;
  const GapConfig& gap_;
  int length_;
  std::vector<std::vector<int32_t>> forbidden_;
  std::vector<double> law_;
  std::vector<String> strings_;
  std::map<std::vector<int>, double> samples_;
};

double total(const Weights& weights) {
  double sum = 0;
  for (const double w : weights) sum += w;
  return sum;
}

void expect_posterior(const Weights& joint, const Weights& posterior) {
  const double sum = total(joint);
  for (size_t id = 0; id < joint.size(); ++id) ASSERT_NEAR(posterior[id], joint[id] / sum, 1e-12);
}

void expect_filter_equals_enumeration(std::shared_ptr<const Automaton> automaton, const GapConfig& gap, int length) {
  const Enumeration all(*automaton, gap, length);
  TaskConfig task;
  task.test = gap;
  ExactFilter filter(test::sampler(automaton, length), task, Split::test);
  Weights posterior(static_cast<size_t>(automaton->states()));
  size_t longest = 0;
  for (const auto& [frames, joint] : all.label) {
    longest = std::max(longest, frames.size());
    filter.reset();
    for (const int16_t symbol : frames) filter.frame(symbol);
    filter.posterior(posterior.data());
    ASSERT_NO_FATAL_FAILURE(expect_posterior(joint, posterior));
    ASSERT_NEAR(filter.log_likelihood().value(), std::log(total(joint)), 1e-11);
    double entropy = 0;
    for (const double p : posterior) entropy -= p > 0 ? p * std::log(p) : 0;
    ASSERT_NEAR(filter.belief().entropy, entropy, 1e-12);
    ASSERT_EQ(posterior[filter.belief().best], *std::max_element(posterior.begin(), posterior.end()));
  }
  for (const auto& [key, joint] : all.label_of_segment) {
    filter.reset();
    for (const int16_t symbol : key.first) filter.frame(symbol);
    filter.posterior(posterior.data(), key.second);
    ASSERT_NO_FATAL_FAILURE(expect_posterior(joint, posterior));
  }
  EXPECT_LE(longest, 8U);
}

std::vector<std::shared_ptr<const Automaton>> automata() {
  std::vector<std::shared_ptr<const Automaton>> out{test::twins(), test::forked()};
  for (uint32_t seed = 1; seed <= 6; ++seed) out.push_back(test::random_automaton(seed));
  return out;
}

TEST(ExactFilter, EqualsEnumerationOnBareSequences) {
  for (const auto& automaton : automata()) {
    for (const int length : {2, 3, 5, 7}) expect_filter_equals_enumeration(automaton, {}, length);
  }
}

TEST(ExactFilter, EqualsEnumerationWithBlankGaps) {
  for (const auto& automaton : automata()) {
    expect_filter_equals_enumeration(automaton, {.law = GapLaw::constant}, 4);
    expect_filter_equals_enumeration(automaton, {.law = GapLaw::constant, .probability = 0.3, .start = 1}, 4);
    expect_filter_equals_enumeration(automaton,
                                     {.law = GapLaw::uniform, .min = 0, .max = 2, .probability = 0.7, .start = 2}, 4);
  }
}

TEST(ExactFilter, EqualsEnumerationWithForbiddenSymbols) {
  const GapContent content = GapContent::forbidden_symbol;
  for (const auto& automaton : automata()) {
    expect_filter_equals_enumeration(automaton,
                                     {.law = GapLaw::constant, .probability = 0.3, .start = 2, .content = content}, 5);
    expect_filter_equals_enumeration(automaton, {.law = GapLaw::constant, .probability = 0.6, .content = content}, 4);
    expect_filter_equals_enumeration(automaton, {.law = GapLaw::constant, .content = content}, 4);
    expect_filter_equals_enumeration(
        automaton, {.law = GapLaw::uniform, .min = 0, .max = 2, .probability = 0.5, .start = 2, .content = content}, 4);
    expect_filter_equals_enumeration(automaton,
                                     {.law = GapLaw::lognormal,
                                      .min = 0,
                                      .max = 2,
                                      .mu = 0.2,
                                      .sigma = 0.9,
                                      .probability = 0.8,
                                      .start = 2,
                                      .content = content},
                                     4);
  }
}

TEST(ExactFilter, RejectsFramesThatTheTaskCannotProduce) {
  const auto sampler = test::sampler(test::twins(), 5);
  ExactFilter bare(sampler, paper_task(0), Split::test);
  bare.frame(1);
  EXPECT_EQ(bare.live(), 2U);
  EXPECT_EQ(error_line([&] { bare.frame(3); }, Exit::check_failed),
            "[ceiling] frame 1 shows class 3, which this task cannot produce there");
  bare.reset();
  EXPECT_THROW(bare.frame(kBlankFrame), Error);
  ExactFilter gapped(sampler, paper_task(1), Split::test);
  gapped.frame(1);
  EXPECT_THROW(gapped.frame(2), Error) << "task 1 owes a blank";
}

TEST(ExactFilter, RejectsFramesAfterEndOfSample) {
  const auto sampler = test::sampler(test::twins(), 3);
  ExactFilter filter(sampler, paper_task(0), Split::test);
  for (const int16_t symbol : Frames{1, 0, 1}) filter.frame(symbol);
  EXPECT_THROW(filter.frame(0), Error);
}

TEST(ExactFilter, ListsPossibleStatesById) {
  ExactFilter filter(test::sampler(test::twins(), 9), paper_task(0), Split::test);
  filter.frame(1);
  std::vector<StateProbability> possible;
  filter.posterior(possible);
  ASSERT_EQ(possible.size(), 2U);
  EXPECT_EQ(possible[0].id, 4);
  EXPECT_EQ(possible[1].id, 5);
  EXPECT_NEAR(possible[0].probability + possible[1].probability, 1, 1e-15);
}

}  // namespace
}  // namespace sb
