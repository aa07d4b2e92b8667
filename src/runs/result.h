// What a run found, typed: result.json and back. Missing is not zero: what was not measured is absent.
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

// Raised when a field changes its meaning or a reader could mistake one result for another.
constexpr int result_schema = 3;

// What the exact filter reaches on the same split, task and gap.
struct CeilingFigure {
  double accuracy = 0, stderr_ = 0;
  double upper_bound = 0;    // no causal model exceeds it in expectation
  std::optional<double> kl;  // objective predict: of the true law given the frames, nats
  bool exact = true;         // false: noise above 1 hides symbols, and the figures are only upper bounds
  int64_t samples = 0;
};

struct AccuracyBin {
  double from = 0;  // lower end
  double accuracy = 0;
  int64_t count = 0;
};

// Wrong answers of elements of one symbol: another state of the same symbol, or a state of another symbol.
struct SymbolConfusion {
  int symbol = 0;
  int64_t right = 0, same_symbol = 0, other_symbol = 0;
};

// One pass over a split.
struct Measurement {
  std::string split;       // train, valid, test or reference
  std::optional<int> gap;  // frames after every element; absent: the task's own law
  int64_t samples = 0, elements = 0, frames = 0;
  double accuracy = 0, stderr_ = 0;  // stderr from the spread between samples
  double loss = 0;                   // nats a frame
  std::optional<double> kl;          // objective predict, nats an element
  std::optional<CeilingFigure> ceiling;
  // Breakdowns; empty where they were not asked for.
  std::vector<std::optional<double>> by_position;
  std::vector<AccuracyBin> by_gap_frame, by_since_certain, by_entropy;
  std::vector<SymbolConfusion> confusion;
};

// A histogram of one gate over frames of one kind.
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

// Decays of one layer that do not depend on data, or their mean over data frames: quantiles over channels.
struct DecaySpectrum {
  int layer = 0;
  std::vector<double> quantiles;  // at 0, 5, 25, 50, 75, 95 and 100 %
};

struct StateShare {
  int32_t state = 0;
  double probability = 0;
};
// One element of a recorded sample: what was shown, what was true, what was believed at its last frame.
struct ElementRecord {
  int symbol = 0;
  int32_t state = 0;
  int64_t gap_frames = 0;
  std::vector<int> gap;                     // symbols of its first recorded_gap gap frames, -1 a blank one
  std::vector<StateShare> network, filter;  // the five likeliest, mean over the element's frames as the metric sums
};
struct SampleRecord {
  int64_t index = 0;                    // in the split of `test`
  int64_t length = 0;                   // elements of the sample
  std::vector<ElementRecord> elements;  // the first recorded_elements of them
};
constexpr int recorded_samples = 3, recorded_elements = 48, recorded_gap = 32, recorded_states = 5;
// Breakdowns by position go no further than this.
constexpr int recorded_positions = 4096;

// Predictors without a network on the same task and split. Absent n: a result of an earlier version, whose n-grams were
// counted on fewer samples than the run saw and go no further than 4.
struct BaselineFigures {
  double majority = 0;
  std::optional<double> table_learner;  // of earlier versions
  std::vector<double> n_gram;           // entry n-1; empty where noise hides symbols
  std::optional<int> n;                 // the best on valid
  std::optional<double> n_gram_stderr;  // of its accuracy
  int64_t train_samples = 0, test_samples = 0;

  // Also absent where n is not among the n-grams, in a file that somebody edited.
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

// What made the result. None of it is compared between runs.
struct Provenance {
  std::string version, commit, compiler, libtorch, blas, instructions, device, host;
  std::optional<std::string> precision;  // of an evaluation; a run's own stands in its result
  int threads = 0;
  std::optional<int64_t> accumulate;  // micro-batches an update, as resolved; absent where nothing was trained
  std::optional<int64_t> world;       // ranks of the process group that finished it; absent where nothing was trained
  // Of all processes that worked on the run; absent where nothing was trained.
  std::optional<double> train_seconds, total_seconds;
  std::optional<double> tokens_per_second;  // training frames over train_seconds
  std::optional<int64_t> shared_by;         // runs of its suite at a time on its device, itself counted
  std::string finished;                     // UTC, 2026-01-31T12:00:00Z
};

struct Result {
  std::string run_id;
  std::string status;  // done or diverged
  std::string model;
  int task = 0;
  std::string objective, precision, device;
  // What can change a number: "section.key" (a switch: "model.switch KEY") to its JSON text, as the run id takes it.
  std::map<std::string, std::string> config;
  std::string label;
  uint64_t run_seed = 0, grammar_seed = 0, train_seed = 0;
  int64_t width = 0, layers = 0;
  std::vector<std::string> quirks;  // those that were on
  int64_t params = 0;
  std::optional<int64_t> state_size;  // numbers a layer carries from frame to frame; absent: grows with time
  int64_t updates = 0, samples_seen = 0, states = 0;
  double lr = 0, chance = 0;
  std::optional<double> topological_entropy;
  std::optional<Measurement> test, valid;     // what selection looks at is `valid`, whatever its split
  std::optional<Measurement> published_test;  // the first training samples, which the published code tests on
  std::vector<Measurement> grid;              // test at other gap lengths
  std::optional<BaselineFigures> baselines;
  std::optional<GateFigures> gates;
  std::vector<DecaySpectrum> decays;
  std::vector<SampleRecord> samples;
  std::optional<DivergenceFigure> divergence;
  std::optional<Provenance> made;
  std::map<std::string, std::string> files;  // SHA-256 of the run's other files by name
};

nlohmann::ordered_json to_json(const Result& result);

// A result of another schema: whole, but not for this program.
class OtherSchema : public Error {
 public:
  OtherSchema(int64_t schema, int64_t expected, const std::string& line)
      : Error(Exit::bad_input, line), schema_(schema), newer_(schema > expected) {}
  int64_t schema() const { return schema_; }  // 1: before results said which
  bool newer() const { return newer_; }

 private:
  int64_t schema_;
  bool newer_;
};

constexpr size_t largest_result = size_t{8} << 20;  // bytes
// Bounded and typed: throws bad_input "[result] …, file" for anything that is not a result of this schema, OtherSchema
// for results of another ("schema 1, this program reads 3").
Result parse_result(std::string_view text, const std::string& file);
// The bytes compared between runs: the JSON without `made`.
std::string comparable_text(const Result& result);
// result.json before it is sealed: members on lines of their own, with "numbers_sha256", the digest of comparable_text.
std::string result_text(const Result& result);
// Result::config of a resolved run: its canonical JSON, flattened.
std::map<std::string, std::string> config_map(const std::string& canonical);

}  // namespace sb
