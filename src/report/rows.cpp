#include "report/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "report/labels.h"
#include "report/select.h"
#include "runs/schema.h"

namespace sb {
namespace {

std::string entry(const ConfigMap& config, const std::string& key) {
  const auto it = config.find(key);
  return it == config.end() ? std::string() : it->second;
}

std::set<std::string> every_quirk() {
  std::set<std::string> out;
  for (const auto& p : config_keys())
    if (p.section == "quirks") out.insert(p.key);
  return out;
}

// The whole config of a run in the form of Group::config.
ConfigMap settings_of(const Result& result) {
  ConfigMap out;
  std::set<std::string> quirks(result.quirks.begin(), result.quirks.end());
  for (const auto& [key, value] : result.config) {
    if (key.starts_with("quirks.") && (value == "true" || value == "false")) {
      if (value == "true") quirks.insert(key.substr(7));
    } else {
      // Names that tables have a use for stay theirs.
      out[key.find('.') == std::string::npos || key == "run.label" ? "config." + key : key] = value;
    }
  }
  if (!quirks.empty())
    out["quirks"] = json_quoted(quirks == every_quirk() ? fmt::format("all {}", quirks.size())
                                                        : fmt::format("{}", fmt::join(quirks, " ")));
  if (!result.label.empty()) out["run.label"] = json_quoted(result.label);
  out["model.name"] = json_quoted(result.model);
  out["task.number"] = std::to_string(result.task);
  out["grammar.seed"] = std::to_string(result.grammar_seed);
  out["train.seed"] = std::to_string(result.train_seed);
  return out;
}

// What makes a run unusable; empty: nothing.
std::string fault_of(const Result& r) {
  const auto says = [&](const char* key, const std::string& value) {
    const auto it = r.config.find(key);
    return it == r.config.end() || it->second == value;
  };
  if (!says("model.name", json_quoted(r.model)) || !says("task.number", std::to_string(r.task)) ||
      !says("grammar.seed", std::to_string(r.grammar_seed)) || !says("train.seed", std::to_string(r.train_seed)))
    return "contradicts its own config";
  if (r.status != "done" && r.status != "diverged") return "status " + printable(r.status);
  if (r.status == "diverged") return "";
  if (!r.test) return "done, but without a test";
  const auto sound = [](const Measurement& m) {
    return std::isfinite(m.accuracy) && (!m.ceiling || std::isfinite(m.ceiling->accuracy));
  };
  if (!sound(*r.test) || (r.valid && !sound(*r.valid)) || !std::all_of(r.grid.begin(), r.grid.end(), sound))
    return "an accuracy is not a number";
  return "";
}

std::string name_of(const TableRun& run) {
  return printable(run.result.run_id, 64) + (run.folder.empty() ? "" : " in " + printable(run.folder, 400));
}

void leave_out(std::vector<TableRun>& runs, std::vector<std::string>& notes) {
  std::vector<TableRun> kept;
  std::map<std::string, std::string> seen;   // run id to where it was found
  std::map<ConfigMap, std::string> configs;  // to run id
  for (auto& run : runs) {
    const std::string fault = fault_of(run.result);
    if (!fault.empty()) {
      notes.push_back("left out: " + name_of(run) + ": " + fault);
    } else if (const auto [at, fresh] = seen.emplace(run.result.run_id, run.folder); !fresh) {
      notes.push_back("left out: " + name_of(run) + ": a second copy of the run in " + printable(at->second, 400));
    } else if (const auto [twin, only] = configs.emplace(settings_of(run.result), run.result.run_id); !only) {
      notes.push_back("left out: " + name_of(run) + ": the config of run " + printable(twin->second, 64));
    } else {
      kept.push_back(std::move(run));
    }
  }
  runs = std::move(kept);
}

std::vector<std::string> values_of(const ConfigMap& config, const std::vector<std::string>& axes) {
  std::vector<std::string> out;
  for (const auto& axis : axes) out.push_back(entry(config, config_key(axis)));
  return out;
}

bool less_values(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), less_value);
}

class Grouping {
 public:
  explicit Grouping(Rows& rows) : rows_(rows) {}

  void run() {
    rows_.group_of.resize(rows_.runs.size());
    rows_.seeds.resize(rows_.runs.size());
    rows_.settings.resize(rows_.runs.size());
    for (size_t i = 0; i < rows_.runs.size(); ++i) place(i);
    for (auto& group : rows_.groups) arrange(group);
  }

