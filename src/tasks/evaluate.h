// One path for everything that predicts: trained networks, the exact filter and whatever else is fed frame by frame.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tasks/tally.h"

namespace sb {

// Predictions of a whole batch that are being made and reduced elsewhere.
class Reduction {
 public:
  virtual ~Reduction() = default;
  virtual Marks marks() = 0;  // waits for them; they last as long as this
};

// Something causal that is fed a batch in stretches of time and carries its own memory between them.
class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual int answers() const = 0;             // width of a prediction
  virtual void begin(const Batch& batch) = 0;  // forget what came before
  // Probabilities of frames [from, to), row-major [batch][to - from][answers].
  virtual void predict(const Batch& batch, int from, int to, float* probabilities) = 0;
  // All of a batch at once, from those that predict beside the host and reduce there; null: predict() is to be asked.
  // Need not wait for predictions; the batch stays as long as what is returned.
  virtual std::unique_ptr<Reduction> reduce(const Batch& /*batch*/, const Task& /*task*/) { return nullptr; }
};

struct EvaluationRequest {
  Split split = Split::valid;
  int64_t samples = 1000;
  int batch = 50;
  int chunk = 1024;                 // most frames a predict() call
  bool padding_correct = false;     // quirk: elements without frames count as right
  bool breakdowns = false;          // run the oracle beside the predictor
  int threads = 0;                  // 0: all cores; the result does not depend on it
  std::function<bool()> stop = {};  // polled between calls of predict(); true: throws Stopped
  // Where given: keeps the batches for further evaluations of the same split, samples and batch.
  std::deque<Batch>* kept = nullptr;
};

struct Stopped {};

// Throws NotFinite at the first batch where an output on a real frame is not.
Evaluation evaluate(Predictor& predictor, const Task& task, const EvaluationRequest& request);

// The task's oracle as a predictor of states: its posterior given the frames so far. Scores the ceiling's
// filter_accuracy.
class OraclePredictor final : public Predictor {
 public:
  OraclePredictor(const Task& task, Split split, int threads = 0);  // throws bad_input where the task has none
  int answers() const override;
  void begin(const Batch& batch) override;
  void predict(const Batch& batch, int from, int to, float* probabilities) override;

 private:
  const Task& task_;
  Split split_;
  int threads_;
  int states_;
  std::vector<std::unique_ptr<Oracle>> oracles_;  // one a row
};

}  // namespace sb
