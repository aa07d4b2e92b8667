// A task is an automaton's samples plus a gap process; the paper's tasks 1-4 are named parameter sets of it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/sampler.h"

namespace sb {

enum class GapLaw { none, constant, uniform, lognormal };
enum class GapContent { blank, forbidden_symbol };  // zeros | a symbol the grammar forbids after the current state
enum class Objective { state, predict };            // name the latent state | next-symbol law

GapLaw parse_gap_law(const std::string& name);
GapContent parse_gap_content(const std::string& name);
Objective parse_objective(const std::string& name);
const char* to_string(GapLaw);
const char* to_string(GapContent);
const char* to_string(Objective);

constexpr int kMaxGap = 100000;
constexpr std::array<int, 4> kTask4TestGaps = {10, 20, 50, 100};  // values of test.min in the paper's task 4

// Number n of gap frames after an element that has a gap.
//   constant:  n = min (max is not read).
//   uniform:   n = round(x), x uniform on [min, max]: the two ends have weight 1/(2(max-min)), the others twice that.
//   lognormal: n = round(exp(mu + sigma z)), z standard normal, clamped to [min, max].
struct GapConfig {
  GapLaw law = GapLaw::none;
  int min = 1;
  int max = 1;
  double mu = 0;
  double sigma = 1;
  double probability = 1;  // p_G: an element has a gap at all
  int start = 0;           // first element that may have one
  GapContent content = GapContent::blank;
};

struct TaskConfig {
  int number = 0;  // 0: bare sequences; 1-4: the paper's
  GapConfig train;
  GapConfig test;    // valid, test and reference splits
  double noise = 0;  // each channel of every frame + noise * U(0,1)
  Objective objective = Objective::state;
};

TaskConfig paper_task(int number);  // 1..4 (0: bare); task 4 starts at test.min = 10, see kTask4TestGaps
void check(const TaskConfig&);      // throws bad_input, naming parameter, range and value

// P(n = 0), P(n = 1), … of an element that has a gap; what the filter and the tests take for the law.
std::vector<double> gap_length_law(const GapConfig& config);
int longest_gap(const GapConfig& config);  // 0 for law none

// Gaps of one sample: frames after element e, and for forbidden_symbol content their symbols, concatenated.
struct Gaps {
  std::vector<int32_t> length;
  std::vector<int32_t> wrong;
};

// Pure function of (automaton, config, split, seed, index, states of the sample). What each word w of a PhiloxStream
// (seed, split, index, purpose) decides; all in integers, so that every machine agrees:
//   gap_place,    word e: element e >= start has a gap iff w < round(probability * 2^32).
//   gap_length,   word e: its n. uniform: min + ((w * 2(max-min) >> 32) + 1) / 2, integer division;
//                         lognormal: min + number of thresholds <= w, threshold k = round(2^32 P(n <= min+k)), from
//                         additions, multiplications, divisions and square roots of IEEE doubles in a fixed order.
//   wrong_symbol, word j: symbol of the sample's gap frame number j: entry (w * size >> 32) of forbidden(state).
// The split's number is its place in enum Split. After a state that forbids no class, the gap is dropped.
class GapProcess {
 public:
  GapProcess(std::shared_ptr<const Automaton> automaton, const TaskConfig& config, uint64_t seed);
  void draw(Split split, uint64_t index, const uint16_t* states, int length, Gaps& out) const;
  const std::vector<int32_t>& forbidden(int state) const { return forbidden_[state]; }  // classes, ascending
  const GapConfig& law(Split split) const { return split == Split::train ? config_.train : config_.test; }
  uint64_t seed() const { return seed_; }

 private:
  struct Draws {                       // one law, ready to draw from
    uint64_t place = 0;                // round(probability * 2^32)
    std::vector<uint64_t> thresholds;  // lognormal only
  };
  void draw_lengths(const GapConfig& gap, const Draws& draws, Split split, uint64_t index, int length,
                    int32_t* out) const;

  std::shared_ptr<const Automaton> automaton_;
  TaskConfig config_;
  uint64_t seed_;
  Draws train_, test_;
  std::vector<std::vector<int32_t>> forbidden_;
};

// Classes with probability 0 as the next class of each state, ascending; every class after '#'.
std::vector<std::vector<int32_t>> forbidden_classes(const Automaton& automaton);

}  // namespace sb