 private:
  void place(size_t i) {
    ConfigMap config = settings_of(rows_.runs[i].result);
    const auto settings = rows_.settings[i] = values_of(config, rows_.axes.select);
    rows_.seeds[i] = values_of(config, rows_.axes.average);
    for (const auto* axes : {&rows_.axes.select, &rows_.axes.average})
      for (const auto& axis : *axes) config.erase(config_key(axis));
    const auto [at, fresh] = index_.emplace(std::move(config), rows_.groups.size());
    if (fresh) rows_.groups.push_back({at->first, {}, std::nullopt, {}});
    rows_.group_of[i] = at->second;
    auto& candidates = rows_.groups[at->second].candidates;
    auto it = std::find_if(candidates.begin(), candidates.end(),
                           [&](const Candidate& each) { return each.settings == settings; });
    if (it == candidates.end()) {
      candidates.emplace_back();
      it = std::prev(candidates.end());
      it->settings = settings;
    }
    (rows_.runs[i].result.status == "done" ? it->runs : it->diverged).push_back(i);
  }

  void arrange(Group& group) const {
    const auto by_seed = [&](size_t a, size_t b) { return less_values(rows_.seeds[a], rows_.seeds[b]); };
    for (auto& candidate : group.candidates) {
      std::stable_sort(candidate.runs.begin(), candidate.runs.end(), by_seed);
      std::stable_sort(candidate.diverged.begin(), candidate.diverged.end(), by_seed);
    }
    std::sort(group.candidates.begin(), group.candidates.end(),
              [](const Candidate& a, const Candidate& b) { return less_values(a.settings, b.settings); });
  }

  Rows& rows_;
  std::map<ConfigMap, size_t> index_;
};

}  // namespace

std::map<Point, const Measurement*> points_of(const TableRun& run) {
  std::map<Point, const Measurement*> out;
  const Result& r = run.result;
  if (!r.test) return out;
  out[{}] = &*r.test;
  for (const auto& m : r.grid) out.emplace(Point{m.gap, "", 0}, &m);
  // One of as many samples as the config says for gap lengths is the measurement a run with that gap would have made.
  const auto usual = parse_integer(entry(r.config, "eval.grid_samples"));
  for (const auto& m : run.evaluations) {
    if (!std::isfinite(m.accuracy)) continue;
    const bool own_split = m.split == r.test->split;
    if (own_split && !m.gap && m.samples == r.test->samples) continue;
    const bool own = own_split && m.gap && usual == m.samples;
    out.emplace(own ? Point{m.gap, "", 0} : Point{m.gap, m.split, m.samples}, &m);
  }
  return out;
}

