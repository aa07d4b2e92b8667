// Parameters of a language with gaps; the paper's tasks 1-4 are named parameter sets.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/language.h"

namespace sb {

enum class GapLaw { none, constant, uniform, lognormal };
enum class GapContent { blank, forbidden_symbol };  // zeros | a symbol the grammar forbids after the current state
enum class Objective { state, predict };  // predict the hidden state | predict the distribution of the next symbol

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
  double probability = 1;  // p_G: probability that an element has a gap
  int start = 0;           // first element that may have a gap
  GapContent content = GapContent::blank;
};

struct TaskConfig {
  int number = 0;  // 1-4: one of the paper's tasks; 0: sequences without gaps by default
  GapConfig train;
  GapConfig test;    // for the splits valid, test and reference
  double noise = 0;  // every channel of a real frame gets + noise * U(0,1)
  Objective objective = Objective::state;
};

TaskConfig paper_task(int number);  // 1..4 (0: bare); task 4 starts at test.min = 10, see kTask4TestGaps
void check(const TaskConfig&);      // throws bad_input, naming parameter, range and value

// The task with gaps of `gap` frames on this split. The elements with a gap and the content of gaps do not change.
TaskConfig with_gap(TaskConfig task, Split split, int gap);

int answer_count(Objective objective, int states, int classes);  // outputs of a model

// P(n = 0), P(n = 1), … of an element that has a gap: the distribution that the filter and the tests assume.
std::vector<double> gap_length_law(const GapConfig& config);
int longest_gap(const GapConfig& config);             // 0 for law none
bool has_fixed_frames(const GapConfig& config);       // all elements have the same number of frames
double mean_element_frames(const GapConfig& config);  // including the data frame

// The config keys, one per line, without keys that have no effect. Equal texts mean equal gaps, noise and answers.
std::string canonical_text(const TaskConfig& config);

}  // namespace sb
