#include "tasks/ceiling.h"

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"
#include "tasks/running_mean.h"

namespace sb {
namespace {

constexpr size_t kRound = 512;            // most samples held in memory at once
constexpr double kRoundFrames = 1 << 15;  // a thread
constexpr size_t kGrain = 16;

// Means over the elements of one sample.
struct SampleFigures {
  double accuracy = 0;
  double filter_accuracy = 0;
  double upper_bound = 0;
  double realised = 0;
  double last_frame = 0;
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

Ceiling exact_ceiling(const Task& task, const CeilingRequest& request) {
  if (request.samples == 0) throw bad_input("ceiling", "samples, expected at least 1, got 0");
  const auto elements = static_cast<size_t>(task.shape().elements);
  Ceiling out;
  out.samples = request.samples;
  out.exact = expect_oracle(task, request.split)->exact();
  out.by_position.assign(elements, 0.0);
  out.entropy_by_position.assign(elements, 0.0);
  RunningMean accuracy, filter_accuracy, upper_bound, realised, last_frame;
  const double share = 1.0 / static_cast<double>(elements);
  const size_t most = samples_a_round(task, request.split, request.threads);
  const size_t grain = std::clamp<size_t>(most / static_cast<size_t>(thread_count(request.threads, most)), 1, kGrain);
  for (uint64_t done = 0; done < request.samples;) {
    const size_t round = static_cast<size_t>(std::min<uint64_t>(most, request.samples - done));
    std::vector<SampleFigures> figures(round);
    std::vector<double> probability(round * elements), entropy(round * elements);
    parallel_for(round, grain, request.threads, [&](size_t begin, size_t end) {
      const std::unique_ptr<Oracle> oracle = task.oracle(request.split);
      Batch batch;
      for (size_t i = begin; i < end; ++i) {
        task.fill(request.split, request.first + done + i, 1, batch);
        const std::vector<ElementBelief> beliefs = follow(*oracle, batch, 0);
        for (size_t e = 0; e < elements; ++e) {
          const ElementBelief& b = beliefs[e];
          probability[i * elements + e] = b.summed_probability;
          entropy[i * elements + e] = b.given_segment.entropy;
          figures[i].accuracy += share * b.summed_probability;
          figures[i].upper_bound += share * b.given_segment.probability;
          figures[i].filter_accuracy += b.summed_best == b.state ? share : 0;
          figures[i].realised += b.given_segment.best == b.state ? share : 0;
          figures[i].last_frame += b.causal.best == b.state ? share : 0;
        }
      }
    });
    for (size_t i = 0; i < round; ++i) {
      accuracy.add(figures[i].accuracy);
      upper_bound.add(figures[i].upper_bound);
      filter_accuracy.add(figures[i].filter_accuracy);
      realised.add(figures[i].realised);
      last_frame.add(figures[i].last_frame);
      for (size_t e = 0; e < elements; ++e) {
        out.by_position[e] += probability[i * elements + e];
        out.entropy_by_position[e] += entropy[i * elements + e];
      }
    }
    done += round;
    if (request.progress) request.progress(done);
  }
  const auto samples = static_cast<double>(request.samples);
  const double cells = samples * static_cast<double>(elements);
  const auto share_of = [](const RunningMean& mean) { return std::min(1.0, mean.mean()); };  // sums of shares round up
  out.accuracy = share_of(accuracy);
  out.stderr_ = accuracy.error();
  out.upper_bound = share_of(upper_bound);
  out.realised = share_of(realised);
  out.filter_accuracy = share_of(filter_accuracy);
  out.filter_stderr = filter_accuracy.error();
  out.last_frame_accuracy = share_of(last_frame);
  for (size_t e = 0; e < elements; ++e) {
    out.mean_entropy += out.entropy_by_position[e] / cells;
    out.by_position[e] = std::min(1.0, out.by_position[e] / samples);
    out.entropy_by_position[e] /= samples;
  }
  return out;
}

}  // namespace sb
