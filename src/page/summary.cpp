#include "page/summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/verdict.h"
#include "report/cells.h"
#include "report/layout.h"
#include "report/order.h"

namespace sb {

using ByGrammar = std::map<std::vector<std::string>, double>;

Estimate paired_difference(const ByGrammar& a, const ByGrammar& b) {
  std::vector<double> differences;
  for (const auto& [grammar, value] : a)
    if (const auto other = b.find(grammar); other != b.end()) differences.push_back(value - other->second);
  return estimate(differences);
}

std::string interval_text(const PageColumn& column, const std::optional<Interval>& interval) {
  if (!interval) return "";
  return formatted("[{}, {}]", difference_text(column, interval->low), difference_text(column, interval->high));
}

std::string p_text(std::optional<double> p) {
  return !p ? "–" : *p < .001 ? "< 0.001" : fixed(*p, 3);
}

namespace {

PageCell plain_cell(const Outline& outline, size_t index) {
  const Cell& cell = outline.rows.cells[index];
  const auto [series, column] = outline.cells[index];
  PageCell out;
  out.series = outline.series[series].id;
  out.column = outline.columns[column].id;
  out.n_gram_text = outline.columns[column].n_gram_text;
  out.ceiling_text = outline.columns[column].ceiling_text;
  out.fraction_text = "–";
  out.chance_text = cell.chance ? fixed(*cell.chance, 3) : "–";
  out.runs = outline.keys_of(cell.runs);
  out.grammars = cell.grammars;
  out.seeds = static_cast<int64_t>(cell.runs.size());
  if (cell.runs.empty()) {
    out.mean_text = status_of(outline.rows, cell);
    out.n_text = "no run";
    return out;
  }
  out.n_text = counted(static_cast<size_t>(cell.grammars), "grammar") + ", " + counted(cell.runs.size(), "run");
  out.mean = cell.mean;
  out.mean_text = fixed(cell.mean, 3);
  if (cell.sd) {
    out.sd_text = fixed(*cell.sd, 3);
    out.sd_over = cell.sd_over;
  }
  if (cell.interval && cell.grammars > 1) {
    const Interval interval = shown_interval(cell);
    out.low = interval.low;
    out.high = interval.high;
    out.interval_text = interval_text(cell);
  }
  if (cell.n_gram) out.n_gram_text = formatted("{} (n {})", fixed(*cell.n_gram, 3), n_text(cell.n_least, cell.n_most));
  if (const auto& figure = cell.ceiling_exact ? cell.ceiling : cell.upper_bound)
    out.ceiling_text = (cell.squared ? "≥ " : cell.ceiling_exact ? "" : "≤ ") + fixed(*figure, 3);
  if (!cell.squared && cell.ceiling && cell.ceiling_exact && *cell.ceiling > 0) {
    out.fraction = cell.mean / *cell.ceiling;
    out.fraction_text = fixed(*out.fraction * 100, 1) + " %";
  }
  if (cell.paper) {
    out.paper = cell.paper->accuracy;
    out.paper_text = fixed(cell.paper->accuracy, 2) + " ± " + shortest(cell.paper->spread);
    out.difference = cell.mean - cell.paper->accuracy;
    out.difference_text = points_text(*out.difference);
    if (out.low && (cell.paper->accuracy < *out.low || cell.paper->accuracy > *out.high))
      out.marks.push_back({"paper_outside", "the paper's figure lies outside the interval"});
  }
  if (cell.ceiling && !cell.ceiling_exact)
    out.marks.push_back({"inexact", "noise hides symbols: the ceiling is only an upper bound"});
  return out;
}

void mark_missing(const Outline& outline, size_t index, const std::map<size_t, MissingCounts>& missing, PageCell& out) {
  const Cell& cell = outline.rows.cells[index];
  const Group& group = outline.rows.groups[cell.group];
  if (cell.diverged > 0)
    out.marks.push_back({"diverged", counted(cell.diverged, "run") + " diverged, excluded from the mean"});
  std::vector<std::string> parts;
  if (const auto at = missing.find(cell.group); at != missing.end()) {
    if (at->second.unfinished > 0) parts.push_back(counted(at->second.unfinished, "run") + " not finished");
    if (at->second.damaged > 0) parts.push_back(counted(at->second.damaged, "run") + " damaged");
    if (at->second.other > 0) parts.push_back(counted(at->second.other, "run") + " of another version");
  }
  if (group.chosen) {
    const size_t absent = group.candidates[*group.chosen].missing.size();
    if (absent > 0) parts.push_back(counted(absent, "seed") + " of other settings not run");
    if (cell.runs.size() < group.averaged.size())
      parts.push_back(formatted("measured in {} of {} runs", cell.runs.size(), group.averaged.size()));
  }
  if (!parts.empty()) out.marks.push_back({"missing", joined(parts, "; ")});
}

// Whether networks and training have similar sizes in all cells. Otherwise marking the best says little about models.
bool one_scale(const Outline& outline, const std::vector<size_t>& indices) {
  constexpr double most_ratio = 4;
  int64_t least = INT64_MAX, most = 0;
  std::set<std::pair<std::string, std::string>> training;
  for (const size_t index : indices) {
    const Cell& cell = outline.rows.cells[index];
    if (cell.runs.empty()) continue;
    const Group& group = outline.rows.groups[cell.group];
    training.emplace(group.value("train.updates"), group.value("train.batch"));
    const int64_t params = outline.rows.runs[cell.runs.front()].result.params;
    least = std::min(least, params);
    most = std::max(most, params);
  }
  return training.size() <= 1 && static_cast<double>(most) <= most_ratio * static_cast<double>(least);
}

// Tests each cell against the best mean of the column: paired over grammars, with Holm's correction over the column. A
// mean over fewer grammars than others is not comparable: it is marked and cannot be the best.
void mark_best(const Outline& outline, size_t column, std::vector<PageCell*>& cells) {
  const auto& indices = outline.column_cells[column];
  std::vector<ByGrammar> values(cells.size());
  std::set<std::vector<std::string>> grammars;
  size_t measured = 0, most = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i]->mean) continue;
    values[i] = means_by_grammar(outline.rows, outline.rows.cells[indices[i]]);
    for (const auto& [grammar, value] : values[i]) grammars.insert(grammar);
    most = std::max(most, values[i].size());
    ++measured;
  }
  if (measured < 2 || !one_scale(outline, indices)) return;
  const PageColumn& place = outline.columns[column];
  const double sign = place.squared ? -1 : 1;  // of better
  const std::string highest = place.squared ? "lowest mean of the column" : "highest mean of the column";
  size_t best = cells.size();
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells[i]->mean && values[i].size() == most &&
        (best == cells.size() || sign * *cells[i]->mean > sign * *cells[best]->mean))
      best = i;
  bool uneven = false;
  for (size_t i = 0; i < cells.size(); ++i) uneven |= cells[i]->mean && values[i].size() < grammars.size();
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i]->mean || !uneven) continue;
    cells[i]->uneven_text = "n = " + std::to_string(values[i].size());
    if (values[i].size() < grammars.size())
      cells[i]->marks.push_back({"fewer_grammars", formatted("mean over {} of the column's {} grammars, not comparable "
                                                             "with means over others; paired differences are",
                                                             values[i].size(), grammars.size())});
  }
  cells[best]->best = true;
  cells[best]->marks.push_back({"best", uneven ? formatted("{} over {}", highest, counted(most, "grammar")) : highest});
  const ByGrammar& of_best = values[best];
  const std::string name = outline.series[outline.cells[indices[best]].series].name;
  std::vector<size_t> others;
  std::vector<Estimate> differences;
  std::vector<std::optional<double>> p;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i == best || !cells[i]->mean) continue;
    others.push_back(i);
    differences.push_back(paired_difference(values[i], of_best));
    p.push_back(differences.back().p_against(0));
  }
  const auto steps = holm(p, family_error);
  for (size_t k = 0; k < others.size(); ++k) {
    if (differences[k].n == 0) continue;
    PageCell& cell = *cells[others[k]];
    VersusBest versus;
    versus.difference = differences[k].mean;
    versus.difference_text = difference_text(place, versus.difference);
    versus.interval_text = interval_text(place, differences[k].interval(family_error));  // by itself, as in Compare
    versus.p = p[k];
    versus.p_text = p_text(p[k]);
    versus.significant = steps[k].decided;
    versus.n = differences[k].n;
    if (versus.n >= 2) {
      const bool below = versus.significant && sign * differences[k].mean < 0;
      cell.marks.push_back({below ? "worse" : "tied",
                            formatted("{} {}, the best of the column: {}{}, p {} before correction",
                                      below ? place.squared ? "significantly above" : "significantly below"
                                      : versus.significant ? place.squared ? "significantly below on common grammars"
                                                                           : "significantly above on common grammars"
                                                           : "not significantly different from",
                                      name, versus.difference_text, place.squared ? "" : " points", versus.p_text)});
    }
    cell.versus_best = std::move(versus);
  }
}

