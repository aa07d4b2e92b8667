#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "report/summary.h"

namespace sb {
namespace {

std::string spread(double mean, double sd, int seeds) {
  return seeds == 0 ? "diverged" : fixed(mean, 3) + (seeds > 1 ? " ± " + fixed(sd, 3) : "");
}

std::string millions(int64_t params) {
  return params >= 1'000'000 ? fixed(static_cast<double>(params) / 1e6, 2) + " M"
                             : fixed(static_cast<double>(params) / 1e3, 1) + " k";
}

std::string row_name(const Cell& c) {
  return c.model + (c.variant.empty() ? "" : " " + c.variant);
}

// The wide form people read: a row a model, a column a task, the paper's figure beside it, ceiling and chance beneath.
struct Grid {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

Grid wide(const Summary& summary) {
  std::vector<std::string> tasks;
  std::vector<std::pair<std::string, int64_t>> models;
  for (const Cell& c : summary.cells) {
    if (std::find(tasks.begin(), tasks.end(), c.task) == tasks.end()) tasks.push_back(c.task);
    const std::pair<std::string, int64_t> model{row_name(c), c.width};
    if (std::find(models.begin(), models.end(), model) == models.end()) models.push_back(model);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const std::string& a, const std::string& b) {
    return a[0] != b[0] ? a[0] < b[0] : (a.size() != b.size() ? a.size() < b.size() : a < b);
  });
  Grid out;
  out.header = {"model", "width", "params"};
  for (const auto& task : tasks) {
    out.header.push_back("task " + task);
    if (task.size() == 1 && task != "4" && task != "0") out.header.push_back("paper");
  }
  std::vector<double> ceiling(tasks.size()), chance(tasks.size());
  std::vector<int> cells(tasks.size());
  for (const auto& [model, width] : models) {
    std::vector<std::string> row = {model, std::to_string(width), ""};
    for (size_t t = 0; t < tasks.size(); ++t) {
      const auto it = std::find_if(summary.cells.begin(), summary.cells.end(), [&](const Cell& c) {
        return row_name(c) == model && c.width == width && c.task == tasks[t];
      });
      const bool there = it != summary.cells.end();
      row.push_back(there ? spread(it->mean, it->sd, it->seeds) : "");
      if (tasks[t].size() == 1 && tasks[t] != "4" && tasks[t] != "0") {
        row.push_back(there && it->paper > 0 ? fixed(it->paper, 2) : "");
      }
      if (there && it->seeds > 0) {
        row[2] = millions(it->params);
        ceiling[t] += it->ceiling;
        chance[t] += it->chance;
        ++cells[t];
      }
    }
    out.rows.push_back(std::move(row));
  }
  for (const bool upper : {true, false}) {
    std::vector<std::string> row = {upper ? "ceiling" : "chance", "", ""};
    for (size_t t = 0; t < tasks.size(); ++t) {
      row.push_back(cells[t] == 0 ? "" : fixed((upper ? ceiling[t] : chance[t]) / cells[t], 3));
      if (tasks[t].size() == 1 && tasks[t] != "4" && tasks[t] != "0") row.emplace_back();
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string notes_text(const Summary& summary, const std::string& before) {
  std::string out;
  for (const auto& note : summary.notes) out += before + note + "\n";
  return out;
}

std::string as_text(const Summary& summary) {
  const Grid grid = wide(summary);
  TextTable table(grid.header);
  for (const auto& row : grid.rows) table.row(row);
  return table.text() + notes_text(summary, "note: ");
}

std::string as_markdown(const Summary& summary) {
  const Grid grid = wide(summary);
  auto line = [](const std::vector<std::string>& cells) {
    std::string out = "|";
    for (const auto& c : cells) out += " " + c + " |";
    return out + "\n";
  };
  std::string out = line(grid.header) + "|---|";
  for (size_t i = 1; i < grid.header.size(); ++i) out += "---:|";
  out += "\n";
  for (const auto& row : grid.rows) out += line(row);
  const std::string notes = notes_text(summary, "- ");
  return notes.empty() ? out : out + "\n" + notes;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string as_csv(const Summary& summary) {
  std::string out =
      "model,variant,width,params,task,mean,sd,seeds,runs,diverged,ceiling,chance,paper,paper_sd,precision\n";
  for (const Cell& c : summary.cells) {
    out += quoted(c.model) + "," + quoted(c.variant) + "," + std::to_string(c.width) + "," + std::to_string(c.params) +
           "," + quoted(c.task) + "," + shortest(c.mean) + "," + shortest(c.sd) + "," + std::to_string(c.seeds) + "," +
           std::to_string(c.runs) + "," + std::to_string(c.diverged) + "," + shortest(c.ceiling) + "," +
           shortest(c.chance) + "," + (c.paper > 0 ? shortest(c.paper) : "") + "," +
           (c.paper > 0 ? shortest(c.paper_sd) : "") + "," + c.precision + "\n";
  }
  return out;
}

std::string as_json(const Summary& summary) {
  nlohmann::ordered_json out;
  out["cells"] = nlohmann::ordered_json::array();
  for (const Cell& c : summary.cells) {
    nlohmann::ordered_json j = {
        {"model", c.model},        {"variant", c.variant},   {"width", c.width},     {"params", c.params},
        {"task", c.task},          {"mean", c.mean},         {"sd", c.sd},           {"seeds", c.seeds},
        {"runs", c.runs},          {"diverged", c.diverged}, {"ceiling", c.ceiling}, {"chance", c.chance},
        {"precision", c.precision}};
    if (c.paper > 0) j["paper"] = {{"accuracy", c.paper}, {"sd", c.paper_sd}};
    out["cells"].push_back(std::move(j));
  }
  out["notes"] = summary.notes;
  return out.dump(2) + "\n";
}

}  // namespace

TableFormat parse_table_format(const std::string& name) {
  if (name == "text") return TableFormat::text;
  if (name == "md") return TableFormat::markdown;
  if (name == "csv") return TableFormat::csv;
  if (name == "json") return TableFormat::json;
  throw bad_input("table.format", "expected text, md, csv or json, got " + printable(name) +
                                      did_you_mean(name, {"text", "md", "csv", "json"}));
}

std::string render(const Summary& summary, TableFormat format) {
  switch (format) {
    case TableFormat::text:
      return as_text(summary);
    case TableFormat::markdown:
      return as_markdown(summary);
    case TableFormat::csv:
      return as_csv(summary);
    case TableFormat::json:
      return as_json(summary);
  }
  return {};
}

}  // namespace sb
