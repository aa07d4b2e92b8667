#include "page/figure.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/replace_file.h"
#include "base/text.h"

namespace sb {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return "\"" + replace_all(text, "\"", "\"\"") + "\"";
}

// Whether the name is that of a figure's file, without a path.
bool is_figure_name(std::string_view name) {
  return (name.ends_with(".vl.json") || name.ends_with(".csv")) &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == name.npos;
}

}  // namespace

FigureValue::FigureValue(double number) {
  if (!std::isfinite(number)) return;
  const double rounded = std::abs(number) < 1e9 ? std::round(number * 1e6) / 1e6 : std::round(number);
  value_ = rounded == 0 ? 0.0 : rounded;  // no negative zero
}

Json FigureValue::json() const {
  if (const auto* text = std::get_if<std::string>(&value_)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value_)) return *whole;
  if (const auto* real = std::get_if<double>(&value_)) {
    if (*real == std::floor(*real) && std::abs(*real) < 1e15) return static_cast<int64_t>(*real);
    return *real;
  }
  return nullptr;
}

std::string FigureValue::text() const {
  if (const auto* text = std::get_if<std::string>(&value_)) return spreadsheet_safe(*text);
  if (const auto* whole = std::get_if<int64_t>(&value_)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value_)) return plain_number(*real);
  return "";
}

std::string plain_number(double value) {
  std::string out = formatted("{:.6f}", value);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string figure_csv(const Figure& figure) {
  std::string out;
  for (size_t i = 0; i < figure.columns.size(); ++i) out += (i > 0 ? "," : "") + csv_field(figure.columns[i].key);
  out += "\n";
  for (const auto& row : figure.rows) {
    for (size_t i = 0; i < row.size(); ++i) out += (i > 0 ? "," : "") + csv_field(row[i].text());
    out += "\n";
  }
  return out;
}

Json standalone_spec(const Figure& figure) {
  Json values = Json::array();
  for (const auto& row : figure.rows) {
    Json one = Json::object();
    for (size_t i = 0; i < row.size(); ++i) one[figure.columns[i].key] = row[i].json();
    values.push_back(std::move(one));
  }
  Json out = figure.spec;
  out["title"] = figure.title + (figure.setting.empty() ? "" : ": " + figure.setting);
  out["description"] = figure.caption;
  out["data"] = {{"values", std::move(values)}};
  if (out.contains("width") && out["width"] == "container") out["width"] = 640;
  return out;
}

size_t write_figures(const std::string& folder, const std::vector<Figure>& figures, FileSystem& files) {
  namespace fs = std::filesystem;
  constexpr size_t most_bytes = size_t{1} << 24;
  const auto path = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  const std::string list = path("selectivbench-figures.txt");
  std::error_code failed;
  const std::string before = fs::exists(list, failed) ? read_file(list, most_bytes) : "";
  std::set<std::string> now, gone;
  for (const auto& figure : figures) now.insert({figure.id + ".vl.json", figure.id + ".csv"});
  for (const auto& name : split(before, '\n'))
    if (is_figure_name(name) && !now.contains(name)) gone.insert(name);
  const auto write_list = [&](const std::set<std::string>& names) {
    replace_file(list, joined(names, "\n") + "\n", files);
  };
  // The list names every file before it is written: if the disk is full, a later report can remove all of them.
  std::set<std::string> all = now;
  all.insert(gone.begin(), gone.end());
  write_list(all);
  for (const auto& figure : figures) {
    replace_file(path(figure.id + ".vl.json"), json_document(standalone_spec(figure), 3), files);
    replace_file(path(figure.id + ".csv"), figure_csv(figure), files);
  }
  size_t removed = 0;
  for (const auto& name : gone) removed += fs::remove(path(name), failed) ? 1 : 0;
  if (!gone.empty()) write_list(now);
  return removed;
}

}  // namespace sb
