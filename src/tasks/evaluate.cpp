#include "tasks/evaluate.h"

#include <algorithm>

#include "base/parallel.h"
#include "tasks/ceiling.h"

namespace sb {
namespace {

constexpr int64_t kProbabilityBudget = int64_t{1} << 23;  // floats of probabilities held at a time

}  // namespace

Evaluation evaluate(Predictor& predictor, const Task& task, const EvaluationRequest& request) {
  const int answers = task.shape().answers;
  if (predictor.answers() != answers) {
    throw bad_input("evaluation", "outputs of the predictor, expected " + std::to_string(answers) + ", got " +
                                      std::to_string(predictor.answers()));
  }
  Tally tally(task, {request.padding_correct, request.breakdowns, request.threads});
  Batch batch;
  std::vector<float> probabilities;
  const auto end_if_stopped = [&] {
    if (request.stop && request.stop()) throw Stopped{};
  };
  for (int64_t first = 0; first < request.samples; first += request.batch) {
    end_if_stopped();
    const int rows = static_cast<int>(std::min<int64_t>(request.batch, request.samples - first));
    task.fill(request.split, static_cast<uint64_t>(first), rows, batch);
    const auto fitting = static_cast<int>(std::max<int64_t>(1, kProbabilityBudget / (int64_t{rows} * answers)));
    const int step = std::min({request.chunk, fitting, batch.frames});
    probabilities.resize(static_cast<size_t>(rows) * step * answers);
    tally.begin(batch);
    predictor.begin(batch);
    for (int from = 0; from < batch.frames; from += step) {
      end_if_stopped();
      const int to = std::min(batch.frames, from + step);
      predictor.predict(batch, from, to, probabilities.data());
      tally.probabilities(from, to, probabilities.data());
    }
    tally.end();
  }
  return tally.result();
}

OraclePredictor::OraclePredictor(const Task& task, Split split, int threads)
    : task_(task), split_(split), threads_(threads), states_(expect_oracle(task, split)->states()) {}

int OraclePredictor::answers() const {
  return states_;
}

void OraclePredictor::begin(const Batch& batch) {
  oracles_.clear();
  for (int b = 0; b < batch.batch; ++b) oracles_.push_back(task_.oracle(split_));
}

void OraclePredictor::predict(const Batch& batch, int from, int to, float* probabilities) {
  const auto states = static_cast<size_t>(states_), frames = static_cast<size_t>(to - from);
  parallel_for(static_cast<size_t>(batch.batch), 1, threads_, [&](size_t first, size_t last) {
    std::vector<StateProbability> possible;
    for (size_t b = first; b < last; ++b) {
      for (int t = from; t < to; ++t) {
        float* out = probabilities + (b * frames + static_cast<size_t>(t - from)) * states;
        std::fill(out, out + states, 0.0F);
        const int16_t symbol = batch.symbol[b * static_cast<size_t>(batch.frames) + static_cast<size_t>(t)];
        if (symbol == kPaddingFrame) continue;
        oracles_[b]->frame(symbol);
        oracles_[b]->posterior(possible);
        for (const StateProbability& s : possible) out[s.id] = static_cast<float>(s.probability);
      }
    }
  });
}

}  // namespace sb
