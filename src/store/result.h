// The typed result of a run, and its conversion to and from result.json. Missing is not zero: a field that was not
// measured is absent.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sb {

// Incremented when a field changes its meaning or a reader could misread a result.
constexpr int result_schema = 3;

// Ceiling: the score of the exact filter on the same split, task and gap.
struct CeilingFigure {
  double accuracy = 0, stderr_ = 0;
  double upper_bound = 0;    // no causal model exceeds it in expectation
  std::optional<double> kl;  // objective predict: KL of the true distribution given the frames, nats
  bool exact = true;         // false: noise above 1 hides symbols, and the figures are only upper bounds
  int64_t samples = 0;
  std::optional<double> mse =
      {};  // squared error instead of accuracy and bound: no causal model has less in expectation
  double score() const { return mse ? *mse : accuracy; }
};

// A value of the task's test axis: "gap 20".
struct TestPoint {
  std::string axis;
  int at = 0;
};

struct AccuracyBin {
  double from = 0;  // lower end
  double accuracy = 0;
  int64_t count = 0;
};

// Answers for elements of one symbol: right, another state of the same symbol, or a state of another symbol.
struct SymbolConfusion {
  int symbol = 0;
  int64_t right = 0, same_symbol = 0, other_symbol = 0;
};

// One evaluation of a split.
struct Measurement {
  std::string split;                // train, valid, test or reference
  std::optional<std::string> axis;  // of `at`; absent: gap, frames after every element
  std::optional<int> at;            // value of the test axis; absent: the task's own distribution
  int64_t samples = 0, elements = 0, frames = 0;
  double accuracy = 0, stderr_ = 0;  // stderr from the spread between samples
  std::optional<double> mse;         // squared error instead of accuracy
  double loss = 0;                   // nats per frame, or squared error
  std::optional<double> kl;          // objective predict, nats per element
  std::optional<CeilingFigure> ceiling;
  // Breakdowns; empty unless requested.
  std::vector<std::optional<double>> by_position;
  std::vector<AccuracyBin> by_gap_frame, by_since_certain, by_entropy;
  std::vector<SymbolConfusion> confusion;

  std::string axis_name() const { return axis.value_or("gap"); }
  double score() const { return mse ? *mse : accuracy; }  // what tables show
};

// Histogram of one gate over data frames or gap frames.
struct GateCounts {
  std::vector<int64_t> counts;  // equal bins from `low` to `high` of GateFigure
  double mean = 0;
  int64_t total = 0;
};
struct GateFigure {
  int layer = 0;
  std::string gate;  // decay, write or step
  double low = 0, high = 1;
  bool log10 = false;  // bins are of the base-10 logarithm
  GateCounts data, gap;
};
struct GateFigures {
  std::vector<GateFigure> gates;
  std::optional<double> write_selectivity, forget_selectivity;
};

// Decays of one layer as quantiles over channels. Decays that depend on data are first averaged over data frames.
struct DecaySpectrum {
  int layer = 0;
  std::vector<double> quantiles;  // at 0, 5, 25, 50, 75, 95 and 100 %
};

struct StateShare {
  int32_t state = 0;
  double probability = 0;
};
// One element of a recorded sample: the symbol, the true state, and the predictions.
struct ElementRecord {
  int symbol = 0;     // -1: blank
  int32_t state = 0;  // -1: not asked for
  int64_t gap_frames = 0;
  std::vector<int> gap;                     // symbols of its first recorded_gap gap frames; -1: blank
  std::vector<StateShare> network, filter;  // the five likeliest states, averaged over the element's frames
};
struct SampleRecord {
  int64_t index = 0;                    // in the split of `test`
  int64_t length = 0;                   // elements of the sample
  std::vector<ElementRecord> elements;  // the first recorded_elements elements
};
constexpr int recorded_samples = 3, recorded_elements = 48, recorded_gap = 32, recorded_states = 5;
// Maximum number of positions in by_position.
constexpr int recorded_positions = 4096;

// Predictors without a network on the same task and split. Absent n: a result of an earlier version, whose n-grams were
// counted on fewer samples than the run saw, with n up to 4.
struct BaselineFigures {
  double majority = 0;
  std::optional<double> table_learner;  // only in results of earlier versions
  std::vector<double> n_gram;           // entry n-1; empty if noise hides symbols
  std::optional<int> n;                 // the best on valid
  std::optional<double> n_gram_stderr;  // of its accuracy
  int64_t train_samples = 0, test_samples = 0;

