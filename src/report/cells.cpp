#include "report/cells.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/number.h"

namespace sb {

namespace {

Point point_of(const Measurement& m, const std::string& split = "", int64_t samples = 0,
               const std::string& computed = "") {
  return {m.at, split, samples, computed, m.axis.value_or("")};
}

}  // namespace

std::map<Point, const Measurement*> points_of(const TableRun& run) {
  std::map<Point, const Measurement*> out;
  const Result& r = run.result;
  if (!r.test) return out;
  out[{}] = &*r.test;
  for (const auto& m : r.grid) out.emplace(point_of(m), &m);
  // An evaluation with eval.grid_samples samples equals the one that a run with this point in its grid would have made.
  const auto asked = r.config.find("eval.grid_samples");
  const auto usual = asked == r.config.end() ? std::nullopt : parse_integer(asked->second);
  for (const auto& m : run.evaluations) {
    if (!std::isfinite(m.score())) continue;
    if (!m.computed.empty()) {  // computed differently: a point of its own
      out.emplace(point_of(m, m.split, m.samples, m.computed), &m);
      continue;
    }
    const bool own_split = m.split == r.test->split;
    if (own_split && !m.at && m.samples == r.test->samples) continue;
    const bool own = own_split && m.at && usual == m.samples;
    out.emplace(own ? point_of(m) : point_of(m, m.split, m.samples), &m);
  }
  return out;
}

bool shows_saved(const TableRun& run) {
  const auto points = points_of(run);
  return std::any_of(points.begin(), points.end(), [&](const auto& point) {
    return std::any_of(run.evaluations.begin(), run.evaluations.end(),
                       [&](const Measurement& saved) { return &saved == point.second; });
  });
}

const char* const kNgramNote =
    "n-gram: the most common answer in training after the last n symbols; n chosen on valid. In the paper's tasks it "
    "skips blanks, so tasks 1, 2 and 4 share it.";

std::optional<NgramFigure> n_gram_of(const Result& result, const Point& point) {
  const auto best = result.baselines ? result.baselines->best_n_gram() : std::nullopt;
  if (!best) return std::nullopt;
  if (!point.split.empty() || !point.computed.empty()) return std::nullopt;
  if (point.at && result.config.contains("task.kind")) return std::nullopt;
  const auto content = result.config.find("task.test_gap_content");
  if (point.at && content != result.config.end() && content->second != "\"blank\"") return std::nullopt;
  return NgramFigure{*best, *result.baselines->n};
}

std::string n_text(int least, int most) {
  return least == most ? std::to_string(least) : formatted("{}–{}", least, most);
}

namespace {

void add_n_gram(const Rows& rows, Cell& cell) {
  double sum = 0;
  for (const size_t run : cell.runs) {
    const auto found = n_gram_of(rows.runs[run].result, cell.point);
    if (!found) return;
    sum += found->accuracy;
    cell.n_least = cell.n_least == 0 ? found->n : std::min(cell.n_least, found->n);
    cell.n_most = std::max(cell.n_most, found->n);
  }
  cell.n_gram = sum / static_cast<double>(cell.runs.size());
}

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

// Without an automaton, the seed determines the grammar; with one, only its samples.
bool has_automaton(const Rows& rows, size_t run) {
  return rows.runs[run].result.config.contains("grammar.automaton");
}

}  // namespace

std::vector<std::string> grammar_of(const Rows& rows, size_t run) {
  std::vector<std::string> out;
  for (size_t axis = 0; axis < rows.axes.average.size(); ++axis) {
    const std::string& name = rows.axes.average[axis];
    if (!name.starts_with("grammar.")) continue;
    out.push_back(name == "grammar.seed" && has_automaton(rows, run) ? "" : rows.seeds[run][axis]);
  }
  return out;
}

std::map<std::vector<std::string>, double> means_by_grammar(const Rows& rows, const std::vector<size_t>& runs,
                                                            const std::vector<double>& values) {
  std::map<std::vector<std::string>, std::pair<double, size_t>> sums;
  for (size_t i = 0; i < runs.size(); ++i) {
    auto& [sum, count] = sums[grammar_of(rows, runs[i])];
    sum += values[i];
    ++count;
  }
  std::map<std::vector<std::string>, double> out;
  for (const auto& [grammar, sum] : sums) out[grammar] = sum.first / static_cast<double>(sum.second);
  return out;
}

std::map<std::vector<std::string>, double> means_by_grammar(const Rows& rows, const Cell& cell) {
  std::vector<double> values;
  for (const size_t run : cell.runs) values.push_back(points_of(rows.runs[run]).at(cell.point)->score());
  return means_by_grammar(rows, cell.runs, values);
}

namespace {

std::string spread_over(const Rows& rows, const Cell& cell) {
  std::vector<std::string> axes = differing(rows, cell.runs);
  const bool given =
      std::all_of(cell.runs.begin(), cell.runs.end(), [&](size_t run) { return has_automaton(rows, run); });
  if (cell.grammars > 1)
    std::erase_if(axes, [&](const std::string& axis) {
      return !axis.starts_with("grammar.") || (given && axis == "grammar.seed");
    });
  if (!given && axes == std::vector<std::string>{"grammar.seed"}) return "grammars";
  if (axes == std::vector<std::string>{"train.seed"}) return "train seeds";
  if (axes == std::vector<std::string>{"train.order_seed"}) return "order seeds";
  return joined(axes, " and ");
}

void measure(const Rows& rows, Cell& cell, const std::vector<const Measurement*>& found) {
  cell.squared = found[0]->mse.has_value();
  cell.mean = *mean_of(found, [](const Measurement& m) { return std::optional(m.score()); });
  cell.kl = mean_of(found, [](const Measurement& m) { return m.kl; });
  cell.kl_bound = mean_of(found, [](const Measurement& m) { return m.ceiling ? m.ceiling->kl : std::nullopt; });
  cell.ceiling =
      mean_of(found, [](const Measurement& m) { return m.ceiling ? std::optional(m.ceiling->score()) : std::nullopt; });
  cell.upper_bound = mean_of(found, [](const Measurement& m) {
    return m.ceiling && !m.mse ? std::optional(m.ceiling->upper_bound) : std::nullopt;
  });
  cell.split = found[0]->split;
  cell.samples = found[0]->samples;
  std::vector<double> accuracies;
  double chance = 0, valid = 0;
  bool all_valid = true;
  for (size_t i = 0; i < found.size(); ++i) {
    const Result& r = rows.runs[cell.runs[i]].result;
    accuracies.push_back(found[i]->score());
    if (found[i]->samples != cell.samples) cell.samples = 0;
    if (found[i]->ceiling) cell.ceiling_exact &= found[i]->ceiling->exact;
    chance += r.chance;
    all_valid &= r.valid.has_value();
    valid += r.valid ? r.valid->score() : 0;
  }
  const auto n = static_cast<double>(found.size());
  if (!cell.squared) cell.chance = chance / n;
  add_n_gram(rows, cell);
  if (all_valid) cell.valid = valid / n;
  const auto grammars = means_by_grammar(rows, cell.runs, accuracies);
  cell.grammars = static_cast<int64_t>(grammars.size());
  if (grammars.size() > 1) {
    accuracies.clear();
    for (const auto& [grammar, mean] : grammars) accuracies.push_back(mean);
  }
  if (accuracies.size() > 1) {
    cell.sd = spread(accuracies);
    cell.interval = estimate(accuracies).interval(family_error);
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

}  // namespace

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

Interval shown_interval(const Cell& cell) {
  return cell.squared ? Interval{std::max(0.0, cell.interval->low), cell.interval->high}
                      : within_shares(*cell.interval);
}

std::string interval_text(const Cell& cell) {
  if (!cell.interval) return "";
  const double middle = (cell.interval->low + cell.interval->high) / 2;
  const Interval shown = shown_interval(cell);
  const bool cut = shown.low != cell.interval->low || shown.high != cell.interval->high;
  return std::abs(middle - cell.mean) < 5e-4 && !cut ? "± " + fixed(shown.high - middle, 3)
                                                     : formatted("[{}, {}]", fixed(shown.low, 3), fixed(shown.high, 3));
}

void note_missing_points(Rows& rows, const Labels& labels) {
  for (const auto& cell : rows.cells) {
    const Group& group = rows.groups[cell.group];
    if (!group.chosen || cell.runs.size() == group.averaged.size()) continue;
    rows.notes.push_back(formatted("{}, {}: measured in {} of {} runs", labels.name(group),
                                   joined(point_lines(cell.point), ", "), cell.runs.size(), group.averaged.size()));
  }
  size_t unused = 0;
  for (const auto& group : rows.groups)
    for (size_t c = 0; c < group.candidates.size(); ++c)
      for (const size_t run : group.candidates[c].runs)
        unused += group.chosen != c && !rows.runs[run].evaluations.empty();
  if (unused > 0)
    rows.notes.push_back(formatted("saved evaluations of {} not chosen",
                                   unused == 1 ? "a run that was" : formatted("{} runs that were", unused)));
}

std::string status_of(const Rows& rows, const Cell& cell) {
  if (!cell.runs.empty()) return "done";
  const auto& candidates = rows.groups[cell.group].candidates;
  const bool any =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return !c.runs.empty(); });
  return any ? "none chosen" : "diverged";
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

}  // namespace sb
