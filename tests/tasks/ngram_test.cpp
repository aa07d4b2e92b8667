#include "tasks/ngram.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>

#include "base/error.h"
#include "tasks/automata.h"

namespace sb {
namespace {

NgramRequest ask(uint64_t train, uint64_t valid, uint64_t test, int threads = 1) {
  NgramRequest out;
  out.train_samples = train;
  out.valid_samples = valid;
  out.test_samples = test;
  out.threads = threads;
  return out;
}

// The same from the frames of batches, with one map of contexts.
class PlainNgrams {
 public:
  PlainNgrams(const GapTask& task, uint64_t train) : task_(task) {
    each_element(Split::train, 0, train, [&](uint64_t, const std::vector<int>& shown, int32_t id) {
      for (int n = 0; n <= kMaxGram; ++n) ++counts_[context(shown, n)][id];
    });
  }

  // Rights of the n-gram by sample.
  std::vector<int> right(Split split, uint64_t first, uint64_t samples, int n) const {
    std::vector<int> out(samples, 0);
    each_element(split, first, samples,
                 [&](uint64_t i, const std::vector<int>& shown, int32_t id) { out[i] += answer(shown, n) == id; });
    return out;
  }

 private:
  static std::vector<int> context(const std::vector<int>& shown, int n) {
    std::vector<int> out(static_cast<size_t>(n), -1);
    for (size_t back = 1; back <= out.size() && back <= shown.size(); ++back)
      out[out.size() - back] = shown[shown.size() - back];
    return out;
  }

  int32_t answer(const std::vector<int>& shown, int n) const {
    for (;; --n) {
      const auto found = counts_.find(context(shown, n));
      if (found == counts_.end()) continue;
      int32_t best = -1;
      int most = 0;
      for (const auto& [id, count] : found->second)
        if (count > most) {
          best = id;
          most = count;
        }
      return best;
    }
  }

  template <class Visit>
  void each_element(Split split, uint64_t first, uint64_t samples, const Visit& visit) const {
    Batch batch;
    for (uint64_t i = 0; i < samples; ++i) {
      task_.fill(split, first + i, 1, batch);
      std::vector<int> shown;
      for (int t = 0; t < batch.real_frames(0); ++t) {
        if (batch.symbol[t] >= 0) shown.push_back(batch.symbol[t]);
        if (batch.gap[t] == 0) visit(i, shown, batch.target[t]);
      }
    }
  }

