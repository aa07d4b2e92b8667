#include "report/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/number.h"
#include "report/paper.h"
#include "runs/run_store.h"

namespace sb {
namespace {

std::string variant_of(const Result& result) {
  const std::string prefix = "model.switch ";
  std::string out;
  for (const auto& [key, value] : result.config) {
    if (!key.starts_with(prefix)) continue;
    out += (out.empty() ? "" : " ") + key.substr(prefix.size()) + "=" + value.substr(1, value.size() - 2);
  }
  return out;
}

using Key = std::tuple<std::string, std::string, int64_t, std::string>;  // model, variant, width, task

int task_rank(const std::string& task) {
  return task.empty() ? 0 : task[0] - '0';
}

int gap_of(const std::string& task) {
  const auto at = task.find('=');
  return at == std::string::npos ? 0 : std::stoi(task.substr(at + 1));
}

struct Group {
  std::map<uint64_t, const RunResult*> best;  // by seed
  std::map<uint64_t, double> value, ceiling;
  int runs = 0, diverged = 0;
};

// Selection never looks at the test set unless the run itself was told to.
double selection_score(const RunResult& r) {
  return r.select_on_test ? r.test : r.valid;
}

void add(Group& group, const RunResult& r, double accuracy, double ceiling) {
  ++group.runs;
  if (r.status == "diverged") {
    ++group.diverged;
    return;
  }
  const auto it = group.best.find(r.seed);
  if (it != group.best.end() && selection_score(*it->second) >= selection_score(r)) return;
  group.best[r.seed] = &r;
  group.value[r.seed] = accuracy;
  group.ceiling[r.seed] = ceiling;
}

Cell cell_of(const Key& key, const Group& group) {
  Cell c;
  std::tie(c.model, c.variant, c.width, c.task) = key;
  c.runs = group.runs;
  c.diverged = group.diverged;
  c.seeds = static_cast<int>(group.value.size());
  double sum = 0, squares = 0;
  for (const auto& [seed, value] : group.value) sum += value;
  if (c.seeds > 0) c.mean = sum / c.seeds;
  for (const auto& [seed, value] : group.value) squares += (value - c.mean) * (value - c.mean);
  if (c.seeds > 1) c.sd = std::sqrt(squares / (c.seeds - 1));
  std::set<std::string> precisions;
  for (const auto& [seed, run] : group.best) {
    c.params = run->params;
    c.chance = run->chance;
    precisions.insert(run->precision);
    c.ceiling += group.ceiling.at(seed) / c.seeds;
  }
  for (const auto& p : precisions) c.precision += (c.precision.empty() ? "" : "+") + p;
  if (c.variant.empty()) {
    const PaperFigure paper = paper_figure(c.model, c.task);
    c.paper = paper.accuracy;
    c.paper_sd = paper.spread;
  }
  return c;
}

void note_mixtures(const std::vector<RunResult>& results, std::vector<std::string>& notes) {
  std::set<std::string> precisions, quirks;
  int diverged = 0;
  for (const auto& r : results) {
    precisions.insert(r.precision);
    for (const auto& q : r.quirks) quirks.insert(q);
    diverged += r.status == "diverged";
  }
  if (precisions.size() > 1) {
    std::string line = "mixed precisions:";
    for (const auto& p : precisions) line += " " + p;
    notes.push_back(line);
  }
  if (!quirks.empty()) {
    std::string line = "quirks switched on in some runs:";
    for (const auto& q : quirks) line += " " + q;
    notes.push_back(line);
  }
  if (diverged > 0) notes.push_back(std::to_string(diverged) + " run(s) diverged and count in no mean");
}

}  // namespace

RunResult read_result(const std::string& folder) {
  const Result found = load_result(folder);
  RunResult r;
  r.run_id = found.run_id;
  r.status = found.status;
  r.model = found.model;
  r.task = std::to_string(found.task);
  r.precision = found.precision;
  r.label = found.label;
  r.seed = found.run_seed;
  r.width = found.width;
  r.params = found.params;
  r.updates = found.updates;
  r.lr = found.lr;
  if (found.test) r.test = found.test->accuracy;
  if (found.valid) r.valid = found.valid->accuracy;
  if (found.test && found.test->ceiling) r.ceiling = found.test->ceiling->accuracy;
  r.chance = found.chance;
  r.variant = variant_of(found);
  r.quirks = found.quirks;
  r.select_on_test = std::find(r.quirks.begin(), r.quirks.end(), "select_on_test") != r.quirks.end();
  for (const auto& point : found.grid) {
    r.grid.emplace_back(point.gap.value_or(0), point.accuracy);
    r.grid_ceiling.emplace_back(point.gap.value_or(0), point.ceiling ? point.ceiling->accuracy : 0);
  }
  return r;
}

// Switches tell rows of one model apart; where a model stands in one row only, they say nothing.
std::vector<RunResult> without_needless_variants(std::vector<RunResult> results) {
  std::map<std::string, std::set<std::string>> variants;
  for (const auto& r : results) variants[r.model].insert(r.variant);
  for (auto& r : results) {
    if (variants[r.model].size() == 1) r.variant.clear();
  }
  return results;
}

Summary summarise(const std::vector<RunResult>& all) {
  const std::vector<RunResult> results = without_needless_variants(all);
  std::map<Key, Group> groups;
  for (const auto& r : results) {
    add(groups[{r.model, r.variant, r.width, r.task}], r, r.test, r.ceiling);
    for (size_t i = 0; i < r.grid.size(); ++i) {
      add(groups[{r.model, r.variant, r.width, "4 n=" + std::to_string(r.grid[i].first)}], r, r.grid[i].second,
          r.grid_ceiling[i].second);
    }
  }
  Summary out;
  for (const auto& [key, group] : groups) out.cells.push_back(cell_of(key, group));
  std::stable_sort(out.cells.begin(), out.cells.end(), [](const Cell& a, const Cell& b) {
    return std::make_tuple(model_rank(a.model), a.model, a.variant, a.width, task_rank(a.task), gap_of(a.task)) <
           std::make_tuple(model_rank(b.model), b.model, b.variant, b.width, task_rank(b.task), gap_of(b.task));
  });
  note_mixtures(results, out.notes);
  return out;
}

Summary summarise_folder(const std::string& root) {
  std::vector<RunResult> results;
  std::vector<std::string> notes;
  for (const auto& folder : find_runs(root)) {
    try {
      results.push_back(read_result(folder));
    } catch (const Error& error) {
      notes.push_back(std::string("left out: ") + error.what());
    }
  }
  if (results.empty()) {
    throw bad_input("table", "expected finished runs below the folder, got none, " + root);
  }
  Summary summary = summarise(results);
  summary.notes.insert(summary.notes.end(), notes.begin(), notes.end());
  return summary;
}

}  // namespace sb