constexpr const char* shared_mark = " (shared)";

SummaryRow summary_row(const Outline& outline, size_t series) {
  SummaryRow out;
  out.series = outline.series[series].id;
  Range params, states;
  std::set<std::string> precisions;
  bool grows = false, unknown = false;
  Range alone, shared;  // of runs that had the device to themselves, as far as is known, and of others
  for (size_t run = 0; run < outline.rows.runs.size(); ++run) {
    if (outline.series_of_group[outline.rows.group_of[run]] != series) continue;
    const Result& r = outline.rows.runs[run].result;
    params.add(static_cast<double>(r.params));
    if (r.state_size) states.add(static_cast<double>(*r.state_size));
    (is_external(r) ? unknown : grows) |= !r.state_size;
    precisions.insert(r.precision);
    if (r.made && r.made->tokens_per_second)
      (r.made->shared_by.value_or(1) > 1 ? shared : alone).add(*r.made->tokens_per_second);
  }
  if (params.low) out.params = static_cast<int64_t>(*params.low);
  out.params_text = params.text(amount, "–");
  if (!grows && !unknown && states.low) out.state = static_cast<int64_t>(*states.low);
  out.state_text = unknown ? "–" : grows ? "grows" : states.text(amount, "–");
  out.precision_text = joined(precisions, ", ");
  out.speed_text = "–";
  if (const Range& timed = alone.n > 0 ? alone : shared; timed.n > 0) {
    out.speed = timed.mean();
    out.speed_text = grouped(static_cast<uint64_t>(std::llround(*out.speed))) + (alone.n > 0 ? "" : shared_mark);
  }
  return out;
}

}  // namespace

