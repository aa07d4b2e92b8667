// Defines groups, candidates and cells. Every table, statistic and page is made from these rows.
//
// A group is a set of runs whose resolved configs (and labels) differ only in averaged axes (seeds) and selected axes
// (learning rate, warm-up). A candidate is one setting of the selected axes. One candidate per group is chosen:
// - Seeds that no candidate has finished are ignored; candidates that have not run them are named. A candidate is
//   eligible if it finished all other seeds. The eligible candidate with the best mean valid accuracy over these seeds
//   wins; on ties, the first.
// - If no candidate is eligible, all candidates with finished runs compete over their common seeds. The cell then
//   averages only these seeds, and a note says so. Without a common seed no candidate is chosen, and the cell is empty.
// - A single candidate needs no valid accuracy.
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
#include "store/result.h"

namespace sb {

// A measurement of `eval --save`.
struct SavedMeasurement : Measurement {
  std::string computed;  // "cpu, fp32" if device or precision differ from the run's

  SavedMeasurement(Measurement measured, std::string how = {})
      : Measurement(std::move(measured)), computed(std::move(how)) {}
};

struct TableRun {
  std::string folder;
  Result result;
  std::vector<SavedMeasurement> evaluations;  // saved after the run
  size_t damaged = 0;                         // saved evaluations that cannot be used
};

// Values are JSON text as in Result::config; an absent key is "".
using ConfigMap = std::map<std::string, std::string>;

struct Candidate {
  std::vector<std::string> settings;  // of Axes::select, in order
  std::vector<size_t> runs;           // finished, in order of seeds
  std::vector<size_t> diverged;
  std::vector<std::string> missing;  // seeds that only other candidates ran, as text
  bool eligible = false;
  std::optional<double> valid;  // mean accuracy over the seeds used for selection
};

struct Group {
  // Without averaged and selected axes; all quirks in one key "quirks", the label as "run.label". "task.number" is the
  // task: its number, or the name of a kind that has no numbers.
  ConfigMap config;
  std::vector<Candidate> candidates;
  std::optional<size_t> chosen;
  std::vector<size_t> averaged;  // runs of the chosen candidate that its cells average

