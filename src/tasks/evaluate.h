// Evaluates every predictor with the same code: trained networks, the exact filter and anything else that is fed frame
// by frame.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tasks/metric_accumulator.h"

namespace sb {

// Predictions of a whole batch that are computed and reduced asynchronously.
class Reduction {
 public:
  virtual ~Reduction() = default;
  virtual ReducedPredictions reduced() = 0;  // waits for the predictions; valid as long as this object
};

// Interface of a causal model. It is fed a batch in chunks of time and keeps its own memory between chunks.
class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual int answers() const = 0;             // width of a prediction
  virtual void begin(const Batch& batch) = 0;  // clears the memory
  // Probabilities of frames [from, to), row-major [batch][to - from][answers]; outputs as they are for a batch that has
  // values.
  virtual void predict(const Batch& batch, int from, int to, float* probabilities) = 0;
  // Predicts and reduces the whole batch on the device of the model. Null: not supported, call predict() instead. May
  // return before the predictions are done; the batch must outlive the returned object.
  virtual std::unique_ptr<Reduction> reduce(const Batch& /*batch*/, const Task& /*task*/) { return nullptr; }
};

struct EvaluationRequest {
  Split split = Split::valid;
  int64_t samples = 1000;
  int batch = 50;
  int chunk = 1024;                 // maximum frames per predict() call
  bool padding_correct = false;     // quirk of the reference: elements without frames count as right
  bool breakdowns = false;          // also run the oracle, for the breakdowns that need it
  int threads = 0;                  // 0: all cores; the result does not depend on it
  std::function<bool()> stop = {};  // polled between calls of predict(); true: throws Stopped
  // If given: keeps the batches for later evaluations with the same split, samples and batch.
  std::deque<Batch>* kept = nullptr;
};

struct Stopped {};

// Throws NotFinite at the first batch with a non-finite output on a real frame.
Evaluation evaluate(Predictor& predictor, const Task& task, const EvaluationRequest& request);

// The task's oracle as a predictor of states: the posterior given the frames so far. Its accuracy is filter_accuracy of
// the ceiling.
class OraclePredictor final : public Predictor {
 public:
  OraclePredictor(const Task& task, Split split, int threads = 0);  // throws bad_input if the task has no oracle
  int answers() const override;
  void begin(const Batch& batch) override;
  void predict(const Batch& batch, int from, int to, float* probabilities) override;

 private:
  const Task& task_;
  Split split_;
  int threads_;
  int states_;
  std::vector<std::unique_ptr<Oracle>> oracles_;  // one per row
};

}  // namespace sb
