#include "report/table.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "report/layout.h"
#include "report/order.h"

namespace sb {
namespace {

Json six(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  const double rounded = std::round(*value * 1e6) / 1e6;
  return rounded == 0 ? 0.0 : rounded;
}

// A value of the config: numbers and truth values as such, the rest as text.
Json config_value(const std::string& text) {
  if (text.empty()) return nullptr;
  if (text.starts_with('{') || text.starts_with('[')) return text;
  Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() ? Json(text) : parsed;
}

// Axes that have their own field in a record.
bool named_otherwise(const std::string& key) {
  return key == "model.name" || key == "task.number" || key == "model.width";
}

void add_setting(Json& record, const Rows& rows, const std::vector<std::string>& settings, bool known) {
  for (size_t i = 0; i < rows.axes.select.size(); ++i)
    record[rows.axes.select[i]] = known ? config_value(settings[i]) : Json(nullptr);
}

void add_axes(Json& record, const Group& group, const Labels& labels) {
  record["model"] = config_value(group.value("model.name"));
  record["width"] = config_value(group.value("model.width"));
  record["task"] = config_value(group.value("task.number"));
  record["quirks"] = config_value(group.value("quirks"));
  for (const auto& key : labels.varying)
    if (!named_otherwise(key)) record[axis_name(key)] = config_value(group.value(key));
  for (const auto& [key, value] : labels.common) record[axis_name(key)] = config_value(group.value(key));
}

Json candidates_json(const Rows& rows, const Group& group) {
  Json out = Json::array();
  for (size_t c = 0; c < group.candidates.size(); ++c) {
    const Candidate& candidate = group.candidates[c];
    Json one = Json::object();
    add_setting(one, rows, candidate.settings, true);
    one["chosen"] = group.chosen == c;
    one["eligible"] = candidate.eligible;
    one["valid"] = six(candidate.valid);
    one["runs"] = candidate.runs.size();
    one["diverged"] = candidate.diverged.size();
    one["missing"] = candidate.missing;
    out.push_back(std::move(one));
  }
  return out;
}

struct CellFields {
  bool paper, computed;  // whether some cell has a figure of the paper, or was computed on another device or precision
  bool whole;            // all fields, for json
  bool other;            // whether some cell has a metric other than accuracy, or a test axis other than gap
};

Json value_of(const std::optional<int>& at) {
  return at ? Json(*at) : Json(nullptr);
}

Json cell_record(const Rows& rows, const Labels& labels, const Cell& cell, const CellFields& fields) {
  const Group& group = rows.groups[cell.group];
  const Candidate* chosen = group.chosen ? &group.candidates[*group.chosen] : nullptr;
  Json out = Json::object();
  add_axes(out, group, labels);
  if (fields.other) {
    out["metric"] = cell.squared ? "squared error" : "accuracy";
    out["axis"] = cell.point.axis.empty() ? Json(nullptr) : Json(cell.point.axis);
    out["at"] = value_of(cell.point.at);
  }
  out["gap"] = value_of(cell.point.at);  // the name of earlier versions for any axis
  out["split"] = cell.split.empty() ? Json(nullptr) : Json(cell.split);
  out["samples"] = cell.samples == 0 ? Json(nullptr) : Json(cell.samples);
  if (fields.computed) out["computed"] = cell.point.computed.empty() ? Json(nullptr) : Json(cell.point.computed);
  add_setting(out, rows, chosen ? chosen->settings : std::vector<std::string>(), chosen != nullptr);
  const bool any = !cell.runs.empty();
  out["mean"] = any ? six(cell.mean) : Json(nullptr);
  out["sd"] = six(cell.sd);
  out["sd_over"] = !cell.sd ? Json(nullptr) : Json(cell.sd_over);
  out["ci95_low"] = cell.interval ? six(shown_interval(cell).low) : Json(nullptr);
  out["ci95_high"] = cell.interval ? six(shown_interval(cell).high) : Json(nullptr);
  out["runs"] = cell.runs.size();
  out["grammars"] = cell.grammars;
  out["valid"] = six(cell.valid);
  out["kl"] = six(cell.kl);
  out["kl_bound"] = six(cell.kl_bound);
  out["n_gram"] = six(cell.n_gram);
  out["n"] = cell.n_gram ? Json(n_text(cell.n_least, cell.n_most)) : Json(nullptr);
  out["ceiling"] = six(cell.ceiling);
  out["upper_bound"] = six(cell.upper_bound);
  out["ceiling_exact"] = cell.ceiling ? Json(cell.ceiling_exact) : Json(nullptr);
  out["fraction_of_ceiling"] = any && !cell.squared && cell.ceiling && cell.ceiling_exact && *cell.ceiling > 0
                                   ? six(cell.mean / *cell.ceiling)
                                   : Json(nullptr);
  out["chance"] = six(cell.chance);
  size_t eligible = 0;
  const Result* one = nullptr;
  for (const auto& candidate : group.candidates) {
    eligible += candidate.eligible;
    for (const auto* runs : {&candidate.runs, &candidate.diverged})
      if (!runs->empty() && !one) one = &rows.runs[runs->front()].result;
  }
  out["params"] = one ? Json(one->params) : Json(nullptr);
  out["state_size"] = one && one->state_size ? Json(*one->state_size) : Json(nullptr);
  out["precision"] = one ? Json(one->precision) : Json(nullptr);
  out["candidates"] = group.candidates.size();
  out["eligible"] = eligible;
  out["diverged"] = cell.diverged;
  out["status"] = status_of(rows, cell);
  if (fields.paper) {
    out["paper"] = cell.paper ? six(cell.paper->accuracy) : Json(nullptr);
    out["paper_sd"] = cell.paper ? six(cell.paper->spread) : Json(nullptr);
  }
  if (fields.whole) {
    out["run_ids"] = Json::array();
    for (const size_t run : cell.runs) out["run_ids"].push_back(rows.runs[run].result.run_id);
    out["settings"] = candidates_json(rows, group);
  }
  return out;
}

// The averaged axes, always including train.order_seed, which Rows omits if no run sets it.
std::vector<std::string> averaged_axes(const Rows& rows) {
  Axes axes = rows.axes;
  axes.add_average("train.order_seed");
  return axes.average;
}

Json run_record(const Rows& rows, const Labels& labels, size_t run, const std::set<Point>& further, bool whole) {
  const Result& r = rows.runs[run].result;
  const Group& group = rows.groups[rows.group_of[run]];
  Json out = {{"run", r.run_id}, {"label", r.label}};
  add_axes(out, group, labels);
  for (size_t i = 0; i < rows.axes.average.size(); ++i) out[rows.axes.average[i]] = config_value(rows.seeds[run][i]);
  if (whole && !out.contains("train.order_seed")) out["train.order_seed"] = 0;
  add_setting(out, rows, rows.settings[run], true);
  out["valid"] = r.valid ? six(r.valid->score()) : Json(nullptr);
  out["valid_split"] = r.valid ? Json(r.valid->split) : Json(nullptr);
  out["test"] = r.test ? six(r.test->score()) : Json(nullptr);
  out["test_split"] = r.test ? Json(r.test->split) : Json(nullptr);
  out["test_samples"] = r.test ? Json(r.test->samples) : Json(nullptr);
  const auto points = points_of(rows.runs[run]);
  for (const Point& point : further) {
    const auto it = points.find(point);
    const std::string name = joined(point_lines(point), ", ");
    out[name] = it == points.end() ? Json(nullptr) : six(it->second->score());
    if (point.split.empty()) out[name + ", samples"] = it == points.end() ? Json(nullptr) : Json(it->second->samples);
  }
  const auto* ceiling = r.test && r.test->ceiling ? &*r.test->ceiling : nullptr;
  out["kl"] = r.test ? six(r.test->kl) : Json(nullptr);
  out["kl_bound"] = ceiling ? six(ceiling->kl) : Json(nullptr);
  const auto n_gram = n_gram_of(r);
  out["n_gram"] = n_gram ? six(n_gram->accuracy) : Json(nullptr);
  out["n"] = n_gram ? Json(n_gram->n) : Json(nullptr);
  out["ceiling"] = ceiling ? six(ceiling->score()) : Json(nullptr);
  out["upper_bound"] = ceiling ? six(ceiling->upper_bound) : Json(nullptr);
  out["ceiling_exact"] = ceiling ? Json(ceiling->exact) : Json(nullptr);
  out["fraction_of_ceiling"] = ceiling && !ceiling->mse && ceiling->exact && ceiling->accuracy > 0
                                   ? six(r.test->accuracy / ceiling->accuracy)
                                   : Json(nullptr);
  out["params"] = r.params;
  out["state_size"] = r.state_size ? Json(*r.state_size) : Json(nullptr);
  out["precision"] = r.precision;
  out["status"] = r.status;
  out["counts_as"] = to_string(rows.standing[run]);
  return out;
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return shortest(value.get<double>());
  if (!value.is_string()) return json_line(value);
  const std::string text = spreadsheet_safe(printable(value.get_ref<const std::string&>(), 8192));
  const bool bare = text.find_first_of(",\"'") == std::string::npos && !text.starts_with(' ') && !text.ends_with(' ');
  if (bare) return text;
  return "\"" + replace_all(text, "\"", "\"\"") + "\"";
}

std::string csv_text(const std::vector<Json>& records) {
  if (records.empty()) return "";
  std::string out;
  const auto line = [&](const std::vector<std::string>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) out += (i > 0 ? "," : "") + fields[i];
    out += "\n";
  };
  std::vector<std::string> fields;
  for (const auto& [key, value] : records.front().items()) fields.push_back(csv_field(key));
  line(fields);
  for (const auto& record : records) {
    fields.clear();
    for (const auto& [key, value] : record.items()) fields.push_back(csv_field(value));
    line(fields);
  }
  return out;
}

// Writes non-ASCII characters as JSON escapes, so that no foreign text reaches a terminal. `json` is valid UTF-8.
std::string ascii(const std::string& json) {
  std::string out;
  for (size_t i = 0; i < json.size();) {
    const auto first = static_cast<unsigned char>(json[i]);
    const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0x7F) {
      out += json[i++];
      continue;
    }
    uint32_t letter = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (size_t k = 1; k < length; ++k) letter = letter << 6 | (static_cast<unsigned char>(json[i + k]) & 0x3FU);
    i += length;
    if (letter < 0x10000) {
      out += formatted("\\u{:04x}", letter);
    } else {
      out += formatted("\\u{:04x}\\u{:04x}", 0xD800 + ((letter - 0x10000) >> 10), 0xDC00 + (letter & 0x3FF));
    }
  }
  return out;
}

