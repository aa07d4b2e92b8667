#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/parallel.h"
#include "tasks/ceiling.h"
#include "tasks/running_mean.h"

namespace sb {
namespace {

// What one sample adds.
struct SampleErrors {
  double frames = 0;                          // asked for
  double mse = 0, counted = 0;                // means over them
  std::vector<double> by_position, weighted;  // [elements]: sums over their asked frames, and the number of these
};

class ErrorWalk {
 public:
  ErrorWalk(const Task& task, Split split)
      : task_(task),
        split_(split),
        estimator_(task.estimator(split)),
        answers_(static_cast<size_t>(task.shape().answers)),
        mean_(answers_),
        variance_(answers_) {}

  SampleErrors run(uint64_t sample) {
    task_.fill(split_, sample, 1, batch_);
    const auto elements = static_cast<size_t>(batch_.elements), channels = static_cast<size_t>(batch_.channels);
    SampleErrors out;
    out.by_position.assign(elements, 0.0);
    out.weighted.assign(elements, 0.0);
    asked_.resize(elements);
    task_.answers(batch_, 0, asked_.data());
    frame_.resize(channels);
    estimator_->reset();
    for (int t = 0; t < batch_.real_frames(0); ++t) {
      expand_row(batch_, 0, t, t + 1, frame_.data());
      estimator_->frame(frame_.data());
      const auto e = static_cast<size_t>(batch_.element[static_cast<size_t>(t)]);
      if (asked_[e] < 0) continue;
      estimator_->estimate(mean_.data(), variance_.data());
      double expected = 0, counted = 0;
      for (size_t c = 0; c < answers_; ++c) {
        const double off = mean_[c] - batch_.value[static_cast<size_t>(t) * answers_ + c];
        expected += variance_[c] / static_cast<double>(answers_);
        counted += off * off / static_cast<double>(answers_);
      }
      ++out.frames;
      out.mse += expected;
      out.counted += counted;
      out.by_position[e] += expected;
      ++out.weighted[e];
    }
    if (out.frames > 0) {
      out.mse /= out.frames;
      out.counted /= out.frames;
    }
    return out;
  }

 private:
  const Task& task_;
  Split split_;
  std::unique_ptr<Estimator> estimator_;
  size_t answers_;
  std::vector<double> mean_, variance_;
  std::vector<float> frame_;
  std::vector<int32_t> asked_;
  Batch batch_;
};

}  // namespace

ErrorCeiling error_ceiling(const Task& task, const CeilingRequest& request) {
  if (request.samples == 0) throw bad_input("ceiling", "samples, expected at least 1, got 0");
  if (!task.estimator(request.split)) throw bad_input("ceiling", "no ceiling: this task has no estimator");
  const auto elements = static_cast<size_t>(task.shape().elements);
  std::vector<double> sums(elements, 0.0), frames(elements, 0.0);
  RunningMean mse, counted;
  const size_t most = samples_a_round(task, request.split, request.threads);
  const size_t grain = even_grain(most, request.threads);
  for (uint64_t done = 0; done < request.samples;) {
    const size_t round = static_cast<size_t>(std::min<uint64_t>(most, request.samples - done));
    std::vector<SampleErrors> errors(round);
    parallel_for(round, grain, request.threads, [&](size_t begin, size_t end) {
      ErrorWalk walk(task, request.split);
      for (size_t i = begin; i < end; ++i) errors[i] = walk.run(request.first + done + i);
    });
    for (const SampleErrors& one : errors) {
      mse.add(one.mse, one.frames);
      counted.add(one.counted, one.frames);
      for (size_t e = 0; e < elements; ++e) {
        sums[e] += one.by_position[e];
        frames[e] += one.weighted[e];
      }
    }
    done += round;
    if (request.progress) request.progress(done);
  }
  ErrorCeiling out{mse.mean(), mse.error(), counted.mean(), counted.error(), request.samples, {}};
  for (size_t e = 0; e < elements; ++e) {
    out.by_position.push_back(frames[e] == 0 ? std::numeric_limits<double>::quiet_NaN() : sums[e] / frames[e]);
  }
  return out;
}

}  // namespace sb
