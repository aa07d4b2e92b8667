// A task is an automaton's samples plus a gap process; the paper's tasks 1-4 are named parameter sets of it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/sampler.h"

namespace sb {

enum class GapLaw { none, constant, uniform, lognormal };
enum class GapContent { blank, forbidden_symbol };  // zeros | a symbol the grammar forbids after the current state
enum class Objective { state, predict };            // name the latent state | next-symbol law

// Number of gap frames after an element.
// constant: min. uniform: round(10 x)/10 of x ~ U[min/10, max/10], times 10, so the two ends have half weight.
// lognormal: round(exp(mu + sigma z)) clamped to [min, max].
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
  int number = 0;    // 0: bare sequences; 1-4: the paper's
  GapConfig train;
  GapConfig test;    // valid and test splits
  double noise = 0;  // each channel of every frame + noise * U(0,1)
  Objective objective = Objective::state;
};

TaskConfig paper_task(int number);   // 1..4 (0: bare)
void check(const TaskConfig&);       // throws bad_input, naming parameter and range

// Gaps of one sample: frames after element e, and for forbidden_symbol content their symbols, concatenated.
struct Gaps {
  std::vector<int32_t> length;
  std::vector<int32_t> wrong;
};

// Pure function of (automaton, config, split, seed, index, states of the sample).
class GapProcess {
 public:
  GapProcess(std::shared_ptr<const Automaton> automaton, const TaskConfig& config, uint64_t seed);
  void draw(Split split, uint64_t index, const uint16_t* states, int length, Gaps& out) const;
  const std::vector<int32_t>& forbidden(int state) const;  // classes that may not follow, ascending
  const GapConfig& law(Split split) const;

 private:
  std::shared_ptr<const Automaton> automaton_;
  TaskConfig config_;
  uint64_t seed_;
  std::vector<std::vector<int32_t>> forbidden_;
};

}  // namespace sb
