// Typed data of the report page. Texts are ready to be shown; numbers next to them are for sorting.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "page/figure.h"

namespace sb {

constexpr int page_schema = 1;

struct PageModel {
  std::string name, title;
  int colour = 0;  // index into the palette
};

// A row of tables: a model, with the settings that tell it apart.
struct PageSeries {
  std::string id, name, model, setting;
  int colour = 0, dash = 0;
};

// A column of tables: a task with its settings, and what was measured.
struct PageColumn {
  std::string id, name, setting, section;
  std::string data_setting;  // `setting` without the metric
  std::vector<std::string> lines;
  std::string task;       // number, or the name of a kind without numbers
  std::optional<int> at;  // value of the test axis
  bool squared = false;   // figures are mean squared errors: less is better
  bool own = true;        // the column is the run's own test
  std::optional<double> n_gram, ceiling, chance;
  std::string n_gram_text, ceiling_text, chance_text, metric_text;
};

struct PageMark {
  std::string kind, text;
};

struct VersusBest {
  double difference = 0;
  std::optional<double> p;
  std::string difference_text, interval_text, p_text;  // for this comparison alone
  bool significant = false;                            // corrected for the other comparisons of the column
  size_t n = 0;
};

struct PageCell {
  std::string series, column;
  std::optional<double> mean, low, high, fraction, paper, difference;
  std::string mean_text, interval_text, sd_text, sd_over, fraction_text, n_gram_text, ceiling_text, chance_text;
  std::string paper_text;
  std::string difference_text, n_text;
  std::string uneven_text;  // "n = 2" if cells of the column have different grammars
  int64_t grammars = 0, seeds = 0;
  bool best = false;
  std::optional<VersusBest> versus_best;
  std::vector<PageMark> marks;
  std::vector<std::string> runs;  // keys
};

struct SummaryRow {
  std::string series;
  std::optional<int64_t> params, state;
  std::optional<double> speed;  // training frames per second
  std::string params_text, state_text, precision_text, speed_text;
};

struct PageSection {
  std::string id, title, kind;
  std::vector<std::string> text, absent;
};

struct GrammarValues {
  std::string series;
  std::vector<std::optional<double>> mean;  // by grammar
  std::vector<std::string> text;
};
struct PairedDifference {
  std::string a, b;
  size_t n = 0;
  double difference = 0;
  std::optional<double> low, high, p;
  std::string difference_text, interval_text, p_text;
};
struct CompareColumn {
  std::string column;
  std::vector<std::string> grammars;
  std::vector<GrammarValues> values;
  std::vector<PairedDifference> pairs;
};
struct PageCompare {
  std::string text;
  std::optional<std::string> note;
  std::vector<CompareColumn> columns;
};

using Belief5 = std::vector<std::pair<std::string, double>>;  // states, likeliest first
struct SampleElement {
  std::string symbol, state;
  bool paused = false;  // of vectors: shows noise alone, or is missing
  int64_t gap = 0;
  std::vector<std::string> gap_symbols;
};
struct SampleModel {
  std::string series, run;
  std::vector<Belief5> beliefs;
};
struct PageSample {
  std::string id, column, title;
  int64_t length = 0;
  bool dense = false;  // frames are vectors, and `symbol` is the norm of one
  std::vector<SampleElement> elements;
  std::vector<Belief5> filter;
  std::vector<SampleModel> models;
};

struct ConfigDifference {
  std::string key, value, usual;  // usual: empty if not known
};
struct PageRun {
  std::string key, id, folder, state, state_text, standing, standing_text, model, seeds_text, label;
  std::optional<std::string> href, series, column;
  std::vector<std::string> problems;
  std::optional<std::string> task;
  bool squared = false;  // test and valid are mean squared errors
  std::optional<double> test, valid, wall, speed;
  std::string test_text, valid_text, ceiling_text, digest, precision_text, machine_text, program_text, wall_text;
  std::string speed_text, updates_text, divergence_text;
  std::vector<std::pair<std::string, std::string>> points;
  std::vector<ConfigDifference> config;
};

struct BoardLine {
  std::string key, name, model, state, rate_text, left_text;
  int64_t update = 0, updates = 0;
};

struct MethodBlock {
  enum class Kind { paragraph, formula, table, code };
  Kind kind = Kind::paragraph;
  std::string text, mathml;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
struct MethodPart {
  std::string title;
  std::vector<MethodBlock> blocks;
};

struct PageCounts {
  size_t found = 0, averaged = 0, diverged = 0, unfinished = 0, damaged = 0, other_version = 0, copies = 0;
  size_t untested = 0, not_chosen = 0;
};

struct PageData {
  std::string title;
  std::vector<std::string> sources, headline, warnings, notes;
  PageCounts counts;
  std::vector<PageModel> models;
  std::vector<PageSeries> series;
  std::vector<PageColumn> columns;
  std::vector<std::string> caption;  // of the summary
  std::vector<SummaryRow> summary;
  std::vector<PageCell> cells;
  std::vector<PageSection> sections;
  std::vector<Figure> figures;
  PageCompare compare;
  std::vector<PageSample> samples;
  std::vector<PageRun> runs;
  std::vector<BoardLine> board;
  std::vector<MethodPart> method;
};

// Settings of the page that do not come from runs.
struct PageSettings {
  std::optional<std::string> dated;  // creation time; absent: the same runs give the same bytes
  bool charts = true;                // the page contains the code that draws charts
  struct Live {
    std::string data;  // address of the JSON, relative to the page
    int every_ms = 2000;
  };
  std::optional<Live> live;
};
Json page_json(const PageData& data, const PageSettings& settings);

}  // namespace sb
