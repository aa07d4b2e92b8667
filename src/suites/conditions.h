// Conditions of a command line on runs: "section.key=value", or "section.key=a,b" for any of the values.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sb {

struct ConditionedRuns {
  size_t count = 0;
  std::vector<std::string> keys;  // that some run has
  // Bare text: gla, 0.001, [10, 20]; "" if the run does not have the key.
  std::function<std::string(size_t run, const std::string& key)> value;
};

// For each run, whether it meets every condition. Values are compared as values of the key: 1e-3 is 0.001. Throws
// bad_input that begins with `where` for an invalid condition, for a key or value that no run has, and if no run meets
// them all.
std::vector<bool> runs_where(const ConditionedRuns& runs, const std::vector<std::string>& conditions,
                             const std::string& where);

}  // namespace sb
