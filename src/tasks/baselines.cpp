#include "tasks/baselines.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/parallel.h"
#include "tasks/ceiling.h"
#include "tasks/filter_core.h"
#include "tasks/summed_posterior.h"

namespace sb {
namespace {

constexpr double kBackoff = 0.5;  // b of the header
constexpr double kTablePrune = 1e-4;
constexpr uint64_t kDrawnAtOnce = 4096;  // training samples in memory at a time

// What labelled samples tell of transitions: counts per pair of states, starts as transitions from '#'.
struct Counts {
  Counts(const Language& language, uint64_t samples, int threads, const std::function<void()>& poll = {}) {
    const auto states = static_cast<size_t>(language.states());
    std::unordered_map<uint32_t, uint32_t> seen;  // source << 16 | destination
    leaving.assign(states, 0.0);
    share.assign(states, 1.0);  // one extra visit each, so that no state is impossible
    for (uint64_t first = 0; first < samples; first += kDrawnAtOnce) {
      if (poll) poll();
      const SampleBlock block =
          language.block(Split::train, first, std::min<uint64_t>(kDrawnAtOnce, samples - first), threads);
      for (size_t i = 0; i < block.count(); ++i) {
        const uint16_t* sample = block.sample(i);
        auto before = static_cast<uint32_t>(language.end());
        for (int e = 0; e < block.length; ++e) {
          ++seen[before << 16 | sample[e]];
          leaving[before] += 1;
          share[sample[e]] += 1;
          before = sample[e];
        }
      }
    }
    const double total = static_cast<double>(samples * static_cast<size_t>(language.length()) + states);
    for (double& s : share) s /= total;
    std::vector<std::pair<uint64_t, uint32_t>> sorted;
    for (const auto& [pair, count] : seen) sorted.emplace_back(order(language, pair), count);
    std::sort(sorted.begin(), sorted.end());
    row.assign(states + 1, 0);
    for (const auto& [key, count] : sorted) {
      const auto dst = static_cast<int32_t>(key & 0xffff);
      edges.push_back({language.symbols()[dst], dst, static_cast<double>(count)});
      ++row[(key >> 48) + 1];
    }
    for (size_t s = 0; s < states; ++s) row[s + 1] += row[s];
    by_class.resize(static_cast<size_t>(language.classes()));
    for (size_t s = 0; s < states; ++s) by_class[language.symbols()[s]].push_back(static_cast<int32_t>(s));
    unseen.assign(states * static_cast<size_t>(language.classes()), 1);
    unseen_count.assign(states, language.classes());
    for (size_t s = 0; s < states; ++s) {
      if (static_cast<int32_t>(s) == language.end()) continue;  // after '#' any symbol may be a wrong one
      for (int edge = row[s]; edge < row[s + 1]; ++edge) {
        char& flag = unseen[s * static_cast<size_t>(language.classes()) + edges[edge].symbol];
        unseen_count[s] -= flag;
        flag = 0;
      }
    }
  }

  static uint64_t order(const Language& language, uint32_t pair) {
    const uint64_t symbol = static_cast<uint64_t>(language.symbols()[pair & 0xffff]);
    return static_cast<uint64_t>(pair >> 16) << 48 | symbol << 16 | (pair & 0xffff);
  }

