// clang-format off
// The catalogue: experiments that ship, one file each, which are suites with scales (runs/suite.h) and
//
//   [experiment]
//   title = "Task 3"
//   sentence = "Which model tells distractors by their context?"    # what it tests, in one sentence
//   claims = ["complementary_gating"]                               # ids of what its runs decide
// clang-format on
#pragma once
#include <string>
#include <vector>

#include "runs/suite.h"

namespace sb {

struct Experiment {
  std::string name;  // of its file
  std::string path;
  std::string title, sentence;
  std::vector<std::string> claims;
};

// quick, small and paper: files of these names in configs/scales.
const std::vector<std::string>& experiment_scales();

// Every experiment of SHIPPED/experiments in the order the catalogue shows them. Throws bad_input with one line where a
// file is none; `shipped` is the folder of the shipped configs.
std::vector<Experiment> read_catalogue(const std::string& shipped);
// One of them; throws bad_input "[where] …" with the names there are.
const Experiment& find_experiment(const std::vector<Experiment>& all, const std::string& name, std::string_view where);
Experiment parse_experiment(std::string_view text, const std::string& path);

// Its runs at this scale.
Suite experiment_suite(const Experiment& experiment, const SuiteChoice& choice,
                       const std::vector<std::string>& overrides, const ModelRules& rules);

// A part of an experiment in a list of what is to be run: SHIPPED/experiments/queue.toml.
struct QueueStep {
  std::string title;  // "a: task 1, small"
  std::string experiment, scale;
  std::vector<std::string> where;  // conditions of keep_where
};
std::vector<QueueStep> read_queue(const std::string& shipped, const std::vector<Experiment>& all);
std::vector<QueueStep> parse_queue(std::string_view text, const std::string& path, const std::vector<Experiment>& all);

}  // namespace sb
