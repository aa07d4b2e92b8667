// Accuracy, loss and their breakdowns. One path for everything that predicts: trained networks and the exact filter.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "tasks/ceiling.h"
#include "train/loader.h"

namespace sb {

// Something causal that is fed a batch in stretches of time and carries its own memory between them.
class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual int64_t classes() const = 0;
  virtual void begin(const TensorBatch& batch) = 0;  // forget what came before
  // Probabilities of frames [from, to), row-major [batch][to - from][classes].
  virtual void predict(const TensorBatch& batch, int from, int to, float* probabilities) = 0;
};

struct Share {
  int64_t right = 0;
  int64_t total = 0;
  double value() const { return total == 0 ? 0 : static_cast<double>(right) / static_cast<double>(total); }
};

// Answers for elements of one symbol.
struct Confusion {
  int64_t right = 0, same_symbol = 0, other_symbol = 0;
};

struct Evaluation {
  int64_t samples = 0;
  Share elements;   // the metric: softmax summed over an element's frames, argmax against its state
  double loss = 0;  // mean cross-entropy over real frames, nats
  double kl = 0;    // objective predict: mean over elements of KL(next-symbol law || mean prediction), nats
  int64_t frames = 0;
  std::vector<Share> by_position;       // element index
  std::vector<Share> by_gap_frame;      // single frames: 0 = data frame, g = g-th gap frame after it
  std::vector<Share> by_since_certain;  // elements since the exact filter was last certain; the last bin holds the rest
  std::vector<Share> by_entropy;        // posterior entropy of the filter, bins of kEntropyBin nats, the last open
  std::vector<Confusion> confusion;     // objective state: by symbol of the true state
  double stderr_ = 0;                   // of the accuracy, from the spread between samples
};

constexpr double kEntropyBin = 0.1;
constexpr int kEntropyBins = 12;
constexpr int kCertaintyBins = 32;
constexpr int kGapFrameBins = 128;

struct EvaluationRequest {
  Split split = Split::valid;
  int64_t samples = 1000;
  int batch = 50;
  int chunk = 1024;              // most frames a predict() call
  bool padding_correct = false;  // quirk: elements without frames count as right
  bool breakdowns = false;       // run the exact filter beside the predictor
  at::ScalarType type = at::kFloat;
  std::function<bool()> stop;  // polled between calls of predict(); true: throws Stopped
};

struct Stopped {};

// A predictor's output that is not finite: no accuracy can be had of it.
class NotFinite : public Error {
 public:
  NotFinite(Split split, int64_t sample, int frame);
  Split split;
  int64_t sample;
  int frame;
};

// Throws NotFinite at the first batch where an output on a real frame is not.
Evaluation evaluate(Predictor& predictor, std::shared_ptr<const Sampler> sampler, const TaskConfig& task,
                    const EvaluationRequest& request);

// The exact filter as a predictor: its posterior given the frames so far. Scores the ceiling's filter_accuracy.
class FilterPredictor final : public Predictor {
 public:
  FilterPredictor(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, Split split);
  int64_t classes() const override;
  void begin(const TensorBatch& batch) override;
  void predict(const TensorBatch& batch, int from, int to, float* probabilities) override;

 private:
  std::shared_ptr<const Sampler> sampler_;
  TaskConfig task_;
  Split split_;
  std::vector<ExactFilter> filters_;
};

}  // namespace sb