namespace {

template <class Value>
std::optional<double> mean_of(const std::vector<const Measurement*>& all, const Value& value) {
  double sum = 0;
  for (const auto* m : all) {
    const std::optional<double> one = value(*m);
    if (!one || !std::isfinite(*one)) return std::nullopt;
    sum += *one;
  }
  return all.empty() ? std::nullopt : std::optional(sum / static_cast<double>(all.size()));
}

double spread(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// Averaged axes that differ between these runs.
std::vector<std::string> differing(const Rows& rows, const std::vector<size_t>& runs) {
  std::vector<std::string> out;
  for (size_t axis = 0; axis < rows.axes.average.size(); ++axis) {
    const bool same = std::all_of(runs.begin(), runs.end(),
                                  [&](size_t run) { return rows.seeds[run][axis] == rows.seeds[runs.front()][axis]; });
    if (!same) out.push_back(rows.axes.average[axis]);
  }
  return out;
}

std::string spread_over(const Rows& rows, const Cell& cell) {
  std::vector<std::string> axes = differing(rows, cell.runs);
  if (cell.grammars > 1) std::erase_if(axes, [](const std::string& axis) { return !axis.starts_with("grammar."); });
  if (axes == std::vector<std::string>{"grammar.seed"}) return "grammars";
  if (axes == std::vector<std::string>{"train.seed"}) return "train seeds";
  if (axes == std::vector<std::string>{"train.order_seed"}) return "order seeds";
  return fmt::format("{}", fmt::join(axes, " and "));
}

void measure(const Rows& rows, Cell& cell, const std::vector<const Measurement*>& found) {
  cell.mean = *mean_of(found, [](const Measurement& m) { return std::optional(m.accuracy); });
  cell.kl = mean_of(found, [](const Measurement& m) { return m.kl; });
  cell.ceiling = mean_of(
      found, [](const Measurement& m) { return m.ceiling ? std::optional(m.ceiling->accuracy) : std::nullopt; });
  cell.upper_bound = mean_of(
      found, [](const Measurement& m) { return m.ceiling ? std::optional(m.ceiling->upper_bound) : std::nullopt; });
  cell.split = found[0]->split;
  cell.samples = found[0]->samples;
  std::map<std::vector<std::string>, std::vector<double>> grammars;
  std::vector<double> accuracies;
  double chance = 0, valid = 0;
  bool all_valid = true;
  for (size_t i = 0; i < found.size(); ++i) {
    const Result& r = rows.runs[cell.runs[i]].result;
    accuracies.push_back(found[i]->accuracy);
    std::vector<std::string> grammar = rows.seeds[cell.runs[i]];
    for (size_t axis = grammar.size(); axis-- > 0;)
      if (!rows.axes.average[axis].starts_with("grammar.")) grammar.erase(grammar.begin() + static_cast<long>(axis));
    grammars[grammar].push_back(found[i]->accuracy);
    if (found[i]->samples != cell.samples) cell.samples = 0;
    if (found[i]->ceiling) cell.ceiling_exact &= found[i]->ceiling->exact;
    chance += r.chance;
    all_valid &= r.valid.has_value();
    valid += r.valid ? r.valid->accuracy : 0;
  }
  const auto n = static_cast<double>(found.size());
  cell.chance = chance / n;
  if (all_valid) cell.valid = valid / n;
  cell.grammars = static_cast<int64_t>(grammars.size());
  if (grammars.size() > 1) {
    accuracies.clear();
    for (const auto& [grammar, values] : grammars) {
      double sum = 0;
      for (const double v : values) sum += v;
      accuracies.push_back(sum / static_cast<double>(values.size()));
    }
  }
  if (accuracies.size() > 1) {
    cell.sd = spread(accuracies);
    cell.sd_over = spread_over(rows, cell);
  }
}

std::optional<PaperFigure> paper_of(const Rows& rows, const Cell& cell) {
  std::optional<PaperFigure> out;
  for (const size_t run : cell.runs) {
    out = paper_figure(rows.runs[run].result);
    if (!out) break;
  }
  return out;
}

void add_cells(Rows& rows, size_t number) {
  const Group& group = rows.groups[number];
  size_t diverged = 0;
  for (const auto& candidate : group.candidates) diverged += candidate.diverged.size();
  if (!group.chosen) {
    Cell cell;
    cell.group = number;
    cell.diverged = diverged;
    rows.cells.push_back(std::move(cell));
    return;
  }
  const Candidate& chosen = group.candidates[*group.chosen];
  std::map<Point, std::pair<std::vector<size_t>, std::vector<const Measurement*>>> points;
  for (const size_t run : group.averaged)
    for (const auto& [point, measurement] : points_of(rows.runs[run])) {
      points[point].first.push_back(run);
      points[point].second.push_back(measurement);
    }
  for (auto& [point, found] : points) {
    Cell cell;
    cell.group = number;
    cell.point = point;
    cell.runs = std::move(found.first);
    cell.diverged = chosen.diverged.size();
    measure(rows, cell, found.second);
    if (point == Point{}) cell.paper = paper_of(rows, cell);
    rows.cells.push_back(std::move(cell));
  }
}

// Evaluations saved later may be there for some runs only.
void note_missing_points(Rows& rows, const Labels& labels) {
  for (const auto& cell : rows.cells) {
    const Group& group = rows.groups[cell.group];
    if (!group.chosen || cell.runs.size() == group.candidates[*group.chosen].runs.size()) continue;
    rows.notes.push_back(fmt::format("{}, {}: measured in {} of {} runs", labels.name(group),
                                     fmt::join(point_lines(cell.point), ", "), cell.runs.size(),
                                     group.averaged.size()));
  }
  size_t unused = 0;
  for (const auto& group : rows.groups)
    for (size_t c = 0; c < group.candidates.size(); ++c)
      for (const size_t run : group.candidates[c].runs)
        unused += group.chosen != c && !rows.runs[run].evaluations.empty();
  if (unused > 0) rows.notes.push_back(fmt::format("saved evaluations of {} runs that were not chosen", unused));
}

// "gla, task 1, lr 0.001, seed 2": model, task, seeds, and what else differs between all runs, there or missing.
void name_missing(Rows& rows, const std::vector<MissingRun>& missing) {
  std::map<std::string, std::set<std::string>> values;
  std::vector<ConfigMap> all;
  for (const auto& run : rows.runs) all.push_back(run.result.config);
  for (const auto& run : missing)
    if (!run.config.empty()) all.push_back(run.config);
  for (const auto& config : all)
    for (const auto& [key, value] : config) values[key];
  for (auto& [key, seen] : values)
    for (const auto& config : all) seen.insert(entry(config, key));
  for (const auto& run : missing) {
    std::vector<std::string> parts;
    const auto add = [&](const std::string& key, const std::string& name) {
      const std::string value = entry(run.config, key);
      if (!value.empty()) parts.push_back(name + shown_value(value));
    };
    add("model.name", "");
    add("task.number", "task ");
    for (const auto& [key, seen] : values)
      if (seen.size() > 1 && key != "model.name" && key != "task.number" && !key.ends_with(".seed"))
        add(key, short_name(key) + " ");
    const bool one_seed = entry(run.config, "grammar.seed") == entry(run.config, "train.seed");
    if (!one_seed) add("grammar.seed", "grammar.seed ");
    add("train.seed", one_seed ? "seed " : "train.seed ");
    rows.missing.push_back(parts.empty() ? run.name : fmt::format("{}", fmt::join(parts, ", ")));
  }
}

void stand(Rows& rows) {
  rows.standing.assign(rows.runs.size(), Standing::none_chosen);
  for (const auto& group : rows.groups)
    for (size_t c = 0; c < group.candidates.size(); ++c) {
      const Candidate& candidate = group.candidates[c];
      const Standing standing = group.chosen == c    ? Standing::averaged
                                : !group.chosen      ? Standing::none_chosen
                                : candidate.eligible ? Standing::not_chosen
                                                     : Standing::not_eligible;
      for (const size_t run : candidate.runs) rows.standing[run] = standing;
      if (standing == Standing::averaged)
        for (const size_t run : candidate.runs)
          if (std::find(group.averaged.begin(), group.averaged.end(), run) == group.averaged.end())
            rows.standing[run] = Standing::seed_not_common;
      for (const size_t run : candidate.diverged) rows.standing[run] = Standing::diverged;
    }
}

}  // namespace

std::string Group::value(const std::string& key) const {
  return entry(config, key);
}

std::string Group::model() const {
  return plain_value(value("model.name"));
}

const char* to_string(Standing standing) {
  static constexpr const char* names[] = {"averaged",    "not chosen", "not eligible",
                                          "none chosen", "diverged",   "seed not common"};
  return names[static_cast<size_t>(standing)];
}

std::string status_of(const Rows& rows, const Cell& cell) {
  if (!cell.runs.empty()) return "done";
  const auto& candidates = rows.groups[cell.group].candidates;
  const bool any =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return !c.runs.empty(); });
  return any ? "none chosen" : "diverged";
}

