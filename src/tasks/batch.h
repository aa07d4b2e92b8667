// Batches ready for a model: contiguous buffers of symbol ids and gap flags; one-hot rows and noise are made by the consumer.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/task.h"

namespace sb {

constexpr int16_t kBlankFrame = -1;    // a zero row
constexpr int16_t kPaddingFrame = -2;  // a zero row without noise, target or weight

// All arrays are row-major [batch][frames] unless said; `frames` is the longest sample of the batch.
struct Batch {
  int batch = 0;
  int frames = 0;
  int elements = 0;                 // elements a sample
  uint64_t first = 0;               // index of the first sample
  Split split = Split::train;
  std::vector<int16_t> symbol;      // class, kBlankFrame or kPaddingFrame
  std::vector<uint8_t> gap;         // 1 on gap frames
  std::vector<int32_t> target;      // state id of the frame's element, -1 on padding
  std::vector<int32_t> element;     // element the frame belongs to, -1 on padding
  std::vector<int32_t> start;       // [batch][elements + 1]: element e owns frames [start[e], start[e+1])
  std::vector<int32_t> state;       // [batch][elements]: state id of each element
};

class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const Sampler> sampler, const TaskConfig& task);
  const Sampler& sampler() const;
  const TaskConfig& task() const;
  const GapProcess& gaps() const;
  // Buffers of `out` are reused. Samples first .. first+count-1 of the split; `pad_to` > 0 fixes the frame count.
  void make(Split split, uint64_t first, int count, Batch& out, int pad_to = 0) const;

 private:
  std::shared_ptr<const Sampler> sampler_;
  TaskConfig task_;
  GapProcess gaps_;
};

// Dense rows [batch][frames][vocab]: one-hot, zero in gaps and padding, plus noise on real frames.
// Channel c of frame t of sample i takes word t*vocab + c of its noise stream.
void expand_frames(const Batch& batch, int vocab, double noise, uint64_t seed, float* out);

// Objective `predict`: law of the next element's class given the true state, [elements][vocab] (the last element's too).
void next_symbol_law(const Automaton& automaton, int state, double* law);

}  // namespace sb
