#include "tasks/ceiling.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/format.h"
#include "tasks/running_mean.h"
#include "tasks/sample_rounds.h"

namespace sb {
namespace {

constexpr size_t kRound = 512;            // most samples held in memory at once
constexpr double kRoundFrames = 1 << 15;  // a thread
constexpr double kNotAsked = -1;          // instead of a probability
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Means over the asked elements of one sample.
struct SampleFigures {
  double asked = 0;  // share of all elements
  double accuracy = 0;
  double filter_accuracy = 0;
  double upper_bound = 0;
  std::optional<double> log_likelihood = {};
  std::vector<double> probability, entropy;  // [elements]
};

class FilterWalk {
 public:
  FilterWalk(const Task& task, Split split)
      : task_(task), split_(split), oracle_(task.oracle(split)), answers_(static_cast<size_t>(task.shape().elements)) {}

  SampleFigures operator()(uint64_t sample) {
    const size_t elements = answers_.size();
    task_.fill(split_, sample, 1, batch_);
    task_.answers(batch_, 0, answers_.data());
    const auto count = static_cast<double>(elements - std::count(answers_.begin(), answers_.end(), -1));
    const double share = 1.0 / count;
    const std::vector<ElementBelief> beliefs = follow(*oracle_, batch_, 0);
    SampleFigures out;
    out.asked = count / static_cast<double>(elements);
    out.log_likelihood = oracle_->log_likelihood();
    out.probability.assign(elements, kNotAsked);
    out.entropy.assign(elements, 0.0);
    for (size_t e = 0; e < elements; ++e) {
      if (answers_[e] < 0) continue;
      const ElementBelief& b = beliefs[e];
      out.probability[e] = b.summed_probability;
      out.entropy[e] = b.given_segment.entropy;
      out.accuracy += share * b.summed_probability;
      out.upper_bound += share * b.given_segment.probability;
      out.filter_accuracy += b.summed_best == answers_[e] ? share : 0;
    }
    return out;
  }

 private:
  const Task& task_;
  Split split_;
  std::unique_ptr<Oracle> oracle_;
  std::vector<int32_t> answers_;
  Batch batch_;
};

}  // namespace

std::unique_ptr<Oracle> expect_oracle(const Task& task, Split split) {
  std::unique_ptr<Oracle> oracle = task.oracle(split);
  if (!oracle) throw bad_input("ceiling", "no ceiling: this task has no oracle");
  return oracle;
}

size_t samples_a_round(const Task& task, Split split, int threads) {
  const double workers = thread_count(threads, kRound);
  const double fitting = workers * kRoundFrames / std::max(1.0, task.mean_frames(split));
  return static_cast<size_t>(std::clamp(fitting, workers, static_cast<double>(kRound)));
}

void expect_asked(const Ceiling& ceiling) {
  if (ceiling.asked == 0)
    throw bad_input("ceiling", formatted("no ceiling: no element has an answer (samples: {})", ceiling.samples));
}

Ceiling exact_ceiling(const Task& task, const CeilingRequest& request) {
  const auto elements = static_cast<size_t>(task.shape().elements);
  Ceiling out;
  out.samples = request.samples;
  out.exact = expect_oracle(task, request.split)->exact();
  out.by_position.assign(elements, 0.0);
  out.entropy_by_position.assign(elements, 0.0);
  RunningMean accuracy, filter_accuracy, upper_bound, entropy_rate;
  std::vector<double> asked(elements, 0.0);  // samples that ask for the element
  const auto walk = [&] { return FilterWalk(task, request.split); };
  for_each_sample(task, request, walk, [&](const SampleFigures& one) {
    accuracy.add(one.accuracy, one.asked);
    upper_bound.add(one.upper_bound, one.asked);
    filter_accuracy.add(one.filter_accuracy, one.asked);
    if (one.log_likelihood) entropy_rate.add(-*one.log_likelihood / static_cast<double>(elements));
    for (size_t e = 0; e < elements; ++e) {
      if (one.probability[e] == kNotAsked) continue;
      ++asked[e];
      out.by_position[e] += one.probability[e];
      out.entropy_by_position[e] += one.entropy[e];
    }
  });
  const double cells = std::accumulate(asked.begin(), asked.end(), 0.0);
  out.asked = static_cast<uint64_t>(cells);
  const auto share_of = [](const RunningMean& mean) { return std::min(1.0, mean.mean()); };  // sums of shares round up
  out.accuracy = share_of(accuracy);
  out.stderr_ = accuracy.error();
  out.upper_bound = share_of(upper_bound);
  out.filter_accuracy = share_of(filter_accuracy);
  out.filter_stderr = filter_accuracy.error();
  if (entropy_rate.count() > 0) {
    out.entropy_rate = entropy_rate.mean();
    out.entropy_rate_stderr = entropy_rate.error();
  }
  for (size_t e = 0; e < elements; ++e) {
    if (asked[e] > 0) out.mean_entropy += out.entropy_by_position[e] / cells;
    out.by_position[e] = asked[e] == 0 ? kNone : std::min(1.0, out.by_position[e] / asked[e]);
    out.entropy_by_position[e] = asked[e] == 0 ? kNone : out.entropy_by_position[e] / asked[e];
  }
  return out;
}

}  // namespace sb
