#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/parallel.h"
#include "tasks/ceiling.h"
#include "tasks/running_mean.h"

namespace sb {
namespace {

constexpr double kLeast = 1e-30;  // lower bound of a prediction, as in the metric

constexpr double kNoAnswer = std::numeric_limits<double>::quiet_NaN();

// What one sample adds.
struct PredictFigures {
  double asked = 0;                                   // elements with an answer
  double accuracy = 0, counted = 0, upper_bound = 0;  // means over these
  double kl = 0, kl_counted = 0, kl_bound = 0;        // means over all elements
};

// Sum over c of a(c) ln(b(c) / frames). `b`: sum of `frames` predictions.
double cross(const std::vector<double>& a, const std::vector<double>& b, double frames) {
  double sum = 0;
  for (size_t c = 0; c < a.size(); ++c) {
    if (a[c] > 0) sum += a[c] * std::log(std::max(kLeast, b[c]) / frames);
  }
  return sum;
}

// The task's law of every state and its negative entropy, by state id.
struct Laws {
  Laws(const Task& task, int states) {
    law.resize(static_cast<size_t>(states));
    negentropy.resize(law.size());
    for (size_t id = 0; id < law.size(); ++id) {
      law[id].resize(static_cast<size_t>(task.shape().answers));
      task.law(static_cast<int32_t>(id), law[id].data());
      negentropy[id] = cross(law[id], law[id], 1);
    }
  }
  std::vector<std::vector<double>> law;
  std::vector<double> negentropy;
};

class SampleWalk {
 public:
  SampleWalk(std::unique_ptr<Oracle> oracle, const Laws& laws)
      : oracle_(std::move(oracle)),
        laws_(laws),
        posterior_(laws.law.size()),
        now_(static_cast<size_t>(oracle_->classes())),
        next_(now_),
        law_(now_) {}

  // `answers`, `accuracy` and `kl`: [elements]. `accuracy` is NaN for elements without an answer.
  PredictFigures run(const Batch& batch, const std::vector<int32_t>& answers, double* accuracy, double* kl) {
    PredictFigures out;
    const double elements = batch.elements;
    out.asked = elements - static_cast<double>(std::count(answers.begin(), answers.end(), -1));
    oracle_->reset();
    for (int e = 0; e < batch.elements; ++e) {
      const int frames = batch.start[e + 1] - batch.start[e];
      std::fill(next_.begin(), next_.end(), 0.0);
      std::fill(law_.begin(), law_.end(), 0.0);
      for (int t = batch.start[e]; t < batch.start[e + 1]; ++t) {
        oracle_->batch_frame(batch, 0, t);
        oracle_->next_classes(now_.data());
        for (size_t c = 0; c < now_.size(); ++c) next_[c] += now_[c];
        oracle_->mean_law(now_.data());
        for (size_t c = 0; c < now_.size(); ++c) law_[c] += now_[c];
      }
      const int gap_frames = frames - 1;
      accuracy[e] = kNoAnswer;
      if (const int32_t answer = answers[static_cast<size_t>(e)]; answer >= 0) {
        const auto named = std::max_element(next_.begin(), next_.end()) - next_.begin();
        oracle_->next_classes(now_.data(), gap_frames);
        accuracy[e] = now_[static_cast<size_t>(named)];
        out.accuracy += accuracy[e] / out.asked;
        out.upper_bound += *std::max_element(now_.begin(), now_.end()) / out.asked;
        out.counted += named == answer ? 1 / out.asked : 0;
      }
      oracle_->posterior(posterior_.data(), gap_frames);
      double known = 0;  // mean negative entropy of the law
      for (size_t id = 0; id < posterior_.size(); ++id) known += posterior_[id] * laws_.negentropy[id];
      oracle_->mean_law(now_.data(), gap_frames);
      const auto id = static_cast<size_t>(batch.state[e]);
      kl[e] = known - cross(now_, law_, frames);
      out.kl += kl[e] / elements;
      out.kl_bound += (known - cross(now_, now_, 1)) / elements;
      out.kl_counted += (laws_.negentropy[id] - cross(laws_.law[id], law_, frames)) / elements;
    }
    return out;
  }