void add_summary(const Outline& outline, PageData& data) {
  for (size_t s = 0; s < outline.series.size(); ++s) data.summary.push_back(summary_row(outline, s));
  const auto missing = missing_by_group(outline);
  size_t most_grammars = 0;
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    const size_t first = data.cells.size();
    for (const size_t index : outline.column_cells[c]) {
      data.cells.push_back(plain_cell(outline, index));
      mark_missing(outline, index, missing, data.cells.back());
      most_grammars = std::max(most_grammars, static_cast<size_t>(data.cells.back().grammars));
    }
    std::vector<PageCell*> cells;
    for (size_t i = first; i < data.cells.size(); ++i) cells.push_back(&data.cells[i]);
    mark_best(outline, c, cells);
  }
  bool cut = false, uneven = false, several_scales = false;
  for (const auto& indices : outline.column_cells) several_scales |= !one_scale(outline, indices);
  for (const auto& cell : data.cells) {
    cut |= cell.interval_text.starts_with('[') && (cell.low == 0.0 || cell.high == 1.0);
    uneven |= !cell.uneven_text.empty();
  }
  data.caption = caption_of(
      outline.rows, outline.labels,
      most_grammars > 1 ? "mean ± half of its 95 % interval over grammars (a cell of one grammar has none)" : "");
  if (most_grammars > 1)
    data.caption.push_back(
        "Intervals: 95 %, Student's t over grammars; runs that share a grammar are averaged first. Marks of "
        "significance test paired differences from the best mean of the column on common grammars, with Holm's "
        "correction over the column at 5 %. \"Every cell\" also shows the uncorrected 95 % interval and p of each "
        "difference, as Compare does: a difference whose interval excludes 0 need not be significant after "
        "correction.");
  else if (most_grammars == 1)
    data.caption.push_back(
        "Each cell has one grammar, so there is neither an interval nor a test. Runs with several grammar seeds give "
        "both.");
  if (std::any_of(data.summary.begin(), data.summary.end(),
                  [](const SummaryRow& row) { return row.speed_text.ends_with(shared_mark); }))
    data.caption.push_back(
        "Tokens/s come from runs that had their device to themselves. \"(shared)\": all runs of the row shared it with "
        "other runs of their suite.");
  if (several_scales)
    data.caption.push_back(
        "No best is marked in a column whose networks differ more than fourfold in parameters, or were trained on "
        "different numbers of samples.");
  if (cut)
    data.caption.push_back(
        "Intervals are clipped to accuracies from 0 to 1. Clipped intervals are shown with both ends.");
  if (uneven)
    data.caption.push_back(
        "Some cells have fewer grammars (n) than others of their column. The best of a column is the best mean among "
        "the cells with the most grammars. Differences are taken on common grammars only.");
}

