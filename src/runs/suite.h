// A grid of runs from one file:
//
//   [suite]
//   name = "main table"
//   base = "base.toml"                      # optional; sections of this file come on top
//   select = ["train.weight_decay"]         # optional: tables take the best on valid of these too, beside lr and
//   warmup average = ["grammar.automaton"]         # optional: tables average over these too, beside the seeds [grid]
//   # every combination, the first axis slowest model.name = ["mamba", "gla"] run.seed = [1, 2, 3, 4] size =
//   [{grammar.vocab = 21, grammar.depth = 20}, …]   # an axis of several keys at once, under any name
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
  std::vector<ResolvedConfig> runs;          // in the order of the grid, each run once
  std::vector<std::string> select, average;  // axes of its tables beyond the usual ones
  size_t merged = 0;                         // combinations that were another one in other words
  size_t skipped = 0;                        // combinations an override took out
};

// Why a table cannot select (or average) over this key; empty: it can. Selection is over what trains a model, never
// over data, seeds or what is measured.
std::string axis_fault(const std::string& key, const std::vector<std::string>& switches, bool select);

// Everything is resolved and checked here, before anything runs. Overrides of the command line come last.
Suite read_suite(const std::string& path, const std::vector<std::string>& overrides, const ModelRules& rules);
Suite parse_suite(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                  const ModelRules& rules);

}  // namespace sb
