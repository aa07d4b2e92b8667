// metrics.thinned.json: replaces metrics.jsonl in a packed run. Sealed. It keeps every `every`-th and the last row of
// training, and all other rows.
#pragma once
#include <string>
#include <vector>

#include "store/metrics.h"
#include "store/result.h"
#include "store/run_tree.h"

namespace sb {

constexpr const char* thinned_metrics_name = "metrics.thinned.json";
constexpr int packed_every = 25;

struct ThinnedMetrics {
  std::string run_id;
  int64_t every = packed_every;
  std::string metrics_sha256;  // of the original metrics.jsonl, as in result.json
  std::vector<MetricRow> rows;
};

ThinnedMetrics thin_metrics(const std::vector<MetricRow>& rows, const std::string& run_id, const std::string& sha256);
std::string thinned_text(const ThinnedMetrics& thinned);  // sealed
ThinnedMetrics parse_thinned(const std::string& text, const std::string& file);

// Metrics of a run folder, from metrics.jsonl or, for a packed run, from the thinned file; `every` is then greater than
// 1. Throws bad_input if they do not match the digest in the result.
struct RunMetrics {
  std::vector<MetricRow> rows;
  int64_t every = 1;
};
RunMetrics load_metrics(const std::string& folder, const RunTree& tree = RunTree::disk());
RunMetrics load_metrics(const std::string& folder, const Result& result,
                        const RunTree& tree = RunTree::disk());  // its loaded result

}  // namespace sb
