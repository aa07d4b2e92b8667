// Draws the gaps of a sample: which elements have a gap, its length and its content.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "grammar/language.h"
#include "tasks/task_config.h"

namespace sb {

// Gaps of one sample: the number of gap frames after each element and, for forbidden_symbol content, the symbols of all
// gap frames, concatenated.
struct Gaps {
  std::vector<int32_t> length;
  std::vector<int32_t> wrong;
};

// Draws gaps as a pure function of (language, config, split, index, states of the sample). Each word w of the
// PhiloxStream (language's seed, split, index, purpose) decides one value, in integers, so that all machines agree:
//   gap_place,    word e: element e >= start has a gap iff w < round(probability * 2^32).
//   gap_length,   word e: gap length n. uniform: min + ((w * 2(max-min) >> 32) + 1) / 2, integer division;
//                         lognormal: min + number of thresholds <= w, threshold k = round(2^32 P(n <= min+k)), from
//                         additions, multiplications, divisions and square roots of IEEE doubles in a fixed order.
//   wrong_symbol, word j: symbol of the sample's gap frame number j: entry (w * size >> 32) of forbidden(state).
// The split's number is its position in enum Split. After a state that forbids no class, the gap is dropped.
class GapProcess {
 public:
  GapProcess(const Language& language, const TaskConfig& config);
  // `forbidden`: for each state, the classes of its wrong symbols, ascending.
  GapProcess(uint64_t seed, std::vector<std::vector<int32_t>> forbidden, const TaskConfig& config);
  void draw(Split split, uint64_t index, const uint16_t* states, int length, Gaps& out) const;
  const std::vector<int32_t>& forbidden(int state) const { return forbidden_[state]; }  // classes, ascending
  const GapConfig& law(Split split) const { return split == Split::train ? config_.train : config_.test; }

 private:
  struct Draws {                       // one distribution, prepared for drawing
    uint64_t place = 0;                // round(probability * 2^32)
    std::vector<uint64_t> thresholds;  // lognormal only
  };
  void draw_lengths(const GapConfig& gap, const Draws& draws, Split split, uint64_t index, int length,
                    int32_t* out) const;

  TaskConfig config_;
  uint64_t seed_;
  Draws train_, test_;
  std::vector<std::vector<int32_t>> forbidden_;
};

}  // namespace sb
