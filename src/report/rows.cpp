#include "report/rows.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "report/cells.h"
#include "report/labels.h"
#include "report/order.h"
#include "report/select.h"

namespace sb {
namespace {

std::string entry(const ConfigMap& config, const std::string& key) {
  const auto it = config.find(key);
  return it == config.end() ? std::string() : it->second;
}

// A complete config in the form of Group::config. `quirks`: quirks that were on but are not in the config.
ConfigMap settings_of(const ConfigMap& config, std::set<std::string> quirks = {}) {
  ConfigMap out;
  for (const auto& [key, value] : config) {
    if (key.starts_with("quirks.") && (value == "true" || value == "false")) {
      if (value == "true") quirks.insert(key.substr(7));
    } else {
      // Keys that would collide with our own keys get a prefix.
      out[key.find('.') == std::string::npos || key == "run.label" ? "config." + key : key] = value;
    }
  }
  if (!quirks.empty()) out["quirks"] = json_quoted(joined(quirks, " "));
  if (auto kind = out.extract("task.kind"); !kind.empty()) out["task.number"] = kind.mapped();
  return out;
}

ConfigMap settings_of(const Result& result) {
  ConfigMap out = settings_of(result.config, {result.quirks.begin(), result.quirks.end()});
  if (!result.label.empty()) out["run.label"] = json_quoted(result.label);
  out["model.name"] = json_quoted(result.model);
  if (!result.config.contains("task.kind")) out["task.number"] = std::to_string(result.task);
  out["grammar.seed"] = std::to_string(result.grammar_seed);
  out["train.seed"] = std::to_string(result.train_seed);
  return out;
}

// Why a result cannot be used; empty if it can.
std::string fault_of(const Result& r) {
  if (r.status != "done" && r.status != "diverged") return "status " + printable(r.status);
  if (r.status == "diverged") return "";
  const auto sound = [](const Measurement& m) {
    return std::isfinite(m.score()) && (!m.ceiling || std::isfinite(m.ceiling->score()));
  };
  if ((r.test && !sound(*r.test)) || (r.valid && !sound(*r.valid)) || !std::all_of(r.grid.begin(), r.grid.end(), sound))
    return "an accuracy is not a number";
  return "";
}

// An intact run without a figure, since an output on the test set was not finite.
bool untested(const Result& r) {
  return r.status == "done" && !r.test;
}

std::string name_of(const TableRun& run) {
  return printable(run.result.run_id, 64) + (run.folder.empty() ? "" : " in " + printable(run.folder, 400));
}

// Index of the copy to use for each run: the first one with the fewest damaged evaluations.
std::map<std::string, size_t> best_copies(const std::vector<TableRun>& runs) {
  std::map<std::string, size_t> best;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!fault_of(runs[i].result).empty() || untested(runs[i].result)) continue;
    const auto [at, fresh] = best.emplace(runs[i].result.run_id, i);
    if (!fresh && runs[i].damaged < runs[at->second].damaged) at->second = i;
  }
  return best;
}

void leave_out(std::vector<TableRun>& runs, std::vector<LeftOut>& left_out, std::vector<MissingRun>& missing) {
  const auto leave = [&](const TableRun& run, LeftOut::Why why, const std::string& reason) {
    left_out.push_back({run.folder, why, name_of(run), reason});
  };
  const auto best = best_copies(runs);
  std::vector<bool> kept(runs.size(), false);
  std::map<ConfigMap, std::string> configs;  // to run id
  for (size_t i = 0; i < runs.size(); ++i) {
    const TableRun& run = runs[i];
    const std::string fault = fault_of(run.result);
    if (!fault.empty()) {
      leave(run, LeftOut::Why::fault, fault);
      missing.push_back({printable(run.result.run_id, 64), run.result.config, MissingRun::Why::damaged});
    } else if (untested(run.result)) {
      leave(run, LeftOut::Why::untested, "without a test accuracy: not finite");
      missing.push_back({printable(run.result.run_id, 64), run.result.config, MissingRun::Why::untested});
    } else if (const TableRun& taken = runs[best.at(run.result.run_id)]; &taken != &run) {
      leave(run, LeftOut::Why::copy,
            "a second copy of the run in " + printable(taken.folder, 400) +
                (taken.damaged < run.damaged ? ", which is used because a saved evaluation of this copy is damaged"
                                             : ""));
    } else if (const auto [twin, only] = configs.emplace(settings_of(run.result), run.result.run_id); !only) {
      leave(run, LeftOut::Why::copy, "the same config as run " + printable(twin->second, 64));
    } else {
      kept[i] = true;
    }
  }
  std::vector<TableRun> left;
  for (size_t i = 0; i < runs.size(); ++i)
    if (kept[i]) left.push_back(std::move(runs[i]));
  runs = std::move(left);
}