void add_compare(const Outline& outline, PageData& data) {
  constexpr size_t most_series = 40;
  PageCompare& out = data.compare;
  const auto squared = [](const PageColumn& column) { return column.squared; };
  const bool any = std::any_of(outline.columns.begin(), outline.columns.end(), squared);
  const bool all = any && std::all_of(outline.columns.begin(), outline.columns.end(), squared);
  out.text = formatted(
      "Differences a − b {} on common grammars; runs that share a grammar are averaged first. Interval and p: "
      "Student's t on these differences, without correction for multiple comparisons. The marks of the summary use "
      "Holm's correction over a column.",
      all   ? "of squared errors"
      : any ? "in points of accuracy, or of squared errors,"
            : "in points of accuracy");
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    std::vector<size_t> cells;
    for (const size_t index : outline.column_cells[c])
      if (!outline.rows.cells[index].runs.empty()) cells.push_back(index);
    if (cells.empty()) continue;
    CompareColumn column;
    column.column = outline.columns[c].id;
    std::map<std::vector<std::string>, std::string> grammars;
    std::vector<ByGrammar> values;
    for (const size_t index : cells) {
      values.push_back(means_by_grammar(outline.rows, outline.rows.cells[index]));
      for (const auto& [grammar, value] : values.back()) {
        std::vector<std::string> shown;
        for (const auto& part : grammar) shown.push_back(part.empty() ? "given" : plain_value(part));
        grammars[grammar] = "grammar " + joined(shown, "/");
      }
    }
    std::vector<std::vector<std::string>> order;
    for (const auto& [grammar, name] : grammars) order.push_back(grammar);
    std::sort(order.begin(), order.end(), less_all);
    for (const auto& grammar : order) column.grammars.push_back(grammars[grammar]);
    for (size_t i = 0; i < cells.size(); ++i) {
      GrammarValues one{outline.series[outline.cells[cells[i]].series].id, {}, {}};
      for (const auto& grammar : order) {
        const auto at = values[i].find(grammar);
        one.mean.push_back(at == values[i].end() ? std::nullopt : std::optional(at->second));
        one.text.push_back(at == values[i].end() ? "–" : fixed(at->second, 3));
      }
      column.values.push_back(std::move(one));
    }
    const bool every_pair = cells.size() <= most_series;
    if (!every_pair)
      out.note = formatted(
          "Columns with more than {} rows have only the differences between settings of one model and from the best "
          "mean.",
          most_series);
    const double sign = outline.columns[c].squared ? -1 : 1;
    size_t best = 0;
    for (size_t i = 0; i < cells.size(); ++i)
      if (sign * outline.rows.cells[cells[i]].mean > sign * outline.rows.cells[cells[best]].mean) best = i;
    for (size_t i = 0; i < cells.size(); ++i)
      for (size_t k = i + 1; k < cells.size(); ++k) {
        const PageSeries &a = outline.series[outline.cells[cells[i]].series],
                         &b = outline.series[outline.cells[cells[k]].series];
        if (!every_pair && a.model != b.model && i != best && k != best) continue;
        const Estimate difference = paired_difference(values[i], values[k]);
        if (difference.n == 0) continue;
        const auto interval = difference.interval(family_error);
        const auto p = difference.p_against(0);
        PairedDifference pair{a.id,
                              b.id,
                              difference.n,
                              difference.mean,
                              {},
                              {},
                              p,
                              difference_text(outline.columns[c], difference.mean),
                              interval_text(outline.columns[c], interval),
                              p_text(p)};
        if (interval) {
          pair.low = interval->low;
          pair.high = interval->high;
        }
        column.pairs.push_back(std::move(pair));
      }
    out.columns.push_back(std::move(column));
  }
}

}  // namespace sb
