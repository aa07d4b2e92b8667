// Batches ready for a model: contiguous buffers of symbol ids and gap flags; one-hot rows and noise are made by the
// consumer.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/task.h"

namespace sb {

constexpr int16_t kBlankFrame = -1;    // a zero row
constexpr int16_t kPaddingFrame = -2;  // a zero row without noise, target or weight

// All arrays are row-major [batch][frames] unless said; `frames` is the longest sample of the batch, or `pad_to`.
struct Batch {
  int batch = 0;
  int frames = 0;
  int elements = 0;    // elements a sample
  uint64_t first = 0;  // index of the first sample
  Split split = Split::train;
  std::vector<int16_t> symbol;   // class, kBlankFrame or kPaddingFrame
  std::vector<uint8_t> gap;      // 1 on gap frames
  std::vector<int32_t> target;   // state id of the frame's element, -1 on padding
  std::vector<int32_t> element;  // element the frame belongs to, -1 on padding
  std::vector<int32_t> start;    // [batch][elements + 1]: element e owns frames [start[e], start[e+1])
  std::vector<int32_t> state;    // [batch][elements]: state id of each element

  int real_frames(int row) const { return start[static_cast<size_t>(row + 1) * (elements + 1) - 1]; }
};

class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const Sampler> sampler, const TaskConfig& task);
  const Sampler& sampler() const { return *sampler_; }
  const TaskConfig& task() const { return task_; }
  const GapProcess& gaps() const { return gaps_; }
  // Samples first .. first+count-1 of the split. Buffers of `out` are reused; `pad_to` > 0 fixes the frame count.
  void make(Split split, uint64_t first, int count, Batch& out, int pad_to = 0) const;
  // The same from samples drawn before: rows first_row .. first_row+count-1 of a block of this split.
  void make(Split split, const SampleBlock& block, size_t first_row, int count, Batch& out, int pad_to = 0) const;
  int longest(Split split) const;  // most frames a sample of the split can have

 private:
  std::shared_ptr<const Sampler> sampler_;
  TaskConfig task_;
  GapProcess gaps_;
};

// Lays out rows of states [count][length] with their gaps. A gap frame's symbol is the next of `wrong`, or blank where
// the sample has none.
void assemble(const Automaton& automaton, const uint16_t* states, int length, const Gaps* gaps, int count, Batch& out,
              int pad_to = 0);

// Dense rows [batch][frames][vocab]: one-hot, zero in gaps and padding, plus noise on real frames: channel c of frame t
// of sample i adds float(noise) * unit_float(w), w word t*vocab + c of its stream (seed, split, i, noise). The product
// is rounded to float before the sum (no FMA), so every device gives the same bits.
void expand_frames(const Batch& batch, int vocab, double noise, uint64_t seed, float* out);

// Objective `predict`: law over the next element's class, [vocab].
void next_symbol_law(const Automaton& automaton, int state, double* law);  // the grammar's own
// With strings conditioned on fitting the length; `used` = elements of the current string so far, `state`'s included.
void next_symbol_law(const Sampler& sampler, int state, int used, double* law);
// The grammar's law for every state, [states][vocab], rows by state id: gather with Batch::target.
std::vector<float> symbol_law_table(const Automaton& automaton);

}  // namespace sb
