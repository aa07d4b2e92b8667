// The table of a set of finished runs: model x task, mean and spread over seeds, with ceiling, chance and the paper's
// figure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sb {

// One finished run as its result.json tells it; what is absent there is empty here.
struct RunResult {
  std::string run_id, status, model, task, precision, label;
  uint64_t seed = 0;
  int64_t width = 0, params = 0, updates = 0;
  double lr = 0;
  double test = 0, valid = 0, ceiling = 0, chance = 0;
  bool select_on_test = false;
  std::vector<std::string> quirks;           // those that were on
  std::vector<std::pair<int, double>> grid;  // gap length, accuracy
  std::vector<std::pair<int, double>> grid_ceiling;
  std::string variant;  // switches of the model that differ from its defaults
};

struct Cell {
  std::string model, variant, task;  // task "4 n=20": a point of the generalisation grid
  int64_t width = 0, params = 0;
  double mean = 0, sd = 0;  // test accuracy over seeds, at the learning rate best on valid for each seed
  int seeds = 0, diverged = 0, runs = 0;
  double ceiling = 0, chance = 0;
  double paper = 0, paper_sd = 0;  // 0: the paper has none
  std::string precision;
};

struct Summary {
  std::vector<Cell> cells;
  std::vector<std::string> notes;  // mixed precisions, quirks, diverged runs, runs that are not finished
};

RunResult read_result(const std::string& folder);
// Runs of the folder in order of model and task. For each (model, variant, width, task, seed) the learning rate with
// the best valid accuracy counts (the best test accuracy where the run says so: quirk select_on_test).
Summary summarise(const std::vector<RunResult>& results);
// Every finished run below `root`; unfinished ones are named in `notes`.
Summary summarise_folder(const std::string& root);

enum class TableFormat { text, markdown, csv, json };
TableFormat parse_table_format(const std::string& name);
std::string render(const Summary& summary, TableFormat format);

}  // namespace sb
