// Interface of a task: frames, right answers and, if known, the best possible answers. Training, metrics and ceiling
// use tasks only through this interface. A language with gaps (tasks/gap_task.h) is the first implementation.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tasks/batch.h"
#include "tasks/oracle.h"

namespace sb {

class NgramSource;  // tasks/ngram_source.h

// What a model is trained on: the right one of `answers` classes, or `answers` numbers.
enum class Loss { cross_entropy, squared_error };

struct TaskShape {
  int channels = 0;  // of a frame
  int answers = 0;   // outputs of a model
  int elements = 0;  // of a sample
  Loss loss = Loss::cross_entropy;
  bool dense = false;         // batches hold dense frames; false: one-hot frames are made from symbols
  bool fixed_frames = false;  // every training sample has the same number of frames
};

class Task {
 public:
  virtual ~Task() = default;
  virtual TaskShape shape() const = 0;
  virtual std::string objective() const;                  // what a frame asks for, as one word of results
  virtual int states() const { return shape().answers; }  // hidden states behind the samples
  virtual std::optional<double> topological_entropy() const { return std::nullopt; }
  virtual void check_split(Split) const {}  // throws bad_input if the split cannot be drawn
  // Equal texts mean equal frames and answers, also at all points of the test axis.
  virtual std::string canonical_text() const = 0;
  virtual int max_frames(Split split) const = 0;      // maximum frames of a sample of the split
  virtual double mean_frames(Split split) const = 0;  // of a sample

  // Fills `out` with the samples of these indices, in this order. Buffers of `out` are reused. `pad_to` > 0 fixes the
  // frame count; frames beyond the end of a sample are padding.
  virtual void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to = 0) const = 0;
  void fill(Split split, uint64_t first, int count, Batch& out, int pad_to = 0) const;  // first .. first+count-1

  // The right answer of each element of a row, [elements]; -1: the element has no answer. All frames of an element have
  // the same answer. With squared error, 0 means that the values of the batch are asked for. By default Batch::state.
  virtual void answers(const Batch& batch, int row, int32_t* out) const;
  // Symbol class that each answer emits, [answers]; empty if answers are not hidden states.
  virtual std::span<const int32_t> shown() const { return {}; }
  // If has_law(): an answer is the class of the next element, and law() its distribution given the id of the current
  // state (Batch::state), [answers]. Predictions are compared with it. The oracle has next_classes() and mean_law().
  virtual bool has_law() const { return false; }
  virtual void law(int32_t /*state*/, double* /*over_answers*/) const {}
  // Oracle that follows one sample after the other; null if the best answers are unknown.
  virtual std::unique_ptr<Oracle> oracle(Split) const { return nullptr; }
  virtual std::unique_ptr<Estimator> estimator(Split) const { return nullptr; }  // its counterpart for squared error
  // The task with this split changed to a point of the kind's test axis. Throws bad_input if there is no axis.
  virtual std::shared_ptr<const Task> at(Split split, int point) const;
  // What n-grams count if they are a baseline of the task; the task must outlive it. By default the frames if
  // counts_frames(), else null.
  virtual std::unique_ptr<NgramSource> ngrams() const;
  // Whether n-grams of the frames are a baseline. Elements then have one frame, and those with an answer show a symbol.
  virtual bool counts_frames() const { return false; }
  // Whether noise hides symbols from a model. N-grams, which see them, are then no baseline.
  virtual bool hides_symbols() const { return false; }

  // answers() for every frame, [batch][frames]; -1 if the frame has no answer.
  template <class Integer>
  void targets(const Batch& batch, Integer* out) const {
    std::vector<int32_t> right(static_cast<size_t>(batch.elements));
    for (int b = 0; b < batch.batch; ++b) {
      answers(batch, b, right.data());
      const size_t row = static_cast<size_t>(b) * batch.frames;
      for (size_t t = row; t < row + static_cast<size_t>(batch.frames); ++t) {
        out[t] = batch.element[t] < 0 ? -1 : right[static_cast<size_t>(batch.element[t])];
      }
    }
  }
};

// Lays out samples whose elements have one frame each, padded at the end. All frames are blank, all values 0 and all
// states -1; the caller fills them.
void begin_plain_batch(const TaskShape& shape, Split split, std::span<const uint64_t> samples, int pad_to, Batch& out);

}  // namespace sb
