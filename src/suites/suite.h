// clang-format off
// A grid of runs from one file:
//
//   [suite]
//   name = "main table"
//   base = "base.toml"                      # optional; sections of this file override it
//   select = ["train.weight_decay"]         # optional: tables also select the best on valid over these
//   average = ["grammar.automaton"]         # optional: tables also average over these, as over seeds
//   extends = "scales/quick"                # optional: a suite to build on (sections, axes, overrides)
//   match = "params"                        # optional, or "state", "flops": model.width is solved for …
//   match_target = 4700000                  # … this size; a list is the slowest axis
//   match_step = 8                          # … among multiples of this
//
//   [grid]                                  # every combination, the first axis slowest
//   model.name = ["mamba", "gla"]
//   run.seed = [1, 2, 3, 4]
//   size = [{grammar.vocab = 21, …}, …]     # an axis of several keys at once, under any name
//
//   [[override]]                            # in order, after the grid; a list in `when` means any of its values
//   when = {model.name = "mamba", model.width = [768, 1152]}
//   set = {model.d_state = 64}              # or skip = true
//
//   [sweep]                                 # further axes of the grid, if a sweep is requested
//   train.lr = [5e-4, 1e-3, 2e-3]
//
//   [scale.small.grid]                      # only at this scale: any of the sections above. A suite with scales
//   run.seed = [1, 2]                       # is read at one of them, on top of the file scales/NAME
// clang-format on
#pragma once
#include <string>
#include <vector>

#include "config/config_file.h"

namespace sb {

struct Suite {
  std::string name;
  std::vector<ResolvedConfig> runs;          // in the order of the grid, without duplicates
  std::vector<std::string> select, average;  // axes of its tables besides the default ones
  std::vector<std::string> axes;             // keys that name the choices of the grid; empty if it was frozen
  size_t merged = 0;                         // combinations that duplicate another one
  size_t skipped = 0;                        // combinations that an override skipped
  // For each position in `runs` with duplicates: the combinations that resolved to the same run, each named by what
  // tells it apart ("train.clip = 1"), the run's own first.
  std::map<size_t, std::vector<std::string>> names;
  std::vector<MatchedNetwork> matched;  // without duplicates; empty if no size was requested

  std::vector<std::string> merged_lines() const;  // one sentence each, only the first few
};

// Why a table cannot select (or average) over this key; empty if it can. Tables select over training settings, never
// over data, seeds or evaluation settings.
std::string axis_fault(const std::string& key, const std::vector<std::string>& switches, bool select);

// The part of a suite file to read.
struct SuiteChoice {
  std::string scale;   // NAME of a [scale.NAME]; empty: the file has no scales
  bool sweep = false;  // include the axes of [sweep]
};

// Resolves and checks everything before anything runs. Overrides of the command line come last, and conditions see
// them. The error lists each problem of the file and of its runs once, with its location and the number of affected
// runs, and every condition that no combination of the file meets.
Suite read_suite(const std::string& path, const std::vector<std::string>& overrides, const ModelRules& rules,
                 const SuiteChoice& choice = {});
Suite parse_suite(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                  const ModelRules& rules, const SuiteChoice& choice = {});
// Whether the text is a suite ([suite], [grid] or [[override]]) rather than the config of one run.
bool is_suite(std::string_view text, const std::string& path);

// Keeps the runs that meet every condition "section.key=value" or "section.key=a,b" (any of the values). Throws
// bad_input that begins with `where` for an invalid condition, for a key or value that no run has, and if no run is
// left.
void keep_where(Suite& suite, const std::vector<std::string>& conditions, const std::string& where);
// Keeps the runs with true, which are given for every run.
void keep_runs(Suite& suite, const std::vector<bool>& kept);
// Indices of the runs in the order of work: the first seed of every setting, then the second seeds, and so on; within
// each round in grid order.
std::vector<size_t> order_of_work(const Suite& suite);

// Keys ("section.key", or "model.KEY" for a switch) that are set by files or the command line and differ between the
// runs, in schema order. They tell the runs of a suite apart.
std::vector<std::string> varying_keys(const std::vector<ResolvedConfig>& runs);
// The run's value of such a key as bare text; "" for a switch that the model does not have.
std::string value_text(const ResolvedConfig& run, const std::string& key);
// TOML of the settings that files set and all runs share.
std::string common_toml(const std::vector<ResolvedConfig>& runs);

}  // namespace sb
