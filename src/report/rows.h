// What is one cell. Every table, statistic and page is made from these rows.
//
// A group is the runs whose resolved config (and label) is the same but for the averaged axes (seeds) and the selected
// ones (learning rate, warm-up). A candidate is one setting of the selected axes. One candidate a group is chosen:
// - Seeds that no candidate has finished are left aside; one that has not run them is named. Candidates that have all
//   the others are eligible; the best mean valid accuracy over those seeds wins, and of equals the first.
// - Where no candidate has them all, those with any compete over the seeds that all of them have, the cell averages
//   these seeds alone, and a note says so. Without such a seed none is chosen, and the cell holds no figure.
// - A lone candidate needs no valid accuracy.
// A cell is one measurement (the run's own test, another gap length, …) of the chosen candidate's runs.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/axes.h"
#include "report/paper.h"
#include "report/statistics.h"
#include "runs/result.h"

namespace sb {

// One of `eval --save`.
struct SavedMeasurement : Measurement {
  std::string computed;  // "cpu, fp32" where device or precision were not the run's own

  SavedMeasurement(Measurement measured, std::string how = {})
      : Measurement(std::move(measured)), computed(std::move(how)) {}
};

struct TableRun {
  std::string folder;
  Result result;
  std::vector<SavedMeasurement> evaluations;  // saved beside the result afterwards
  size_t damaged = 0;                         // evaluations beside it that cannot be used
};

// Values are JSON text as in Result::config; an absent key is "".
using ConfigMap = std::map<std::string, std::string>;

struct Candidate {
  std::vector<std::string> settings;  // of Axes::select, in order
  std::vector<size_t> runs;           // done, in order of seeds
  std::vector<size_t> diverged;
  std::vector<std::string> missing;  // seeds of others, finished or diverged, that it has not run, in words
  bool eligible = false;
  std::optional<double> valid;  // mean accuracy over the seeds selection looked at
};

struct Group {
  ConfigMap config;  // less the averaged and selected axes; quirks in one key "quirks", the label as "run.label"
  std::vector<Candidate> candidates;
  std::optional<size_t> chosen;
  std::vector<size_t> averaged;  // runs of the chosen candidate that its cells average

  std::string value(const std::string& key) const;  // "" where absent
  std::string model() const;
};

// What was measured: the run's own test where all is empty.
struct Point {
  std::optional<int> gap;
  std::string split;          // of evaluations saved afterwards, where it is not the split of the run's test
  int64_t samples = 0;        // of such evaluations
  std::string computed = {};  // of evaluations on another device or in another precision than the run's
  auto operator<=>(const Point&) const = default;
};

struct Cell {
  size_t group = 0;
  Point point;
  std::string split;                 // that was measured
  int64_t samples = 0;               // a run; 0: not the same in all
  std::vector<size_t> runs;          // averaged; empty: no figure
  int64_t grammars = 0;              // different grammars among them
  double mean = 0;                   // test accuracy
  std::optional<double> sd;          // over the means of the grammars where there are several, else over the runs
  std::string sd_over;               // in words: what differs between these: "grammars", "train seeds", "task.noise"
  std::optional<Interval> interval;  // 95 % of the mean over the same values, not cut at 0 and 1
  std::optional<double> valid, kl, ceiling, upper_bound;
  std::optional<double> kl_bound;  // of the true law: no model has less in expectation
  bool ceiling_exact = true;       // false: only the upper bound holds
  std::optional<double> chance;
  std::optional<double> n_gram;  // its accuracy
  int n_least = 0, n_most = 0;   // its n, as chosen for each run
  size_t diverged = 0;           // runs of the chosen candidate, or of all where none is chosen
  std::optional<PaperFigure> paper;
};

// Every switch of a model where none is set, by name; empty where that is not known.
using SwitchDefaults = std::function<std::map<std::string, std::string>(const std::string& model, int64_t width)>;
SwitchDefaults defaults_of(const ModelRules& rules);

enum class Standing { averaged, not_chosen, not_eligible, none_chosen, diverged, seed_not_common };
const char* to_string(Standing standing);

// A run that was read and is in no row.
struct LeftOut {
  enum class Why { fault, untested, copy };
  std::string folder;
  Why why = Why::fault;
  std::string name, reason;  // in words, safe to print
};

// A run that is in no cell, and its config where that is known.
struct MissingRun {
  enum class Why { unfinished, damaged, untested, other_schema };
  std::string name;  // of its folder
  ConfigMap config;
  Why why = Why::unfinished;
};

// The same among the rows.
struct AbsentRun {
  std::string id, words;             // "gla, task 1, seed 2"; empty where its config is not known
  ConfigMap config;                  // as that of the group it would be in; empty where it is not known
  std::vector<std::string> grammar;  // as grammar_of
  MissingRun::Why why = MissingRun::Why::unfinished;
};

struct Rows {
  std::vector<TableRun> runs;
  std::vector<Standing> standing;                         // of each run
  std::vector<size_t> group_of;                           // of each run
  std::vector<std::vector<std::string>> seeds, settings;  // of each run: values of Axes::average and Axes::select
  Axes axes;
  std::vector<Group> groups;
  std::vector<Cell> cells;         // by group
  std::vector<std::string> notes;  // safe to print: what was left out or not eligible, and why
  size_t choice_notes = 0;         // the first of the notes: how settings were chosen
  // Runs that are not finished, damaged, done without a test accuracy (an output was not finite), or of another result
  // schema, by what tells them apart; safe to print.
  std::vector<std::string> missing, damaged, untested, other_schema;
  std::vector<LeftOut> left_out;  // of the runs that were read
  std::vector<AbsentRun> absent;  // all of these
  SwitchDefaults defaults;
};

// `notes` come behind those of the choice. Runs without usable figures, second copies of a run and runs that
// contradict their own config are left out and named; of two copies the one with fewer damaged evaluations stays.
Rows make_rows(std::vector<TableRun> runs, const Axes& axes, std::vector<std::string> notes = {},
               std::vector<MissingRun> missing = {}, SwitchDefaults defaults = {});

// Measurements of a run by what they measure; those of the result win over ones saved later.
std::map<Point, const Measurement*> points_of(const TableRun& run);
std::set<Point> further_points(const Rows& rows);  // of any run, besides its own test
bool shows_saved(const TableRun& run);             // whether one of them was saved afterwards
// Averaged axes beyond the seeds that differ within some cell.
std::vector<std::string> averaged_further(const Rows& rows);

// "done", or why there is no figure: "diverged" (every run of the group), "none chosen".
std::string status_of(const Rows& rows, const Cell& cell);

// The n-gram that stands beside a measurement of the run: that of its test, and of other gap lengths where gaps are
// blank, which n-grams skip. Nothing where there is none, or of an earlier version.
struct NgramFigure {
  double accuracy = 0;
  int n = 0;
};
std::optional<NgramFigure> n_gram_of(const Result& result, const Point& point = {});
// "6" or "5–7".
std::string n_text(int least, int most);
// What the n-gram is, for readers of a table that has one.
extern const char* const kNgramNote;

// A JSON text as people write it: without quotes, control characters shown.
std::string plain_value(const std::string& json);
std::string seeds_text(const Rows& rows, size_t run);

// A finished run whose test accuracy is not above naming the commonest state after the last symbol seen: in words, with
// both and the setting it was trained at. Nothing where the run learnt more than that, or where it is not known.
std::optional<std::string> collapsed_run(const Rows& rows, size_t run);

}  // namespace sb
