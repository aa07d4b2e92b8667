// Accumulates the metric and its breakdowns over batches, from the outputs of a model for each frame.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "tasks/running_mean.h"
#include "tasks/task.h"

namespace sb {

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
  Share elements;   // the metric: argmax of the probabilities summed over an element's frames, against its answer
  double loss = 0;  // mean over the frames that have an answer: cross-entropy in nats, or squared error
  double kl = 0;    // if the task has_law(): mean over elements of KL(law || mean prediction), nats
  int64_t frames = 0;
  std::vector<Share> by_position;       // by element index
  std::vector<Share> by_gap_frame;      // single frames: 0 = data frame, g = g-th gap frame after it
  std::vector<Share> by_since_certain;  // by elements since the oracle was last certain; last bin open
  std::vector<Share> by_entropy;     // by posterior entropy of the oracle, in bins of kEntropyBin nats; last bin open
  std::vector<Confusion> confusion;  // by symbol of the true state; empty if answers are not states
  double stderr_ = 0;                // of the accuracy, from the spread between samples
};

constexpr double kEntropyBin = 0.1;
constexpr int kEntropyBins = 12;
constexpr int kCertaintyBins = 32;
constexpr int kGapFrameBins = 128;

// Error: the output of a model on a real frame is not finite.
class NotFinite : public Error {
 public:
  NotFinite(Split split, int64_t sample, int frame);
  Split split;
  int64_t sample;
  int frame;
};

struct MetricOptions {
  bool padding_correct = false;  // error of the reference: elements without frames count as right
  bool breakdowns = false;       // also run the oracle, for the breakdowns that need it
  int threads = 0;               // 0: all cores; the result does not depend on it
};

// A batch's predictions, reduced on their device to what the metric needs. On ties, argmax is the first.
struct ReducedPredictions {
  // [batch][frames]: probability of the frame's answer; of answer 0 if the frame has no answer; not finite if the
  // prediction is not finite.
  const float* target_probability = nullptr;
  const int32_t* best = nullptr;  // [batch][frames]: argmax of the probabilities
  // [batch][elements]: argmax of the probabilities summed over the element's frames, in float from first to last.
  const int32_t* named = nullptr;
  const float* sum = nullptr;  // [batch][elements][answers]: these sums; read only if the task has_law()
};

// For each batch: begin(), then its frames from first to last in any number of chunks, then end(). result() covers all
// batches.
class MetricAccumulator {
 public:
  explicit MetricAccumulator(const Task& task, MetricOptions options = {});
  void begin(const Batch& batch);  // the batch must live until end()
  // Frames [from, to) of every row, [batch][to - from][answers]. Throws NotFinite at the first real frame with a
  // non-finite output.
  void probabilities(int from, int to, const float* values);  // with squared error: outputs
  void logits(int from, int to, const float* values);         // applies softmax in double, rounded to float
  void predictions(const ReducedPredictions& reduced);        // all frames of the batch; throws like probabilities()
  void end();                                                 // throws check_failed if frames are missing
  Evaluation result() const;
  // Answers of the model for the last batch, [batch][elements]; -1: no frames, or squared error.
  const std::vector<int32_t>& named() const { return named_; }

 private:
  // Contribution of one sample. Samples are kept apart until the end of the batch, so that sums are in sample order.
  struct Row {
    Share elements;
    double loss = 0, kl = 0;
    int64_t frames = 0;
    double score(Loss loss) const;   // accuracy, or mean squared error
    double weight(Loss loss) const;  // elements, or frames, that the score is the mean of
    int broken = -1;                 // first frame with a non-finite output
    std::vector<Share> by_position, by_gap_frame, by_since_certain, by_entropy;
    std::vector<Confusion> confusion;

    std::vector<float> sum;        // [answers]
    std::vector<int32_t> answers;  // [elements]
    std::vector<ElementBelief> beliefs;
  };
  struct Totals {
    Evaluation result;
    double loss = 0, kl = 0;
    int64_t laws = 0;
    double sum = 0, squares = 0;  // of the samples' scores
    RunningMean scores;           // weighted by what each sample asks for
    int64_t samples = 0;
    void take(const Row& row, int elements, Loss loss);
  };
  template <class Rows>
  void take(int from, int to, const Rows& rows);
  void expect_from(int from, int to);
  void expect_finite() const;
  void frame(int b, int t, const float* p);
  void add_error(int b, int t, const float* outputs);
  void settle_frame(int b, int t, int best, float target_probability, bool finite);
  void settle_element(int b, int e, int32_t best, const float* sum);
  void confuse(Row& row, int32_t named, int32_t answer) const;

  const Task& task_;
  MetricOptions options_;
  TaskShape shape_;
  bool has_law_;
  std::span<const int32_t> shown_;
  const Batch* batch_ = nullptr;
  int seen_ = 0;  // frames of the batch so far
  std::vector<Row> rows_;
  std::vector<int32_t> named_;
  Totals totals_;
};

}  // namespace sb
