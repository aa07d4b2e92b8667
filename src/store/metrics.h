// Metrics of a run, one JSON object per line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sb {

struct MetricRow {
  int64_t update = 0;
  std::string phase;                                   // "train", "valid", "test", …
  std::vector<std::pair<std::string, double>> values;  // in the order they are written
};

// {"update":78,"phase":"valid","loss":…}\n; doubles are shortest round-trip, NaN and infinities null.
std::string metric_line(const MetricRow& row);
std::string metric_lines(const std::vector<MetricRow>& rows);
// Typed and bounded: throws bad_input naming file and line for anything metric_lines would not write.
std::vector<MetricRow> parse_metrics(std::string_view text, const std::string& file);

}  // namespace sb
