// clang-format off
// The catalogue of shipped experiments, one file each. An experiment is a suite with scales (suites/suite.h) and a section
//
//   [experiment]
//   title = "Task 3"
//   sentence = "Which model tells distractors by their context?"    # what it tests, in one sentence
//   claims = ["complementary_gating"]                               # ids of the claims that its runs test
// clang-format on
#pragma once
#include <string>
#include <vector>

#include "suites/suite.h"

namespace sb {

struct Experiment {
  std::string name;  // name of its file
  std::string path;
  std::string title, sentence;
  std::vector<std::string> claims;
};

// quick, small and paper: the files in configs/scales.
const std::vector<std::string>& experiment_scales();

// All experiments of SHIPPED/experiments in catalogue order; `shipped` is the folder of the shipped configs. Throws
// bad_input with one line if a file is not an experiment.
std::vector<Experiment> read_catalogue(const std::string& shipped);
// The experiment of this name. Throws bad_input "[where] …" that lists the existing names.
const Experiment& find_experiment(const std::vector<Experiment>& all, const std::string& name, std::string_view where);
Experiment parse_experiment(std::string_view text, const std::string& path);

// The runs of the experiment at the chosen scale.
Suite experiment_suite(const Experiment& experiment, const SuiteChoice& choice,
                       const std::vector<std::string>& overrides, const ModelRules& rules);

// A part of an experiment in the queue of work: SHIPPED/experiments/queue.toml.
struct QueueStep {
  std::string title;  // "a: task 1, small"
  std::string experiment, scale;
  std::vector<std::string> where;  // conditions of keep_where
  std::vector<std::string> set;    // overrides of experiment_suite
};
std::vector<QueueStep> read_queue(const std::string& shipped, const std::vector<Experiment>& all);
std::vector<QueueStep> parse_queue(std::string_view text, const std::string& path, const std::vector<Experiment>& all);

}  // namespace sb
