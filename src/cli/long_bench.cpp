#include "cli/long_bench.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/output.h"
#include "config/schema.h"

namespace sb::cli {

std::vector<GpuBenchCase> long_cases(const std::string& model, int width) {
  std::vector<GpuBenchCase> out;
  for (const int time : kLongTimes) out.push_back({model, width, time, std::max(1, (kLongTokens + time / 2) / time)});
  return out;
}

std::optional<double> long_ratio(const GpuBench& bench, const GpuBenchRow& row) {
  const auto compared = std::find_if(bench.rows.begin(), bench.rows.end(), [&](const GpuBenchRow& other) {
    return other.of.model == row.of.model && other.of.width == row.of.width && other.of.time == kComparedTime;
  });
  if (!row.failure.empty() || compared == bench.rows.end() || !compared->failure.empty()) return std::nullopt;
  return row.tokens_per_second / compared->tokens_per_second;
}

std::string long_text(const GpuBench& bench) {
  TextTable table(
      {"model", "width", "T", "batch", "precision", "ms", "tokens/s", "of products", "vs T = 1,024", "peak"});
  std::string failures;
  for (const GpuBenchRow& r : bench.rows) {
    const bool made = r.failure.empty();
    const std::optional<double> ratio = long_ratio(bench, r);
    if (!made) failures += formatted("{} {}, T = {}: {}\n", r.of.model, r.of.width, r.of.time, r.failure);
    table.row({r.of.model, std::to_string(r.of.width), grouped(static_cast<uint64_t>(r.of.time)),
               std::to_string(r.of.batch), to_string(r.precision), made ? fixed(r.ms, 2) : "-",
               made ? grouped(static_cast<uint64_t>(r.tokens_per_second)) : "-",
               made ? fixed(100 * r.mfu, 1) + " %" : "-", ratio ? fixed(*ratio, 2) + " x" : "-",
               made ? bytes_text(static_cast<double>(r.peak_bytes)) : "-"});
  }
  return "products " + fixed(bench.product_flops / 1e12, 0) + " TFLOP/s in bf16, about " +
         grouped(static_cast<uint64_t>(kLongTokens)) + " tokens per step\n" + table.text() +
         "of products: FLOP/s of the model / the rate of products; vs T = 1,024: tokens/s\n" + failures;
}

Json step_json(const GpuBenchRow& r) {
  Json out = {{"model", r.of.model}, {"width", r.of.width}, {"time", r.of.time}, {"precision", to_string(r.precision)}};
  if (!r.failure.empty()) {
    out["failure"] = r.failure;
    return out;
  }
  out["params"] = r.params;
  out["tokens_per_second"] = r.tokens_per_second;
  out["ms"] = r.ms;
  out["mfu"] = r.mfu;
  out["peak_bytes"] = r.peak_bytes;
  out["loss"] = r.loss;
  return out;
}

Json long_json(const GpuBench& bench) {
  Json out = {{"product_flops", bench.product_flops}, {"tokens", kLongTokens}, {"rows", Json::array()}};
  for (const GpuBenchRow& r : bench.rows) {
    Json row = step_json(r);
    row["batch"] = r.of.batch;
    if (const auto ratio = long_ratio(bench, r)) row["ratio_to_1024"] = *ratio;
    out["rows"].push_back(std::move(row));
  }
  return out;
}

}  // namespace sb::cli