// `settings`: of the selected axes, that hold for all records.
std::string table_json(const Rows& rows, const Labels& labels,
                       const std::vector<std::pair<std::string, std::string>>& settings, const char* name,
                       std::vector<Json> records) {
  Json out = {{"select", rows.axes.select}, {"average", averaged_axes(rows)}, {"varying", Json::array()}};
  for (const auto& key : labels.varying) out["varying"].push_back(axis_name(key));
  out["everywhere"] = Json::object();
  for (const auto& [axis, value] : settings) out["everywhere"][axis] = config_value(value);
  for (const auto& [key, value] : labels.common)
    if (labels.everywhere(key)) out["everywhere"][axis_name(key)] = config_value(value);
  out["finished"] = rows.runs.size();
  out["missing"] = rows.missing;
  out["damaged"] = rows.damaged;
  out["untested"] = rows.untested;
  out["other_schema"] = rows.other_schema;
  out["above_ceiling"] = above_ceiling(rows);
  out[name] = std::move(records);
  out["notes"] = rows.notes;
  return ascii(json_document(out, 2));
}

std::string sheet_text(const Sheet& sheet, TableFormat format) {
  return format == TableFormat::markdown ? markdown_sheet(sheet)
         : format == TableFormat::latex  ? latex_sheet(sheet)
                                         : text_sheet(sheet);
}

