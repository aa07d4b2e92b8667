// The results table of docs/findings.md and its short form for the README: the paper's models on its four tasks at one
// scale. The columns are the paper's figures, its protocol reproduced here, and the corrected protocol.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "findings/claims.h"
#include "report/statistics.h"

namespace sb {

enum class ResultColumn { paper, reproduced, corrected };
const char* to_string(ResultColumn column);

using ResultPlace = std::pair<int, ResultColumn>;  // task and column
constexpr int result_tasks = 4;
constexpr double clearly_better = .01;  // margin by which other runs of a model must be better for a footnote
constexpr ResultColumn result_columns[] = {ResultColumn::paper, ResultColumn::reproduced, ResultColumn::corrected};

struct ResultValue {
  std::optional<double> accuracy;    // absent: shown as "–"
  std::optional<Interval> interval;  // 95 %, of three grammars or more; for the paper, its own ±
  std::set<std::string> grammars;    // grammars of the mean; empty for the paper
  std::vector<std::string> footnotes;
  std::string lr = {}, residual = {};  // of its runs; empty for the paper
  std::vector<std::string> network =
      {};                             // width, parameters, state per layer, residual, output gate; empty for the paper
  std::optional<double> better = {};  // of another run of the model at this scale, if clearly better; in a footnote
  Interval range = {};                // lowest and highest value of a grammar
  std::set<std::string> failed_rates = {};   // learning rates at which training collapsed
  std::set<std::string> trained_rates = {};  // and at which it did not
  bool mixed_rates = false;                  // some of its runs stand for collapsed ones, at a lower rate
};

struct ResultRow {
  std::string name;                          // "Gated DeltaNet"
  std::map<ResultPlace, ResultValue> cells;  // by task
};
using ResultsTable = std::vector<ResultRow>;

// Markdown of the measured tasks and columns, one line per row, then footnotes. The long form has intervals and numbers
// of grammars, the short form only means.
std::string results_markdown(const ResultsTable& table);
std::string short_results_markdown(const ResultsTable& table);

// The networks of the corrected runs, one line per model; empty without such runs.
std::string networks_markdown(const ResultsTable& table);

// Returns "published", "corrected" or another label for the config of a result.
using ProtocolLabel = std::function<std::string(const ConfigMap& config)>;

// The paper's numbers are there only at its scale. Rows: the paper's models in its order, then n-grams and the ceiling,
// each as the mean over all grammars of its column. Task 4 is the mean over gaps of 20, 50 and 100 frames. Runs must
// have the paper's switches, this scale with its `results` keys, and exactly this protocol. Of several groups, the one
// with the most grammars is used, then the one with more updates, then the larger, then the first. Collapsed and
// diverged runs are excluded; a footnote names them. Runs that collapsed at another learning rate are named too, a
// better run of the model under other settings, a better learning rate on some of the grammars, models below the
// n-gram, and, at the scale of the choices, clearly better settings on the choices' grammar. Lines below the table give
// learning rates and residuals.
ResultsTable results_table(const Rows& rows, const Claims& claims, const Scale& scale, const ProtocolLabel& protocol);

// Rows with the networks of the other models that were run on task 1 at the scale; of each, the network with most runs.
ResultsTable other_networks(const Rows& rows, const Claims& claims, const Scale& scale);

}  // namespace sb
