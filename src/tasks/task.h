// Interface of a task: frames, right answers and, if known, the best possible answers. Training, metrics and ceiling
// use tasks only through this interface. A language with gaps (tasks/gap_task.h) is the first implementation.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "tasks/batch.h"
#include "tasks/oracle.h"

namespace sb {

struct TaskShape {
  int channels = 0;  // of a frame
  int answers = 0;   // outputs of a model
  int elements = 0;  // of a sample
};

class Task {
 public:
  virtual ~Task() = default;
  virtual TaskShape shape() const = 0;
  virtual std::string canonical_text() const = 0;     // canonical: equal texts mean equal frames and answers
  virtual int max_frames(Split split) const = 0;      // maximum frames of a sample of the split
  virtual double mean_frames(Split split) const = 0;  // of a sample

  // Fills `out` with the samples of these indices, in this order. Buffers of `out` are reused. `pad_to` > 0 fixes the
  // frame count; frames beyond the end of a sample are padding.
  virtual void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to = 0) const = 0;
  void fill(Split split, uint64_t first, int count, Batch& out, int pad_to = 0) const;  // first .. first+count-1

  // The right answer of each element of a row, [elements]; -1: the element has no answer. All frames of an element have
  // the same answer.
  virtual void answers(const Batch& batch, int row, int32_t* out) const = 0;
  // Symbol class that each answer emits, [answers]; empty if answers are not hidden states.
  virtual std::span<const int32_t> shown() const { return {}; }
  // If has_law(): distribution of the answer given the id of the current state, [answers]. Predictions are compared
  // with it.
  virtual bool has_law() const { return false; }
  virtual void law(int32_t /*state*/, double* /*over_answers*/) const {}
  // Oracle that follows one sample after the other; null if the best answers are unknown.
  virtual std::unique_ptr<Oracle> oracle(Split split) const = 0;

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

}  // namespace sb