std::string plain_value(const std::string& json) {
  if (!json.starts_with('"')) return printable(json, 400);
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  return parsed.is_string() ? printable(parsed.get_ref<const std::string&>(), 400) : printable(json, 400);
}

bool less_value(const std::string& a, const std::string& b) {
  const auto x = parse_finite(a), y = parse_finite(b);
  const auto kind = [](const std::string& text, bool number) { return text.empty() ? 0 : number ? 1 : 2; };
  const int p = kind(a, x.has_value()), q = kind(b, y.has_value());
  if (p != q) return p < q;
  if (p == 1 && *x != *y) return *x < *y;
  return a < b;
}

std::string seeds_text(const Rows& rows, size_t run) {
  const auto& values = rows.seeds[run];
  const auto& axes = rows.axes.average;
  const bool ordered = axes.size() == 3 && axes[2] == "train.order_seed";
  const bool one_seed = (axes.size() == 2 || ordered) && values[0] == values[1];
  std::vector<std::string> parts;
  if (one_seed) parts.push_back("seed " + plain_value(values[0]));
  for (size_t i = one_seed ? 2 : 0; i < axes.size(); ++i)
    if (axes[i] != "train.order_seed" || !values[i].empty()) parts.push_back(axes[i] + " " + plain_value(values[i]));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::set<Point> further_points(const Rows& rows) {
  std::set<Point> out;
  for (const auto& run : rows.runs)
    for (const auto& [point, measurement] : points_of(run))
      if (point != Point{}) out.insert(point);
  return out;
}

std::vector<std::string> averaged_further(const Rows& rows) {
  std::set<std::string> found;
  for (const auto& cell : rows.cells)
    for (const auto& axis : differing(rows, cell.runs))
      if (axis != "grammar.seed" && axis != "train.seed" && axis != "train.order_seed") found.insert(axis);
  return {found.begin(), found.end()};
}

Rows make_rows(std::vector<TableRun> runs, const Axes& axes, std::vector<std::string> notes,
               const std::vector<MissingRun>& missing) {
  Rows rows;
  rows.axes = axes;
  std::vector<std::string> left_out;
  rows.runs = std::move(runs);
  leave_out(rows.runs, left_out);
  // A column of its own only where some run has another order.
  const bool ordered = std::any_of(rows.runs.begin(), rows.runs.end(),
                                   [](const TableRun& run) { return run.result.config.contains("train.order_seed"); });
  if (!ordered) std::erase(rows.axes.average, "train.order_seed");
  name_missing(rows, missing);
  Grouping(rows).run();
  const Labels labels = make_labels(rows.groups);
  choose(rows, labels);
  rows.choice_notes = rows.notes.size();
  for (const auto* more : {&notes, &left_out}) rows.notes.insert(rows.notes.end(), more->begin(), more->end());
  for (size_t i = 0; i < rows.groups.size(); ++i) add_cells(rows, i);
  note_missing_points(rows, labels);
  stand(rows);
  return rows;
}

}  // namespace sb
