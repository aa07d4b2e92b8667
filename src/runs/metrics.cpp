#include "runs/metrics.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/text.h"

namespace sb {
namespace {

MetricRow parse_row(std::string_view line, const std::string& place) {
  const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("update") || !json["update"].is_number_integer())
    throw bad_input("metrics", "expected one JSON object with an update, " + place);
  MetricRow row;
  for (const auto& [key, value] : json.items()) {
    if (key == "update") {
      row.update = value.get<int64_t>();
    } else if (key == "phase" && value.is_string()) {
      row.phase = value.get<std::string>();
    } else if (value.is_number() || value.is_null()) {
      row.values.emplace_back(key, value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    } else {
      throw bad_input("metrics", "'" + printable(key) + "' is not a number, " + place);
    }
  }
  return row;
}

}  // namespace

std::string metric_line(const MetricRow& row) {
  JsonWriter json(false);
  json.begin_object().member("update", row.update).member("phase", row.phase);
  for (const auto& [name, value] : row.values) json.member(name, value);
  json.end_object();
  return json.text() + "\n";
}

std::string metric_lines(const std::vector<MetricRow>& rows) {
  std::string text;
  for (const auto& row : rows) text += metric_line(row);
  return text;
}

std::vector<MetricRow> parse_metrics(std::string_view text, const std::string& file) {
  std::vector<MetricRow> rows;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string place = printable(file, 200) + ":" + std::to_string(line) + ":1";
    if (end == std::string_view::npos) throw bad_input("metrics", "last line is not whole, " + place);
    rows.push_back(parse_row(text.substr(0, end), place));
    text.remove_prefix(end + 1);
  }
  return rows;
}

}  // namespace sb