// The value of an axis; train.order_seed is 0 if it is absent.
std::string axis_value(const ConfigMap& config, const std::string& axis) {
  const std::string value = entry(config, config_key(axis));
  return value.empty() && axis == "train.order_seed" ? "0" : value;
}

std::vector<std::string> values_of(const ConfigMap& config, const std::vector<std::string>& axes) {
  std::vector<std::string> out;
  for (const auto& axis : axes) out.push_back(axis_value(config, axis));
  return out;
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
    const auto by_seed = [&](size_t a, size_t b) { return less_all(rows_.seeds[a], rows_.seeds[b]); };
    for (auto& candidate : group.candidates) {
      std::stable_sort(candidate.runs.begin(), candidate.runs.end(), by_seed);
      std::stable_sort(candidate.diverged.begin(), candidate.diverged.end(), by_seed);
    }
    std::sort(group.candidates.begin(), group.candidates.end(),
              [](const Candidate& a, const Candidate& b) { return less_all(a.settings, b.settings); });
  }

  Rows& rows_;
  std::map<ConfigMap, size_t> index_;
};

AbsentRun absent_run(const Axes& axes, const MissingRun& run, const std::string& words) {
  AbsentRun out{run.name, words, settings_of(run.config), {}, run.why};
  const bool automaton = run.config.contains("grammar.automaton");
  for (const auto& axis : axes.average)
    if (axis.starts_with("grammar."))
      out.grammar.push_back(automaton && axis == "grammar.seed" ? "" : axis_value(out.config, axis));
  for (const auto* kind : {&axes.select, &axes.average})
    for (const auto& axis : *kind) out.config.erase(config_key(axis));
  return out;
}

// "gla, task 1, lr 0.001, seed 2": model, task, seeds, and other keys that differ between runs, including missing ones.
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
  // Keys that the model or the task determines, and switches that other models lack, do not identify a run.
  const auto identifies = [&](const std::string& key, const ConfigMap& own) {
    const auto alike = [&](const ConfigMap& other, const char* what) { return entry(other, what) == entry(own, what); };
    return std::any_of(all.begin(), all.end(), [&](const ConfigMap& other) {
      const bool same = key.starts_with("model.") ? alike(other, "model.name")
                                                  : alike(other, "task.kind") && alike(other, "task.number");
      return same && entry(other, key) != entry(own, key);
    });
  };
  for (const auto& run : missing) {
    std::vector<std::string> parts;
    const auto add = [&](const std::string& key, const std::string& name) {
      const std::string value = entry(run.config, key);
      if (!value.empty()) parts.push_back(name + shown_value(value));
    };
    add("model.name", "");
    add("task.kind", "task ");
    add("task.number", "task ");
    for (const auto& [key, seen] : values)
      if (seen.size() > 1 && key != "model.name" && key != "task.kind" && key != "task.number" &&
          !key.ends_with(".seed") && identifies(key, run.config))
        add(key, short_name(key) + " ");
    const bool one_seed = entry(run.config, "grammar.seed") == entry(run.config, "train.seed");
    if (!one_seed) add("grammar.seed", "grammar.seed ");
    add("train.seed", one_seed ? "seed " : "train.seed ");
    auto& names = run.why == MissingRun::Why::unfinished ? rows.missing
                  : run.why == MissingRun::Why::damaged  ? rows.damaged
                  : run.why == MissingRun::Why::untested ? rows.untested
                                                         : rows.other_schema;
    names.push_back(parts.empty() ? run.name : joined(parts, ", "));
    rows.absent.push_back(absent_run(rows.axes, run, joined(parts, ", ")));
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
    if (axes[i] != "train.order_seed" || values[i] != "0") parts.push_back(axes[i] + " " + plain_value(values[i]));
  return joined(parts, " ");
}

SwitchDefaults defaults_of(const ModelRules& rules) {
  if (!rules.network) return {};
  return [network = rules.network](const std::string& model, int64_t width) -> std::map<std::string, std::string> {
    RunConfig plain;
    plain.model.name = model;
    plain.model.width = static_cast<int>(std::clamp<int64_t>(width, 0, 1 << 24));
    try {
      return network(plain).switches;
    } catch (const Error&) {
      return {};  // no such model here, or no such width
    }
  };
}

