// Runs of a claim that contribute to no figure.
#pragma once
#include <string>
#include <vector>

#include "report/rows.h"

namespace sb {

struct LostRun {
  using Why = MissingRun::Why;
  std::string id;
  std::string words;  // "delta_net, task 1, seed 2"
  Why why = Why::diverged;
  auto operator<=>(const LostRun&) const = default;
};
const char* to_string(LostRun::Why why);  // "diverged", "not finished", …

LostRun lost_run(const AbsentRun& run);
LostRun diverged_run(const Rows& rows, size_t run);

// One line per reason, each run once, with the ids of the first ten: "2 runs of this claim diverged and are excluded
// from means: …".
std::vector<std::string> lost_lines(std::vector<LostRun> runs);

}  // namespace sb
