// Batches ready for a model: contiguous buffers of symbol ids and gap flags, a few bytes a frame. Dense rows are a
// function of them, made where they are consumed.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tasks/task.h"

namespace sb {

constexpr int16_t kBlankFrame = -1;    // a zero row
constexpr int16_t kPaddingFrame = -2;  // a zero row without noise, target or weight

// All arrays are row-major [batch][frames] unless said; `frames` is the longest sample of the batch, or `pad_to`.
struct Batch {
  int batch = 0;
  int frames = 0;
  int elements = 0;  // elements a sample
  int vocab = 0;     // channels of a dense frame
  Split split = Split::train;
  double noise = 0;               // each channel of a real frame + noise * U(0,1)
  uint64_t seed = 0;              // of the noise
  std::vector<uint64_t> samples;  // [batch]: index of each row's sample
  std::vector<int16_t> symbol;    // class, kBlankFrame or kPaddingFrame
  std::vector<uint8_t> gap;       // 1 on gap frames
  std::vector<int32_t> target;    // state id of the frame's element, -1 on padding
  std::vector<int32_t> element;   // element the frame belongs to, -1 on padding
  std::vector<int32_t> start;     // [batch][elements + 1]: element e owns frames [start[e], start[e+1])
  std::vector<int32_t> state;     // [batch][elements]: state id of each element

  int real_frames(int row) const { return start[static_cast<size_t>(row + 1) * (elements + 1) - 1]; }
};

class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const Sampler> sampler, const TaskConfig& task);
  const Sampler& sampler() const { return *sampler_; }
  const TaskConfig& task() const { return task_; }
  const GapProcess& gaps() const { return gaps_; }
  // The samples of these indices, in this order. Buffers of `out` are reused; `pad_to` > 0 fixes the frame count, what
  // lies beyond a sample's end is padding.
  void make(Split split, std::span<const uint64_t> indices, Batch& out, int pad_to = 0) const;
  void make(Split split, uint64_t first, int count, Batch& out, int pad_to = 0) const;  // first .. first+count-1
  // The same from samples drawn before: rows first_row .. first_row+count-1 of a block of this split.
  void make(Split split, const SampleBlock& block, size_t first_row, int count, Batch& out, int pad_to = 0) const;
  int longest(Split split) const;  // most frames a sample of the split can have

 private:
  void lay_out(Split split, const uint16_t* states, Batch& out, int pad_to) const;

  std::shared_ptr<const Sampler> sampler_;
  TaskConfig task_;
  GapProcess gaps_;
};

// Lays out rows of states [count][length] with their gaps. A gap frame's symbol is the next of `wrong`, or blank where
// the sample has none.
void assemble(const Automaton& automaton, const uint16_t* states, int length, const Gaps* gaps, int count, Batch& out,
              int pad_to = 0);

// Frames [from, to) of a row as dense ones, [to - from][vocab]: one-hot, zero in gaps and padding, plus noise on real
// frames: channel c of frame t of sample i adds float(noise) * unit_float(w), w word t*vocab + c of its stream
// (seed, split, i, noise). The product is rounded to float before the sum (no FMA), so every device gives the same
// bits.
void expand_row(const Batch& batch, int row, int from, int to, float* out);
void expand_frames(const Batch& batch, float* out);  // all of them, [batch][frames][vocab]

// Objective `predict`: law over the next element's class, [vocab].
void next_symbol_law(const Automaton& automaton, int state, double* law);  // the grammar's own
// With strings conditioned on fitting the length; `used` = elements of the current string so far, `state`'s included.
void next_symbol_law(const Sampler& sampler, int state, int used, double* law);
// The grammar's law for every state, [states][vocab], rows by state id: gather with Batch::target.
std::vector<float> symbol_law_table(const Automaton& automaton);

}  // namespace sb
