// A grid of runs from one file:
//
//   [suite]
//   name = "main table"
//   base = "base.toml"                      # optional; sections of this file come on top
//   [grid]                                  # every combination, the first axis slowest
//   model.name = ["mamba", "gla"]
//   run.seed = [1, 2, 3, 4]
//   size = [{grammar.vocab = 21, grammar.depth = 20}, …]   # an axis of several keys at once, under any name
//   [[override]]                            # in order, after the grid; a list in `when` means any of these
//   when = {model.name = "mamba", model.width = [768, 1152]}
//   set = {model.d_state = 64}              # or skip = true
#pragma once
#include <string>
#include <vector>

#include "runs/config_file.h"

namespace sb {

struct Suite {
  std::string name;
  std::vector<ResolvedConfig> runs;  // in the order of the grid, each run once
  size_t merged = 0;                 // combinations that were another one in other words
  size_t skipped = 0;                // combinations an override took out
};

// Everything is resolved and checked here, before anything runs. Overrides of the command line come last.
Suite read_suite(const std::string& path, const std::vector<std::string>& overrides, const ModelRules& rules);
Suite parse_suite(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                  const ModelRules& rules);

}  // namespace sb