std::optional<std::string> collapsed_run(const Rows& rows, size_t run) {
  constexpr double least_gain = .01;  // over the 1-gram, of a run that learned
  const Result& r = rows.runs[run].result;
  if (r.objective != "state" || !r.test || !r.baselines || r.baselines->n_gram.empty() ||
      r.test->accuracy > r.baselines->n_gram[0] + least_gain)
    return std::nullopt;
  std::vector<std::string> at;
  for (size_t i = 0; i < rows.axes.select.size(); ++i)
    if (!rows.settings[run][i].empty())
      at.push_back(formatted("{} {}", rows.axes.select[i], plain_value(rows.settings[run][i])));
  return formatted("{}, task {}, {} ({}): accuracy {}, 1-gram {}{}", printable(r.model), r.task, seeds_text(rows, run),
                   printable(r.run_id, 64), fixed(r.test->accuracy, 3), fixed(r.baselines->n_gram[0], 3),
                   at.empty() ? "" : "; trained with " + joined(at, ", "));
}

std::vector<std::string> above_ceiling(const Rows& rows) {
  std::vector<std::string> out;
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    const TableRun& run = rows.runs[i];
    for (const auto& [point, m] : points_of(run)) {
      if (!m->ceiling || m->samples < 2 || m->ceiling->samples < 2) continue;    // one sample has no standard error
      const double error = std::hypot(m->stderr_, m->ceiling->stderr_) + 1e-12;  // a mean of ones may round to less
      // If the ceiling is not exact, the best causal model lies between it and its upper bound.
      const double most = m->mse ? m->ceiling->score() : std::max(m->ceiling->accuracy, m->ceiling->upper_bound);
      if (m->mse ? m->score() >= most - 4 * error : m->score() <= most + 4 * error) continue;
      const std::string at = point.at ? formatted(", {} {}", point.axis.empty() ? "gap" : point.axis, *point.at) : "";
      out.push_back(formatted("{}, task {}{}, {}: {} {} is {} its {} {} by more than 4 standard errors ({})",
                              printable(run.result.model), task_name(run.result), at, seeds_text(rows, i),
                              m->mse ? "squared error" : "accuracy", fixed(m->score(), 4), m->mse ? "below" : "above",
                              m->mse ? "bound" : "ceiling", fixed(most, 4), printable(run.result.run_id)));
    }
  }
  return out;
}

namespace {

void note_collapsed(Rows& rows) {
  constexpr size_t most_named = 10;
  size_t found = 0;
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    if (rows.standing[i] != Standing::averaged) continue;
    const auto words = collapsed_run(rows, i);
    if (words && ++found <= most_named)
      rows.notes.emplace_back("collapsed run, included in the mean: " + *words, Note::Kind::collapsed);
  }
  if (found > most_named)
    rows.notes.emplace_back(formatted("collapsed runs, included in the mean: {} more", found - most_named),
                            Note::Kind::collapsed);
}

}  // namespace

Rows make_rows(std::vector<TableRun> runs, const Axes& axes, std::vector<Note> notes, std::vector<MissingRun> missing,
               SwitchDefaults defaults) {
  Rows rows;
  rows.defaults = std::move(defaults);
  rows.axes = axes;
  rows.runs = std::move(runs);
  leave_out(rows.runs, rows.left_out, missing);
  // train.order_seed is an axis only if some run sets it.
  const bool ordered = std::any_of(rows.runs.begin(), rows.runs.end(),
                                   [](const TableRun& run) { return run.result.config.contains("train.order_seed"); });
  if (!ordered) std::erase(rows.axes.average, "train.order_seed");
  std::set<std::string> there;
  for (const auto& run : rows.runs) there.insert(run.result.run_id);
  std::erase_if(missing, [&](const MissingRun& run) { return there.contains(run.name); });  // another copy is whole
  name_missing(rows, missing);
  Grouping(rows).run();
  const Labels labels = make_labels(rows.groups, rows.defaults);
  choose(rows, labels);
  rows.choice_notes = rows.notes.size();
  rows.notes.insert(rows.notes.end(), notes.begin(), notes.end());
  for (const auto& run : rows.left_out)
    rows.notes.emplace_back("left out: " + run.name + ": " + run.reason, Note::Kind::left_out);
  for (size_t i = 0; i < rows.groups.size(); ++i) add_cells(rows, i);
  note_missing_points(rows, labels);
  stand(rows);
  note_collapsed(rows);
  return rows;
}

}  // namespace sb