  const GapTask& task_;
  std::map<std::vector<int>, std::map<int32_t, int>> counts_;
};

void expect_plain(const std::shared_ptr<const Language>& language, const TaskConfig& config, uint64_t train) {
  constexpr uint64_t valid = 9, first = 4, test = 7;
  NgramRequest request = ask(train, valid, test, 2);
  request.first_test = first;
  const NgramFigures found = count_ngrams(language, config, request);
  const GapTask task(language, config);
  const PlainNgrams plain(task, train);
  const double length = language->length();
  const auto mean = [&](const std::vector<int>& right) {
    double sum = 0;
    for (const int r : right) sum += r;
    return sum / (length * static_cast<double>(right.size()));
  };
  int best = 1;
  for (int n = 1; n <= kMaxGram; ++n) {
    SCOPED_TRACE("n " + std::to_string(n));
    const size_t at = static_cast<size_t>(n) - 1;
    EXPECT_DOUBLE_EQ(found.valid[at], mean(plain.right(Split::valid, 0, valid, n)));
    EXPECT_DOUBLE_EQ(found.test[at], mean(plain.right(Split::test, first, test, n)));
    if (found.valid[at] > found.valid[static_cast<size_t>(best) - 1]) best = n;
  }
  EXPECT_EQ(found.n, best) << "on valid, the least of equals";
  EXPECT_DOUBLE_EQ(found.majority, mean(plain.right(Split::test, first, test, 0)));
  const std::vector<int> right = plain.right(Split::test, first, test, found.n);
  double squares = 0;
  for (const int r : right) squares += std::pow(r / length - found.accuracy(), 2);
  EXPECT_NEAR(found.stderr_, std::sqrt(squares / (test - 1) / test), 1e-12);
}

TEST(Ngram, MatchesPlainContextCounts) {
  for (const uint64_t train : {1, 5, 60}) {
    SCOPED_TRACE(train);
    for (const auto& automaton : {test::twins(), test::forked(), build_automaton({9, 8, 12, -1, 4, 1})})
      for (const int task : {0, 1, 2, 3}) {
        SCOPED_TRACE("task " + std::to_string(task));
        TaskConfig config = paper_task(task);
        if (task == 3) config.train.start = config.test.start = 3;
        expect_plain(test::sampler(automaton, 25), config, train);
      }
  }
}

TEST(Ngram, MatchesPlainCountsForManySymbols) {
  expect_plain(test::sampler(build_automaton({400, 200, 3, -1, 4, 1}), 30), paper_task(3), 40);
}

TEST(Ngram, FallsBackToLongestKnownContext) {
  // Strings are 1 2 3 #; classes of 2 and 3 are the same.
  const auto language = test::sampler(test::automaton(3, {0, 1, 2, 2}, {1}, {{1, 2, 1}, {2, 3, 1}, {3, 0, 1}}), 40);
  const NgramFigures found = count_ngrams(language, paper_task(0), ask(1, 5, 5));
  EXPECT_DOUBLE_EQ(found.test[0], 0.75) << "equal counts: the lower id, right half of the time";
  EXPECT_DOUBLE_EQ(found.test[1], 1);
  EXPECT_DOUBLE_EQ(found.test[kMaxGram - 1], 1);
  EXPECT_EQ(found.n, 2) << "the least of equals";
  EXPECT_DOUBLE_EQ(found.stderr_, 0);
}

TEST(Ngram, DoesNotDependOnBlanksAndNoise) {
  const auto language = test::sampler(test::forked(), 50);
  const auto of = [&](const TaskConfig& task) { return count_ngrams(language, task, ask(50, 20, 20)).test; };
  for (const int task : {0, 2, 4}) EXPECT_EQ(of(paper_task(1)), of(paper_task(task)));
  EXPECT_EQ(canonical_text(symbols_only(paper_task(1))), canonical_text(symbols_only(paper_task(4))));
  EXPECT_NE(canonical_text(symbols_only(paper_task(1))), canonical_text(symbols_only(paper_task(3))));
}

TEST(Ngram, WrongSymbolsReduceAccuracy) {
  const auto language = test::sampler(build_automaton({9, 8, 12, -1, 4, 1}), 100);
  TaskConfig often = paper_task(3);
  often.train.probability = often.test.probability = 0.5;
  const NgramRequest request = ask(2000, 50, 50);
  const double clean = count_ngrams(language, paper_task(1), request).accuracy(),
               few = count_ngrams(language, paper_task(3), request).accuracy(),
               many = count_ngrams(language, often, request).accuracy();
  EXPECT_LT(few, clean);
  EXPECT_LT(many, few);
}

TEST(Ngram, DoesNotDependOnThreads) {
  const auto language = test::sampler(build_automaton({9, 8, 12, -1, 4, 1}), 60);
  const auto with = [&](int threads) { return count_ngrams(language, paper_task(3), ask(300, 80, 80, threads)); };
  const NgramFigures one = with(1);
  for (const int threads : {2, 3, 7}) {
    const NgramFigures many = with(threads);
    EXPECT_EQ(one.valid, many.valid);
    EXPECT_EQ(one.test, many.test);
    EXPECT_EQ(one.n, many.n);
    EXPECT_EQ(one.stderr_, many.stderr_);
    EXPECT_EQ(one.majority, many.majority);
  }
}

TEST(Ngram, CanBeStoppedAtAnyPoll) {
  const auto language = test::sampler(test::forked(), 30);
  int calls = 0;
  NgramRequest request = ask(300, 80, 80);
  request.poll = [&] { ++calls; };
  count_ngrams(language, paper_task(1), request);
  for (const int last : {1, calls / 2, calls}) {
    struct Enough {};
    int left = last;
    request.poll = [&] {
      if (--left == 0) throw Enough{};
    };
    EXPECT_THROW(count_ngrams(language, paper_task(1), request), Enough) << "call " << last << " of " << calls;
  }
}

TEST(Ngram, RejectsZeroOrTooManySamples) {
  const auto language = test::sampler(test::forked(), 30);
  EXPECT_THROW(count_ngrams(language, paper_task(0), ask(0, 1, 1)), Error);
  EXPECT_THROW(count_ngrams(language, paper_task(0), ask(1, 0, 1)), Error);
  EXPECT_THROW(count_ngrams(language, paper_task(0), ask(1, 1, 0)), Error);
  const uint64_t most = most_counted_samples(*gap_ngrams(language, paper_task(0)));
  EXPECT_GT(most, 1'000'000U);
  EXPECT_THROW(count_ngrams(language, paper_task(0), ask(most + 1, 1, 1)), Error);
}

}  // namespace
}  // namespace sb
