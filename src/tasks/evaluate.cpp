#include "tasks/evaluate.h"

#include <algorithm>

#include "base/parallel.h"
#include "tasks/ceiling.h"

namespace sb {
namespace {

constexpr int64_t kProbabilityBudget = int64_t{1} << 23;  // floats of probabilities held at a time
constexpr size_t kUnderWay = 2;                           // batches submitted before the oldest one is read

// The batches of a request in order, reused if an earlier evaluation kept them, else newly made.
class Batches {
 public:
  Batches(const Task& task, const EvaluationRequest& request)
      : task_(task), request_(request), batches_(request.kept != nullptr ? *request.kept : own_) {}

  const Batch& next() {
    const int64_t first = static_cast<int64_t>(made_++) * request_.batch;
    if (request_.kept != nullptr && made_ <= batches_.size()) return batches_[made_ - 1];
    const int rows = static_cast<int>(std::min<int64_t>(request_.batch, request_.samples - first));
    Batch fresh = spare_.empty() ? Batch() : std::move(spare_.back());  // for its buffers
    if (!spare_.empty()) spare_.pop_back();
    task_.fill(request_.split, static_cast<uint64_t>(first), rows, fresh);
    return batches_.emplace_back(std::move(fresh));
  }

  // The oldest is not needed any more.
  void release() {
    if (request_.kept != nullptr) return;
    spare_.push_back(std::move(batches_.front()));
    batches_.pop_front();
  }

 private:
  const Task& task_;
  const EvaluationRequest& request_;
  std::deque<Batch> own_;
  std::deque<Batch>& batches_;
  std::vector<Batch> spare_;
  size_t made_ = 0;
};

}  // namespace

Evaluation evaluate(Predictor& predictor, const Task& task, const EvaluationRequest& request) {
  const int answers = task.shape().answers;
  if (predictor.answers() != answers) {
    throw bad_input("evaluation", "outputs of the predictor, expected " + std::to_string(answers) + ", got " +
                                      std::to_string(predictor.answers()));
  }
  MetricAccumulator metrics(task, {request.padding_correct, request.breakdowns, request.threads});
  std::vector<float> probabilities;
  const auto end_if_stopped = [&] {
    if (request.stop && request.stop()) throw Stopped{};
  };
  const auto predict = [&](const Batch& batch) {
    const auto fitting = static_cast<int>(std::max<int64_t>(1, kProbabilityBudget / (int64_t{batch.batch} * answers)));
    const int step = std::min({request.chunk, fitting, batch.frames});
    probabilities.resize(static_cast<size_t>(batch.batch) * step * answers);
    metrics.begin(batch);
    predictor.begin(batch);
    for (int from = 0; from < batch.frames; from += step) {
      end_if_stopped();
      const int to = std::min(batch.frames, from + step);
      predictor.predict(batch, from, to, probabilities.data());
      metrics.probabilities(from, to, probabilities.data());
    }
    metrics.end();
  };
  Batches batches(task, request);
  std::deque<std::pair<const Batch*, std::unique_ptr<Reduction>>> under_way;
  const auto count_oldest = [&] {
    metrics.begin(*under_way.front().first);
    metrics.predictions(under_way.front().second->reduced());
    metrics.end();
    under_way.pop_front();
    batches.release();
  };
  for (int64_t first = 0; first < request.samples; first += request.batch) {
    end_if_stopped();
    const Batch& batch = batches.next();
    if (auto reduction = predictor.reduce(batch, task)) {
      under_way.emplace_back(&batch, std::move(reduction));
      if (under_way.size() > kUnderWay) count_oldest();
    } else {
      predict(batch);
      batches.release();
    }
  }
  while (!under_way.empty()) count_oldest();
  return metrics.result();
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
        oracles_[b]->batch_frame(batch, static_cast<int>(b), t);
        oracles_[b]->posterior(possible);
        for (const StateProbability& s : possible) out[s.id] = static_cast<float>(s.probability);
      }
    }
  });
}

}  // namespace sb