bool for_people(TableFormat format) {
  return format == TableFormat::text || format == TableFormat::markdown || format == TableFormat::latex;
}

}  // namespace

const std::vector<std::string>& table_format_names() {
  static const std::vector<std::string> names = {"text", "md", "csv", "json", "latex"};
  return names;
}

TableFormat parse_table_format(const std::string& name) {
  const auto& names = table_format_names();
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) return static_cast<TableFormat>(it - names.begin());
  throw bad_input("table.format",
                  "expected " + join_or(names) + ", got " + printable(name) + did_you_mean(name, names));
}

std::string cell_table(const Rows& rows, TableFormat format) {
  const Labels labels = make_labels(rows.groups, rows.defaults);
  if (for_people(format)) return sheet_text(cell_sheet(rows, labels), format);
  const auto any = [&](bool (*has)(const Cell&)) { return std::any_of(rows.cells.begin(), rows.cells.end(), has); };
  const CellFields fields{any([](const Cell& c) { return c.paper.has_value(); }),
                          any([](const Cell& c) { return !c.point.computed.empty(); }), format == TableFormat::json,
                          any([](const Cell& c) { return c.squared || !c.point.axis.empty(); })};
  std::vector<Json> records;
  for (const size_t i : ordered_cells(rows, labels))
    records.push_back(cell_record(rows, labels, rows.cells[i], fields));
  return format == TableFormat::csv ? csv_text(records)
                                    : table_json(rows, labels, shared_settings(rows), "cells", std::move(records));
}

std::string run_table(const Rows& rows, TableFormat format) {
  const Labels labels = make_labels(rows.groups, rows.defaults);
  if (for_people(format)) return sheet_text(run_sheet(rows, labels), format);
  const std::set<Point> further = further_points(rows);
  std::vector<Json> records;
  for (const size_t run : ordered_runs(rows, labels))
    records.push_back(run_record(rows, labels, run, further, format == TableFormat::json));
  return format == TableFormat::csv ? csv_text(records) : table_json(rows, labels, {}, "runs", std::move(records));
}

}  // namespace sb
