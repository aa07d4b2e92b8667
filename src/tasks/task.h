// What a model is trained on and asked: frames, answers and, where it is known, the best that can be done. Training,
// tally and ceiling see tasks through this alone; a language with gaps (tasks/gap_task.h) is the first.
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
  virtual std::string text() const = 0;               // canonical: equal texts, equal frames and answers
  virtual int longest(Split split) const = 0;         // most frames a sample of the split can have
  virtual double mean_frames(Split split) const = 0;  // of a sample

  // The samples of these indices, in this order. Buffers of `out` are reused; `pad_to` > 0 fixes the frame count, what
  // lies beyond a sample's end is padding.
  virtual void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to = 0) const = 0;
  void fill(Split split, uint64_t first, int count, Batch& out, int pad_to = 0) const;  // first .. first+count-1

  // What is right for each element of a row, [elements]; -1: it is not asked. Every frame of the element asks for it.
  virtual void answers(const Batch& batch, int row, int32_t* out) const = 0;
  // Symbol class that each answer shows, [answers]; empty where answers are not hidden states.
  virtual std::span<const int32_t> shown() const { return {}; }
  // Law of the answer after the state of this id, [answers], where predictions are held against one.
  virtual bool has_law() const { return false; }
  virtual void law(int32_t /*state*/, double* /*over_answers*/) const {}
  // Follows one sample after the other; null where nobody knows the best answer.
  virtual std::unique_ptr<Oracle> oracle(Split split) const = 0;

  // answers() of every frame, [batch][frames]; -1 where there is none.
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
