// The metric and its breakdowns, added up batch by batch from what a model gives for each frame.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
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
  Share elements;   // the metric: probabilities summed over an element's frames, argmax against its answer
  double loss = 0;  // mean cross-entropy over real frames, nats
  double kl = 0;    // tasks with a law: mean over elements of KL(law || mean prediction), nats
  int64_t frames = 0;
  std::vector<Share> by_position;       // element index
  std::vector<Share> by_gap_frame;      // single frames: 0 = data frame, g = g-th gap frame after it
  std::vector<Share> by_since_certain;  // elements since the oracle was last certain; the last bin holds the rest
  std::vector<Share> by_entropy;        // posterior entropy of the oracle, bins of kEntropyBin nats, the last open
  std::vector<Confusion> confusion;     // answers that are states: by symbol of the true one
  double stderr_ = 0;                   // of the accuracy, from the spread between samples
};

constexpr double kEntropyBin = 0.1;
constexpr int kEntropyBins = 12;
constexpr int kCertaintyBins = 32;
constexpr int kGapFrameBins = 128;

// A prediction that is not finite: no accuracy can be had of it.
class NotFinite : public Error {
 public:
  NotFinite(Split split, int64_t sample, int frame);
  Split split;
  int64_t sample;
  int frame;
};

struct TallyOptions {
  bool padding_correct = false;  // the reference's fault: elements without frames count as right
  bool breakdowns = false;       // run the oracle beside the predictions
  int threads = 0;               // 0: all cores; the result does not depend on it
};

// What the tally needs of a batch's predictions, reduced where they were made.
struct Marks {
  const float* of_answer = nullptr;  // [batch][frames]: probability of the frame's answer, of the first one where it
                                     // has none; not finite where the prediction is not
  const int32_t* best = nullptr;     // [batch][frames]: the first largest probability
  const int32_t* named = nullptr;  // [batch][elements]: the first largest of the sums over the element's frames, added
                                   // in float from first to last
  const float* sum = nullptr;      // [batch][elements][answers]: these sums; read where the task has a law
};

// Per batch begin(), its frames in any number of stretches from first to last, end(); then the result of all of them.
class Tally {
 public:
  explicit Tally(const Task& task, TallyOptions options = {});
  void begin(const Batch& batch);  // which must stay until end()
  // Frames [from, to) of every row, [batch][to - from][answers]. Throws NotFinite at the first real frame that is not.
  void probabilities(int from, int to, const float* values);
  void logits(int from, int to, const float* values);  // their softmax, in double, rounded to float
  void marks(const Marks& marks);                      // of all frames of the batch; throws as probabilities() does
  void end();                                          // throws check_failed where frames are missing
  Evaluation result() const;

 private:
  // What one sample adds; kept apart until the end, so that the order of summation is that of the samples.
  struct Row {
    Share elements;
    double loss = 0, kl = 0;
    int64_t frames = 0;
    int broken = -1;  // first frame that is not finite
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
    double sum = 0, squares = 0;  // of per-sample accuracies
    int64_t samples = 0;
    void take(const Row& row, int elements);
  };
  template <class Rows>
  void take(int from, int to, const Rows& rows);
  void expect_from(int from, int to);
  void expect_finite() const;
  void frame(int b, int t, const float* p);
  void settle_frame(int b, int t, int best, float of_answer, bool finite);
  void settle_element(int b, int e, int32_t best, const float* sum);
  void confuse(Row& row, int32_t named, int32_t answer) const;

  const Task& task_;
  TallyOptions options_;
  TaskShape shape_;
  bool has_law_;
  std::span<const int32_t> shown_;
  const Batch* batch_ = nullptr;
  int seen_ = 0;  // frames of the batch
  std::vector<Row> rows_;
  Totals totals_;
};

}  // namespace sb