 private:
  std::unique_ptr<Oracle> oracle_;
  const Laws& laws_;
  std::vector<double> posterior_, now_, next_, law_;
};

}  // namespace

PredictCeiling predict_ceiling(const Task& task, const CeilingRequest& request) {
  if (request.samples == 0) throw bad_input("ceiling", "samples, expected at least 1, got 0");
  if (!task.has_law()) throw bad_input("ceiling", "this ceiling requires objective = predict");
  const std::unique_ptr<Oracle> oracle = expect_oracle(task, request.split);
  const Laws laws(task, oracle->states());
  const auto elements = static_cast<size_t>(task.shape().elements);
  PredictCeiling out;
  out.samples = request.samples;
  out.exact = oracle->exact();
  out.by_position.assign(elements, 0.0);
  out.kl_by_position.assign(elements, 0.0);
  RunningMean accuracy, counted, upper_bound, kl, kl_counted, kl_bound;
  std::vector<double> asked(elements, 0.0);  // samples that ask for the element
  double unit = 0;                           // elements with an answer in the first sample that has any: weight 1
  const size_t most = samples_a_round(task, request.split, request.threads);
  const size_t grain = even_grain(most, request.threads);
  for (uint64_t done = 0; done < request.samples;) {
    const size_t round = static_cast<size_t>(std::min<uint64_t>(most, request.samples - done));
    std::vector<PredictFigures> figures(round);
    std::vector<double> right(round * elements), far(round * elements);
    parallel_for(round, grain, request.threads, [&](size_t begin, size_t end) {
      SampleWalk walk(task.oracle(request.split), laws);
      Batch batch;
      std::vector<int32_t> answers(elements);
      for (size_t i = begin; i < end; ++i) {
        task.fill(request.split, request.first + done + i, 1, batch);
        task.answers(batch, 0, answers.data());
        figures[i] = walk.run(batch, answers, right.data() + i * elements, far.data() + i * elements);
      }
    });
    for (size_t i = 0; i < round; ++i) {
      if (unit == 0) unit = figures[i].asked;
      const double weight = unit == 0 ? 0 : figures[i].asked / unit;
      accuracy.add(figures[i].accuracy, weight);
      counted.add(figures[i].counted, weight);
      upper_bound.add(figures[i].upper_bound, weight);
      kl.add(figures[i].kl);
      kl_counted.add(figures[i].kl_counted);
      kl_bound.add(figures[i].kl_bound);
      for (size_t e = 0; e < elements; ++e) {
        out.kl_by_position[e] += far[i * elements + e];
        if (std::isnan(right[i * elements + e])) continue;
        ++asked[e];
        out.by_position[e] += right[i * elements + e];
      }
    }
    done += round;
    if (request.progress) request.progress(done);
  }
  for (size_t e = 0; e < elements; ++e)
    out.by_position[e] = asked[e] == 0 ? kNoAnswer : std::min(1.0, out.by_position[e] / asked[e]);
  while (!out.by_position.empty() && std::isnan(out.by_position.back())) out.by_position.pop_back();
  for (double& value : out.kl_by_position) value /= static_cast<double>(request.samples);
  const auto share_of = [](const RunningMean& mean) { return std::min(1.0, mean.mean()); };  // rounding can exceed 1
  out.accuracy = share_of(accuracy);
  out.stderr_ = accuracy.error();
  out.counted = share_of(counted);
  out.counted_stderr = counted.error();
  out.upper_bound = share_of(upper_bound);
  out.kl = kl.mean();
  out.kl_stderr = kl.error();
  out.kl_counted = kl_counted.mean();
  out.kl_counted_stderr = kl_counted.error();
  out.kl_bound = kl_bound.mean();
  return out;
}

}  // namespace sb
