#include "tasks/ceiling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/parallel.h"

namespace sb {
namespace {

constexpr size_t kRound = 512;  // samples held in memory at once
constexpr size_t kGrain = 16;

struct SampleFigures {
  double accuracy = 0;  // sums over elements
  double realised = 0;
  double filter_accuracy = 0;
  double last_frame_accuracy = 0;
};

}  // namespace

Ceiling exact_ceiling(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, const CeilingRequest& request) {
  if (request.samples == 0) throw bad_input("ceiling", "samples, expected at least 1, got 0");
  const BatchMaker maker(sampler, task);
  const auto elements = static_cast<size_t>(sampler->config().length);
  Ceiling out;
  out.samples = request.samples;
  out.exact = task.noise <= 1;
  out.by_position.assign(elements, 0.0);
  out.entropy_by_position.assign(elements, 0.0);
  double sum = 0;
  double sum_squares = 0;
  for (uint64_t done = 0; done < request.samples;) {
    const size_t round = static_cast<size_t>(std::min<uint64_t>(kRound, request.samples - done));
    std::vector<SampleFigures> figures(round);
    std::vector<double> probability(round * elements), entropy(round * elements);
    parallel_for(round, kGrain, request.threads, [&](size_t begin, size_t end) {
      ExactFilter filter(sampler, task, request.split);
      Batch batch;
      for (size_t i = begin; i < end; ++i) {
        maker.make(request.split, request.first + done + i, 1, batch);
        const std::vector<ElementBelief> beliefs = follow(filter, batch, 0);
        for (size_t e = 0; e < elements; ++e) {
          const ElementBelief& b = beliefs[e];
          probability[i * elements + e] = b.given_segment.probability;
          entropy[i * elements + e] = b.given_segment.entropy;
          figures[i].accuracy += b.given_segment.probability;
          figures[i].realised += b.given_segment.best == b.state ? 1 : 0;
          figures[i].filter_accuracy += b.summed_best == b.state ? 1 : 0;
          figures[i].last_frame_accuracy += b.causal.best == b.state ? 1 : 0;
        }
      }
    });
    for (size_t i = 0; i < round; ++i) {
      const double mean = figures[i].accuracy / static_cast<double>(elements);
      sum += mean;
      sum_squares += mean * mean;
      out.realised += figures[i].realised;
      out.filter_accuracy += figures[i].filter_accuracy;
      out.last_frame_accuracy += figures[i].last_frame_accuracy;
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
  out.accuracy = sum / samples;
  const double variance = std::max(0.0, sum_squares / samples - out.accuracy * out.accuracy);
  out.stderr_ = request.samples > 1 ? std::sqrt(variance / (samples - 1)) : 0;
  out.realised /= cells;
  out.filter_accuracy /= cells;
  out.last_frame_accuracy /= cells;
  for (size_t e = 0; e < elements; ++e) {
    out.mean_entropy += out.entropy_by_position[e] / cells;
    out.by_position[e] /= samples;
    out.entropy_by_position[e] /= samples;
  }
  return out;
}

}  // namespace sb