  // nullopt if n is absent, or outside of n_gram in an edited file.
  std::optional<double> best_n_gram() const {
    if (!n || *n < 1 || static_cast<size_t>(*n) > n_gram.size()) return std::nullopt;
    return n_gram[static_cast<size_t>(*n) - 1];
  }
};

struct DivergenceFigure {
  int64_t update = 0;
  int64_t layer = -1;  // -1: encoder or decoder
  std::string tensor;
};

// How and where the result was computed. Not compared between runs.
struct Provenance {
  std::string version, commit, compiler, libtorch, blas, instructions, device, host;
  std::optional<std::string> precision;  // of an evaluation; that of a run is in its result
  int threads = 0;
  std::optional<int64_t> accumulate;  // micro-batches per update, as resolved; absent if nothing was trained
  std::optional<int64_t> world;       // ranks of the process group that finished the run; absent if nothing was trained
  // Over all processes that worked on the run; absent if nothing was trained.
  std::optional<double> train_seconds, total_seconds;
  std::optional<double> tokens_per_second;  // training frames / train_seconds
  std::optional<int64_t> shared_by;         // concurrent runs of its suite on its device, including this run
  std::string finished;                     // UTC, 2026-01-31T12:00:00Z
};

struct Result {
  std::string run_id;
  std::string status;  // done or diverged
  std::string model;
  int task = 0;  // task.number; 0 for a kind of task that has none
  std::string objective, precision, device;
  // Everything that can change a number: "section.key" ("model.switch KEY" for a switch) to JSON text, as in the run
  // id.
  std::map<std::string, std::string> config;
  std::string label;
  uint64_t run_seed = 0, grammar_seed = 0, train_seed = 0;
  int64_t width = 0, layers = 0;
  std::vector<std::string> quirks;  // enabled quirks
  int64_t params = 0;
  std::optional<int64_t> state_size;  // numbers that a layer keeps between frames; absent: grows with time
  int64_t updates = 0, samples_seen = 0, states = 0;
  double lr = 0, chance = 0;
  std::optional<double> topological_entropy;
  std::optional<Measurement> test, valid;     // `valid` is used for selection, whatever its split
  std::optional<Measurement> published_test;  // on the first training samples, the published test set
  std::vector<Measurement> grid;              // test at points of the task's test axis
  std::optional<BaselineFigures> baselines;
  std::optional<GateFigures> gates;
  std::vector<DecaySpectrum> decays;
  std::vector<SampleRecord> samples;
  std::optional<DivergenceFigure> divergence;
  std::optional<Provenance> made;
  std::map<std::string, std::string> files;  // SHA-256 of the run's other files, by name
};

// "1" for a task of the paper, else the kind: how tables and messages call the task.
std::string task_name(const Result& result);

// Fields that contradict the result's own config or status, in one line; empty if none do.
std::string contradiction_in(const Result& result);

nlohmann::ordered_json to_json(const Result& result);

// Error: an intact result of a schema that this program does not read.
class OtherSchema : public Error {
 public:
  OtherSchema(int64_t schema, int64_t expected, const std::string& line)
      : Error(Exit::bad_input, line), schema_(schema), newer_(schema > expected) {}
  int64_t schema() const { return schema_; }  // 1: results that do not name a schema
  bool newer() const { return newer_; }

 private:
  int64_t schema_;
  bool newer_;
};

constexpr size_t kMaxResultBytes = size_t{8} << 20;
// Parses and validates a result of bounded size. Throws bad_input "[result] …, file" for anything that is not a result,
// and OtherSchema for another schema ("schema 1, this program reads 3").
Result parse_result(std::string_view text, const std::string& file);
// The text that is compared between runs: the JSON without `made`.
std::string comparable_text(const Result& result);
// result.json before sealing: one member per line, with "numbers_sha256", the digest of comparable_text.
std::string result_text(const Result& result);
// The same for archives: without `samples`, and with "whole_sha256", the numbers_sha256 of the result with them.
std::string packed_result_text(const Result& result);
// Result::config of a resolved run: its canonical JSON, flattened.
std::map<std::string, std::string> config_map(const std::string& canonical);

}  // namespace sb
