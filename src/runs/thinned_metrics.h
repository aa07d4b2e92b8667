// metrics.thinned.json: what stands in the place of metrics.jsonl in a run that was packed. Sealed; of the updates only
// every `every`-th and the last, of everything else all rows.
#pragma once
#include <string>
#include <vector>

#include "runs/metrics.h"
#include "runs/result.h"
#include "runs/run_tree.h"

namespace sb {

constexpr const char* thinned_metrics_name = "metrics.thinned.json";
constexpr int packed_every = 25;

struct ThinnedMetrics {
  std::string run_id;
  int64_t every = packed_every;
  std::string metrics_sha256;  // of the metrics.jsonl it was made from, as result.json has it
  std::vector<MetricRow> rows;
};

ThinnedMetrics thin_metrics(const std::vector<MetricRow>& rows, const std::string& run_id, const std::string& sha256);
std::string thinned_text(const ThinnedMetrics& thinned);  // sealed
ThinnedMetrics parse_thinned(const std::string& text, const std::string& file);

// Rows of a run folder: those of metrics.jsonl or, where it was packed, those that were kept; `every` is then more than
// 1. Throws bad_input where they do not fit the digest in its result.
struct RunMetrics {
  std::vector<MetricRow> rows;
  int64_t every = 1;
};
RunMetrics load_metrics(const std::string& folder, const RunTree& tree = RunTree::disk());
RunMetrics load_metrics(const std::string& folder, const Result& result, const RunTree& tree);  // its result is known

}  // namespace sb