  std::string value(const std::string& key) const;  // "" if absent
  std::string model() const;
};

// What was measured. All fields empty: the run's own test.
struct Point {
  std::optional<int> at;      // value of the test axis
  std::string split;          // of saved evaluations, if it differs from the split of the run's test
  int64_t samples = 0;        // of these evaluations
  std::string computed = {};  // of evaluations with another device or precision than the run's
  std::string axis = {};      // name of the test axis; empty: gap
  auto operator<=>(const Point&) const = default;
};

struct Cell {
  size_t group = 0;
  Point point;
  std::string split;                 // that was measured
  int64_t samples = 0;               // per run; 0: differs between runs
  std::vector<size_t> runs;          // averaged; empty: no figure
  int64_t grammars = 0;              // different grammars among them
  bool squared = false;              // the figures are mean squared errors: less is better
  double mean = 0;                   // test accuracy, or mean squared error
  std::optional<double> sd;          // over the means of the grammars if there are several, else over the runs
  std::string sd_over;               // in words: what differs between these: "grammars", "train seeds", "task.noise"
  std::optional<Interval> interval;  // 95 % of the mean over the same values, not cut at 0 and 1
  std::optional<double> valid, kl, ceiling, upper_bound;  // under squared error, `ceiling` is a lower bound
  std::optional<double> kl_bound;                         // of the true distribution: no model has a lower expected KL
  bool ceiling_exact = true;                              // false: only the upper bound holds
  std::optional<double> chance;
  std::optional<double> n_gram;  // its accuracy
  int n_least = 0, n_most = 0;   // range of its n, which is chosen per run
  size_t diverged = 0;           // runs of the chosen candidate, or of all if none is chosen
  std::optional<PaperFigure> paper;
};

// Default of every switch of a model, by name; empty if not known.
using SwitchDefaults = std::function<std::map<std::string, std::string>(const std::string& model, int64_t width)>;
SwitchDefaults defaults_of(const ModelRules& rules);

enum class Standing { averaged, not_chosen, not_eligible, none_chosen, diverged, seed_not_common };
const char* to_string(Standing standing);

// A line below tables, safe to print.
struct Note : std::string {
  enum class Kind { other, left_out, damaged, collapsed };  // damaged: excluded because it cannot be read
  Note(const char* text) : std::string(text) {}
  Note(std::string text, Kind of = Kind::other) : std::string(std::move(text)), kind(of) {}
  Kind kind = Kind::other;
};

// A run that was read but is in no row.
struct LeftOut {
  enum class Why { fault, untested, copy };
  std::string folder;
  Why why = Why::fault;
  std::string name, reason;  // in words, safe to print
};

// A run that is in no cell, with its config if known.
struct MissingRun {
  enum class Why { diverged, unfinished, damaged, untested, other_schema };  // diverged: only in findings (LostRun)
  std::string name;                                                          // of its folder
  ConfigMap config;
  Why why = Why::unfinished;
};

// A MissingRun in terms of the rows.
struct AbsentRun {
  std::string id, words;             // words: "gla, task 1, seed 2"; empty if the config is not known
  ConfigMap config;                  // as in the group it would belong to; empty if not known
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
  std::vector<Cell> cells;  // by group
  std::vector<Note> notes;  // what was left out or not eligible, and why
  size_t choice_notes = 0;  // the first of the notes: how settings were chosen
  // Runs that are not finished, damaged, done without a test accuracy (an output was not finite), or of another result
  // schema, by what tells them apart; safe to print.
  std::vector<std::string> missing, damaged, untested, other_schema;
  std::vector<LeftOut> left_out;  // runs that were read but are in no row
  std::vector<AbsentRun> absent;  // all runs of these four lists
  SwitchDefaults defaults;
};

// `notes` follow those on the selection of settings. Runs without usable figures, second copies and runs that
// contradict their own config are excluded and named; of two copies, the one with fewer damaged evaluations is kept.
Rows make_rows(std::vector<TableRun> runs, const Axes& axes, std::vector<Note> notes = {},
               std::vector<MissingRun> missing = {}, SwitchDefaults defaults = {});

// Measurements of a run by what they measure; those of the result override those saved later.
std::map<Point, const Measurement*> points_of(const TableRun& run);
std::set<Point> further_points(const Rows& rows);  // of any run, except its own test
bool shows_saved(const TableRun& run);             // whether any of its points was saved after the run
// Averaged axes other than seeds that differ within some cell.
std::vector<std::string> averaged_further(const Rows& rows);

// "done", or the reason why the cell is empty: "diverged" (every run of the group), "none chosen".
std::string status_of(const Rows& rows, const Cell& cell);
// The interval as tables show it: without values that the figure cannot have.
Interval shown_interval(const Cell& cell);

// The n-gram to show with a measurement of the run: on its test, and on other lengths of blank gaps, which n-grams
// skip. nullopt if there is none or the result is of an earlier version.
struct NgramFigure {
  double accuracy = 0;
  int n = 0;
};
std::optional<NgramFigure> n_gram_of(const Result& result, const Point& point = {});
// "6" or "5–7".
std::string n_text(int least, int most);
// Explains the n-gram to readers of a table.
extern const char* const kNgramNote;

// A JSON text for people: without quotes, with control characters escaped.
std::string plain_value(const std::string& json);
std::string seeds_text(const Rows& rows, size_t run);

// Describes a finished run whose test accuracy is at most 1 point above that of the 1-gram (the most frequent state of
// the last symbol), with both accuracies and the settings it was trained with. nullopt if the run learned more or if
// this is not known.
std::optional<std::string> collapsed_run(const Rows& rows, size_t run);
// Runs whose accuracy is above the ceiling of their own test by more than four standard errors: something is wrong with
// them. A line each.
std::vector<std::string> above_ceiling(const Rows& rows);

}  // namespace sb
