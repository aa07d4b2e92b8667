// clang-format off
// A grid of runs from one file:
//
//   [suite]
//   name = "main table"
//   base = "base.toml"                      # optional; sections of this file come on top
//   select = ["train.weight_decay"]         # optional: tables take the best on valid of these too
//   average = ["grammar.automaton"]         # optional: tables average over these too, as over the seeds
//   extends = "scales/quick"                # optional: a suite whose sections, axes and overrides come first
//   match = "params"                        # optional, or "state", "flops": model.width is solved for …
//   match_target = 4700000                  # … this size; a list: each of them, the slowest axis
//   match_step = 8                          # … among its multiples
//
//   [grid]                                  # every combination, the first axis slowest
//   model.name = ["mamba", "gla"]
//   run.seed = [1, 2, 3, 4]
//   size = [{grammar.vocab = 21, …}, …]     # an axis of several keys at once, under any name
//
//   [[override]]                            # in order, after the grid; a list in `when` means any of these
//   when = {model.name = "mamba", model.width = [768, 1152]}
//   set = {model.d_state = 64}              # or skip = true
//
//   [sweep]                                 # axes that are part of the grid where a sweep is asked for
//   train.lr = [5e-4, 1e-3, 2e-3]
//
//   [scale.small.grid]                      # what only holds at this scale: any of the sections above. A suite with
//   run.seed = [1, 2]                       # scales is read at one of them, on top of the file scales/NAME
// clang-format on
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
  // The combinations that came to the same run, each by what tells it from the others ("train.clip = 1"), by the place
  // of the run in `runs`; the run's own first.
  std::map<size_t, std::vector<std::string>> names;
  std::vector<MatchedNetwork> matched;  // each once; empty where no size was asked for

  std::vector<std::string> merged_lines() const;  // a sentence each, at most a handful
};

// Why a table cannot select (or average) over this key; empty: it can. Selection is over what trains a model, never
// over data, seeds or what is measured.
std::string axis_fault(const std::string& key, const std::vector<std::string>& switches, bool select);

// What of a suite's file is read.
struct SuiteChoice {
  std::string scale;   // one of [scale.NAME]; empty: the file has none
  bool sweep = false;  // the axes of [sweep] too
};

// Everything is resolved and checked here, before anything runs. Overrides of the command line come last, and
// conditions see them. The error lists every fault of the file and of every run once, with its place and how many runs
// have it, and every condition that no combination of the file meets.
Suite read_suite(const std::string& path, const std::vector<std::string>& overrides, const ModelRules& rules,
                 const SuiteChoice& choice = {});
Suite parse_suite(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                  const ModelRules& rules, const SuiteChoice& choice = {});
// Whether the text is that of a suite ([suite], [grid] or [[override]]) rather than one run.
bool is_suite(std::string_view text, const std::string& path);

// Keeps the runs that meet every condition "section.key=value", or one of several values "a,b". Throws bad_input that
// begins with `where` for what is no condition, a key or value that no run has, and where no run is left.
void keep_where(Suite& suite, const std::vector<std::string>& conditions, const std::string& where);
// Places of the runs in the order they are to be worked on: the first seeds of all, then the second ones, and so on;
// as in the grid among these.
std::vector<size_t> order_of_work(const Suite& suite);

// Keys ("section.key", a switch "model.KEY") that the files or the command line give and whose values differ between
// the runs, in the order of the schema; what tells the runs of a suite apart.
std::vector<std::string> varying_keys(const std::vector<ResolvedConfig>& runs);
// The run's value of such a key as text, bare; "" for a switch it does not have.
std::string value_text(const ResolvedConfig& run, const std::string& key);
// TOML of what the files give and all runs share.
std::string common_toml(const std::vector<ResolvedConfig>& runs);

}  // namespace sb
