#include "tasks/ceiling.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "base/parallel.h"
#include "tasks/running_mean.h"

namespace sb {
namespace {

constexpr size_t kRoundSamples = 512;     // maximum samples in memory
constexpr double kRoundFrames = 1 << 15;  // frames per thread
constexpr double kNotAsked = -1;          // instead of a probability, for an element without an answer
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Means over the asked elements of one sample.
struct SampleFigures {
  double asked = 0;  // share of all elements
  double accuracy = 0;
  double filter_accuracy = 0;
  double upper_bound = 0;
  double realised = 0;
  double last_frame = 0;
  std::optional<double> log_likelihood = {};
};

}  // namespace

std::unique_ptr<Oracle> expect_oracle(const Task& task, Split split) {
  std::unique_ptr<Oracle> oracle = task.oracle(split);
  if (!oracle) throw bad_input("ceiling", "no ceiling: this task has no oracle");
  return oracle;
}

size_t samples_a_round(const Task& task, Split split, int threads) {
  const double workers = thread_count(threads, kRoundSamples);
  const double fitting = workers * kRoundFrames / std::max(1.0, task.mean_frames(split));
  return static_cast<size_t>(std::clamp(fitting, workers, static_cast<double>(kRoundSamples)));
}

void expect_asked(const Ceiling& ceiling) {
  if (ceiling.asked == 0)
    throw bad_input("ceiling", formatted("no ceiling: no element has an answer (samples: {})", ceiling.samples));
}

Ceiling exact_ceiling(const Task& task, const CeilingRequest& request) {
  if (request.samples == 0) throw bad_input("ceiling", "samples, expected at least 1, got 0");
  const auto elements = static_cast<size_t>(task.shape().elements);
  Ceiling out;
  out.samples = request.samples;
  out.exact = expect_oracle(task, request.split)->exact();
  out.by_position.assign(elements, 0.0);
  out.entropy_by_position.assign(elements, 0.0);
  RunningMean accuracy, filter_accuracy, upper_bound, realised, last_frame, entropy_rate;
  std::vector<double> asked(elements, 0.0);  // samples that ask for the element
  const size_t most = samples_a_round(task, request.split, request.threads);
  const size_t grain = even_grain(most, request.threads);
  for (uint64_t done = 0; done < request.samples;) {
    const size_t round = static_cast<size_t>(std::min<uint64_t>(most, request.samples - done));
    std::vector<SampleFigures> figures(round);
    std::vector<double> probability(round * elements), entropy(round * elements);
    parallel_for(round, grain, request.threads, [&](size_t begin, size_t end) {
      const std::unique_ptr<Oracle> oracle = task.oracle(request.split);
      Batch batch;
      std::vector<int32_t> answers(elements);
      for (size_t i = begin; i < end; ++i) {
        task.fill(request.split, request.first + done + i, 1, batch);
        task.answers(batch, 0, answers.data());
        const auto count = static_cast<double>(elements - std::count(answers.begin(), answers.end(), -1));
        const double share = 1.0 / count;
        figures[i].asked = count / static_cast<double>(elements);
        const std::vector<ElementBelief> beliefs = follow(*oracle, batch, 0);
        figures[i].log_likelihood = oracle->log_likelihood();
        for (size_t e = 0; e < elements; ++e) {
          if (answers[e] < 0) {
            probability[i * elements + e] = kNotAsked;
            continue;
          }
          const ElementBelief& b = beliefs[e];
          probability[i * elements + e] = b.summed_probability;
          entropy[i * elements + e] = b.given_segment.entropy;
          figures[i].accuracy += share * b.summed_probability;
          figures[i].upper_bound += share * b.given_segment.probability;
          figures[i].filter_accuracy += b.summed_best == answers[e] ? share : 0;
          figures[i].realised += b.given_segment.best == answers[e] ? share : 0;
          figures[i].last_frame += b.causal.best == answers[e] ? share : 0;
        }
      }
    });
    for (size_t i = 0; i < round; ++i) {
      accuracy.add(figures[i].accuracy, figures[i].asked);
      upper_bound.add(figures[i].upper_bound, figures[i].asked);
      filter_accuracy.add(figures[i].filter_accuracy, figures[i].asked);
      realised.add(figures[i].realised, figures[i].asked);
      last_frame.add(figures[i].last_frame, figures[i].asked);
      if (figures[i].log_likelihood) entropy_rate.add(-*figures[i].log_likelihood / static_cast<double>(elements));
      for (size_t e = 0; e < elements; ++e) {
        if (probability[i * elements + e] == kNotAsked) continue;
        ++asked[e];
        out.by_position[e] += probability[i * elements + e];
        out.entropy_by_position[e] += entropy[i * elements + e];
      }
    }
    done += round;
    if (request.progress) request.progress(done);
  }
  const double cells = std::accumulate(asked.begin(), asked.end(), 0.0);
  out.asked = static_cast<uint64_t>(cells);
  const auto share_of = [](const RunningMean& mean) { return std::min(1.0, mean.mean()); };  // rounding can exceed 1
  out.accuracy = share_of(accuracy);
  out.stderr_ = accuracy.error();
  out.upper_bound = share_of(upper_bound);
  out.realised = share_of(realised);
  out.filter_accuracy = share_of(filter_accuracy);
  out.filter_stderr = filter_accuracy.error();
  out.last_frame_accuracy = share_of(last_frame);
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
