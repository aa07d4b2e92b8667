#include "store/thinned_metrics.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/json_fields.h"
#include "store/run_files.h"
#include "store/seal.h"

namespace sb {
namespace {

constexpr int64_t thinned_schema = 1;
constexpr size_t kMaxThinnedBytes = size_t{1} << 28;

}  // namespace

ThinnedMetrics thin_metrics(const std::vector<MetricRow>& rows, const std::string& run_id, const std::string& sha256) {
  ThinnedMetrics out{run_id, packed_every, sha256, {}};
  int64_t last = 0;
  for (const auto& row : rows)
    if (row.phase == "train") last = row.update;
  for (const auto& row : rows)
    if (row.phase != "train" || row.update % packed_every == 0 || row.update == last) out.rows.push_back(row);
  return out;
}

std::string thinned_text(const ThinnedMetrics& thinned) {
  return sealed_json(json_document({{"schema", thinned_schema},
                                    {"run_id", thinned.run_id},
                                    {"every", thinned.every},
                                    {"metrics_sha256", thinned.metrics_sha256},
                                    {"rows", metric_lines(thinned.rows)}}));
}

ThinnedMetrics parse_thinned(const std::string& text, const std::string& file) {
  if (!is_sealed(text)) throw bad_input("run", printable(file, 400) + ": SHA-256 mismatch");
  const nlohmann::json parsed = parse_bounded(text, kMaxThinnedBytes, "run", file);
  FieldReader reader(parsed, "run", file);
  int64_t schema = 0;
  reader.whole("schema", schema, 0, int64_t{1} << 30);
  if (schema != thinned_schema)
    throw bad_input("run", printable(file, 400) + ": schema " + std::to_string(schema) + ", this program reads " +
                               std::to_string(thinned_schema));
  ThinnedMetrics out;
  std::string rows;
  reader.text("run_id", out.run_id);
  reader.whole("every", out.every, 1, int64_t{1} << 30);
  reader.text("metrics_sha256", out.metrics_sha256);
  reader.text("rows", rows, kMaxThinnedBytes);
  out.rows = parse_metrics(rows, file);
  return out;
}

RunMetrics load_metrics(const std::string& folder, const RunTree& tree) {
  return load_metrics(folder, load_result(folder, tree), tree);
}

RunMetrics load_metrics(const std::string& folder, const Result& result, const RunTree& tree) {
  const auto digest = result.files.find("metrics.jsonl");
  const std::string path = folder + "/metrics.jsonl", thinned = folder + "/" + thinned_metrics_name;
  const auto fits = [&](const std::string& sha256, const std::string& file) {
    if (digest == result.files.end() || digest->second != sha256)
      throw bad_input("run", printable(file, 400) + ": SHA-256 differs from that in result.json");
  };
  if (!tree.exists(path) && tree.exists(thinned)) {
    ThinnedMetrics kept = parse_thinned(tree.read(thinned, kMaxThinnedBytes), thinned);
    fits(kept.metrics_sha256, thinned);
    if (kept.run_id != result.run_id)
      throw bad_input("run",
                      printable(thinned, 400) + ": expected run " + result.run_id + ", got " + printable(kept.run_id));
    return {std::move(kept.rows), kept.every};
  }
  const std::string text = tree.read(path, kMaxMetricsBytes);
  fits(sha256_hex(text), path);
  return {parse_metrics(text, path), 1};
}

}  // namespace sb