  struct Edge {
    int32_t symbol;
    int32_t dst;
    double count;
  };
  std::vector<Edge> edges;  // by source, then class, then destination
  std::vector<int32_t> row;
  std::vector<double> leaving;  // transitions seen from each state
  std::vector<double> share;    // of all elements
  std::vector<std::vector<int32_t>> by_class;
  std::vector<char> unseen;  // [states][vocab]
  std::vector<int32_t> unseen_count;
};

class TableModel {
 public:
  TableModel(const Language& language, const Counts& counts)
      : end_(language.end()), classes_(language.classes()), ids_(language.ids().data()), counts_(&counts) {}
  int32_t end() const { return end_; }
  int32_t id(int32_t state) const { return ids_[state]; }
  bool may_gap(int32_t state) const { return counts_->unseen_count[state] > 0; }
  double wrong(int32_t state, int16_t symbol) const {
    const bool possible = counts_->unseen[static_cast<size_t>(state) * classes_ + symbol] != 0;
    return possible ? 1.0 / counts_->unseen_count[state] : 0;
  }
  template <class Emit>
  void successors(int32_t state, int32_t /*used*/, int16_t symbol, const Emit& emit) const {
    const auto end = counts_->edges.begin() + counts_->row[state + 1];
    auto edge = std::lower_bound(counts_->edges.begin() + counts_->row[state], end, symbol,
                                 [](const Counts::Edge& a, int16_t c) { return a.symbol < c; });
    const double total = counts_->leaving[state] + kBackoff;
    if (edge != end && edge->symbol == symbol) {
      for (; edge != end && edge->symbol == symbol; ++edge) emit(edge->dst, edge->count / total);
      return;
    }
    for (const int32_t next : counts_->by_class[symbol]) emit(next, kBackoff * counts_->share[next] / total);
  }

 private:
  int32_t end_;
  int classes_;
  const int32_t* ids_;
  const Counts* counts_;
};

double table_accuracy(const GapTask& task, const Counts& counts, Split split, uint64_t first, uint64_t samples,
                      int threads, const std::function<void()>& poll = {}) {
  const Language& language = task.language();
  const size_t round = samples_a_round(task, split, threads);
  const size_t grain = even_grain(round, threads);
  std::vector<uint64_t> right(round);
  uint64_t total = 0;
  for (uint64_t from = 0; from < samples; from += round) {
    if (poll) poll();
    const size_t count = std::min<uint64_t>(round, samples - from);
    const SampleBlock test = language.block(split, first + from, count, threads);
    right.assign(count, 0);
    parallel_for(count, grain, threads, [&](size_t begin, size_t end) {
      const TableModel model(language, counts);
      FilterCore<TableModel> core(model, task.gaps().law(split), 0, kTablePrune);
      SummedPosterior summed(language.states());
      Batch batch;
      for (size_t i = begin; i < end; ++i) {
        task.fill(split, test, i, 1, batch);
        core.reset();
        for (int e = 0; e < batch.elements; ++e) {
          for (int t = batch.start[e]; t < batch.start[e + 1]; ++t) {
            // A class never seen after a state may still follow it; then no hypothesis explains the frame.
            if (!core.frame(batch.symbol[t]) && !core.frame_without_law(batch.symbol[t])) {
              throw check_failed("baselines", "the table learner lost the sample");
            }
            core.visit(-1, [&](int32_t state, double p) { summed.add(language.ids()[static_cast<size_t>(state)], p); });
          }
          right[i] += summed.take_best() == batch.state[e] ? 1 : 0;
        }
      }
    });
    for (const uint64_t r : right) total += r;
  }
  return static_cast<double>(total) / (static_cast<double>(samples) * language.length());
}

}  // namespace

Baselines baselines(std::shared_ptr<const Language> language, const TaskConfig& config, uint64_t train_samples,
                    uint64_t test_samples, int threads, Split split, uint64_t first,
                    const std::function<void()>& poll) {
  expect_samples(train_samples, "training samples");
  expect_samples(test_samples, "test samples");
  NgramRequest ask;
  ask.train_samples = train_samples;
  ask.valid_samples = test_samples;
  ask.test = split;
  ask.first_test = first;
  ask.test_samples = test_samples;
  ask.threads = threads;
  ask.poll = poll;
  const NgramFigures grams = count_ngrams(language, config, ask);
  const GapTask task(language, config);
  const Counts counts(*language, train_samples, threads, poll);
  Baselines out;
  out.chance = 1.0 / language->states();
  out.majority = grams.majority;
  out.n_gram = grams.test;
  out.n = grams.n;
  out.n_gram_stderr = grams.stderr_;
  out.table_learner = table_accuracy(task, counts, split, first, test_samples, threads, poll);
  out.train_samples = train_samples;
  out.test_samples = test_samples;
  return out;
}

}  // namespace sb
