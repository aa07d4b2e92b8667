#include "report/layout.h"

#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "config/protocol.h"
#include "report/cells.h"
#include "report/order.h"

namespace sb {
namespace {

// Whether cells average different numbers of runs, so that each must show its own.
bool counts_differ(const Rows& rows) {
  std::set<std::pair<size_t, int64_t>> counts;
  for (const auto& cell : rows.cells)
    if (!cell.runs.empty()) counts.emplace(cell.runs.size(), cell.grammars);
  return counts.size() > 1;
}

// Whether a saved evaluation has a column of its own.
bool several_splits(const Rows& rows) {
  return std::any_of(rows.cells.begin(), rows.cells.end(), [](const Cell& cell) { return !cell.point.split.empty(); });
}

// Whether there are saved evaluations, so that columns must name what they measure.
bool saved_among(const Rows& rows) {
  return std::any_of(rows.groups.begin(), rows.groups.end(), [&](const Group& group) {
    return std::any_of(group.averaged.begin(), group.averaged.end(),
                       [&](size_t run) { return shows_saved(rows.runs[run]); });
  });
}

// The selected axes whose chosen value differs between groups.
std::vector<size_t> open_settings(const Rows& rows) {
  std::vector<size_t> out;
  for (size_t i = 0; i < rows.axes.select.size(); ++i) {
    std::set<std::string> values;
    for (const auto& group : rows.groups)
      if (group.chosen) values.insert(group.candidates[*group.chosen].settings[i]);
    if (values.size() > 1) out.push_back(i);
  }
  return out;
}

std::string cell_text(const Rows& rows, const Cell& cell, bool count) {
  if (cell.runs.empty()) return status_of(rows, cell);
  std::string out = fixed(cell.mean, 3);
  if (const std::string interval = interval_text(cell); !interval.empty()) out += " " + interval;
  if (count && cell.grammars > 1 && cell.grammars < static_cast<int64_t>(cell.runs.size())) {
    out += formatted(" ({}, {} grammars)", cell.runs.size(), cell.grammars);
  } else if (count) {
    out += formatted(" ({})", cell.runs.size());
  }
  if (cell.diverged > 0) out += formatted(", {} diverged", cell.diverged);
  return out;
}

class CellSheet {
 public:
  CellSheet(const Rows& rows, const Labels& labels)
      : rows_(rows),
        labels_(labels),
        open_(open_settings(rows)),
        count_(counts_differ(rows)),
        saved_(saved_among(rows)) {
    for (size_t i = 0; i < rows.cells.size(); ++i) {
      const Cell& cell = rows.cells[i];
      const Group& group = rows.groups[cell.group];
      cells_[labels.row_values(group)][{labels.column_values(group), cell.point}] = i;
      columns_[{labels.column_values(group), cell.point}].push_back(i);
    }
  }

  Sheet make() {
    label_columns();
    foot_.assign(4, std::vector<std::string>(sheet_.columns.size()));
    foot_[kCeiling][0] = "ceiling";
    foot_[kBound][0] = "bound";
    foot_[kChance][0] = "chance";
    int block = 0;
    for (const auto& [key, cells] : columns_) value_columns(key, cells, ++block);
    for (const auto& [values, line] : cells_) sheet_.rows.push_back(row(line));
    if (n_.low) foot_[kNgram][0] = "n-gram " + n_text(static_cast<int>(*n_.low), static_cast<int>(*n_.high));
    const bool accuracies = !std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.squared; });
    for (const Foot line : {kNgram, kCeiling, kBound, kChance})
      if (line == kNgram ? n_.low.has_value() : line == kBound ? has_figures(foot_[kBound]) : accuracies)
        sheet_.foot.push_back(foot_[line]);
    sheet_.head = head_of(rows_);
    sheet_.caption = caption_of(rows_, labels_);
    add_notes(sheet_, rows_);
    return std::move(sheet_);
  }

 private:
  using Line = std::map<ColumnKey, size_t, ColumnOrder>;
  enum Foot { kNgram, kCeiling, kBound, kChance };  // kBound: of squared errors

  // Whether a line has more than its name.
  static bool has_figures(const std::vector<std::string>& line) {
    return std::any_of(line.begin() + 1, line.end(), [](const std::string& text) { return !text.empty(); });
  }

  void label_columns() {
    for (const auto& axis : labels_.rows) sheet_.columns.push_back({{axis.name()}, left_aligned(axis), 0});
    sheet_.columns.push_back({{"params"}, false, 0});
    sheet_.columns.push_back({{"state", "per layer"}, false, 0});
  }

  bool any(const std::vector<size_t>& cells, bool (*has)(const Cell&)) const {
    return std::any_of(cells.begin(), cells.end(), [&](size_t i) { return has(rows_.cells[i]); });
  }

  // "test, 1000 samples" or "test, 40 or 1000 samples"; omits the samples if they differ within a cell.
  std::string measured_line(const std::vector<size_t>& cells) const {
    std::set<std::string> splits;
    std::set<int64_t> samples;
    for (const size_t i : cells) {
      if (rows_.cells[i].runs.empty()) continue;
      splits.insert(rows_.cells[i].split);
      samples.insert(rows_.cells[i].samples);
    }
    if (splits.empty()) return "";
    const std::string split = printable(joined(splits, " or "));
    return samples.contains(0) ? split : formatted("{}, {} samples", split, joined(samples, " or "));
  }

  // Adds the columns of one measurement: mean, chosen settings if they differ, and the paper's figure.
  void value_columns(const ColumnKey& key, const std::vector<size_t>& cells, int block) {
    std::vector<std::string> header = labels_.column_lines(rows_.groups[rows_.cells[cells[0]].group]);
    for (const auto& line : point_lines(key.point)) header.push_back(line);
    const bool squared = any(cells, [](const Cell& c) { return c.squared; });
    if (squared) header.emplace_back("squared error");
    if (saved_ && key.point.split.empty()) {
      const std::string line = measured_line(cells);
      if (!line.empty()) header.push_back(line);
    }
    sheet_.columns.push_back({header, false, block});
    Part part{&key, any(cells, [](const Cell& c) { return c.kl.has_value(); }),
              any(cells, [](const Cell& c) { return c.paper.has_value(); }), squared};
    Range n_gram, ceiling, chance, divergence;
    bool exact = true;
    for (const size_t i : cells) {
      const Cell& cell = rows_.cells[i];
      if (const auto& figure = cell.ceiling_exact ? cell.ceiling : cell.upper_bound) ceiling.add(*figure);
      if (cell.chance) chance.add(*cell.chance);
      if (cell.n_gram) {
        n_gram.add(*cell.n_gram);
        n_.add(cell.n_least);
        n_.add(cell.n_most);
      }
      if (cell.kl_bound) divergence.add(*cell.kl_bound);
      exact &= cell.ceiling_exact;
    }
    const auto digits = [](double v) { return fixed(v, 3); };
    foot_[kNgram].push_back(n_gram.text(digits));
    foot_[kCeiling].push_back(squared ? "" : (!ceiling.low || exact ? "" : "≤ ") + ceiling.text(digits));
    foot_[kBound].push_back(squared && ceiling.low ? "≥ " + ceiling.text(digits) : "");
    foot_[kChance].push_back(chance.text(digits));
    const auto beside = [&](const std::string& name) {
      sheet_.columns.push_back({{name}, false, block});
      for (auto& line : foot_) line.emplace_back();
    };
    if (part.kl) beside("KL, nats");
    if (part.kl && divergence.low)
      foot_[kCeiling].back() = "≥ " + divergence.text([](double v) { return fixed(v, 4); });
    if (key.point == Point{})
      for (const size_t axis : open_) beside(short_name(config_key(rows_.axes.select[axis])));
    if (part.paper) beside("paper");
    parts_.push_back(part);
  }

  std::vector<std::string> row(const Line& line) const {
    const Group& first = rows_.groups[rows_.cells[line.begin()->second].group];
    std::vector<std::string> out;
    for (const auto& axis : labels_.rows) out.push_back(axis.text(first));
    Range params, state;
    bool grows = false, unknown = false;
    for (const auto& [key, i] : line)
      for (const auto& candidate : rows_.groups[rows_.cells[i].group].candidates)
        for (const auto* runs : {&candidate.runs, &candidate.diverged})
          for (const size_t run : *runs) {
            const Result& r = rows_.runs[run].result;
            params.add(static_cast<double>(r.params));
            (is_external(r) ? unknown : grows) |= !r.state_size;
            if (r.state_size) state.add(static_cast<double>(*r.state_size));
          }
    out.push_back(params.text(amount));
    out.push_back(unknown ? "–" : grows ? "grows" : state.text(amount));
    for (const auto& part : parts_) {
      const auto it = line.find(*part.key);
      const Cell* cell = it == line.end() ? nullptr : &rows_.cells[it->second];
      const Group* group = cell ? &rows_.groups[cell->group] : nullptr;
      out.push_back(cell ? cell_text(rows_, *cell, count_) : "");
      if (part.kl) out.push_back(cell && cell->kl ? fixed(*cell->kl, 4) : "");
      if (part.key->point == Point{})
        for (const size_t axis : open_)
          out.push_back(group && group->chosen ? shown_value(group->candidates[*group->chosen].settings[axis]) : "");
      if (part.paper)
        out.push_back(cell && cell->paper ? fixed(cell->paper->accuracy, 2) + " ± " + shortest(cell->paper->spread)
                                          : "");
    }
    return out;
  }

  struct Part {
    const ColumnKey* key;
    bool kl, paper, squared;
  };

  const Rows& rows_;
  const Labels& labels_;
  std::vector<size_t> open_;
  bool count_, saved_;
  Range n_;  // of all n-grams
  std::map<std::vector<std::string>, Line, RowOrder> cells_;
  std::map<ColumnKey, std::vector<size_t>, ColumnOrder> columns_;
  std::vector<Part> parts_;
  std::vector<std::vector<std::string>> foot_;
  Sheet sheet_;
};

std::string capital(std::string text) {
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// The meaning of ± in all tables.
constexpr const char* kHalf = "half of the 95 % interval";

std::string averaging_text(const Rows& rows) {
  std::set<std::pair<size_t, int64_t>> counts;
  for (const auto& cell : rows.cells)
    if (!cell.runs.empty()) counts.emplace(cell.runs.size(), cell.grammars);
  if (counts.empty()) return "no figure";
  std::set<std::string> grammar_axes, others;  // what the spread is over
  for (const auto& cell : rows.cells)
    if (cell.sd) (cell.grammars > 1 ? grammar_axes : others).insert(cell.sd_over);
  const auto either = [](const std::set<std::string>& names) { return joined(names, " or "); };
  if (counts.size() > 1) {
    if (grammar_axes.empty() && others.empty()) return "mean; in brackets, the number of runs";
    std::string over = grammar_axes.empty() ? "" : "over " + either(grammar_axes);
    if (!others.empty())
      over += grammar_axes.empty() ? "over " + either(others) : " if there are several, else over " + either(others);
    return formatted("mean ± {} {}; in brackets, the number of runs", kHalf, over);
  }
  const auto [n, grammars] = *counts.begin();
  if (n == 1) return "one run per cell, so no spread";
  if (grammars == 1 && others == std::set<std::string>{"train seeds"})
    return formatted("mean ± {} over {} train seeds", kHalf, n);
  if (grammars == 1) return formatted("mean of {} runs ± {} over {}", n, kHalf, either(others));
  if (grammar_axes != std::set<std::string>{"grammars"})
    return formatted("mean of {} runs ± {} over the means of {}", n, kHalf, either(grammar_axes));
  if (grammars == static_cast<int64_t>(n)) return formatted("mean ± {} over {} grammars, one run each", kHalf, n);
  return formatted("mean of {} runs on {} grammars ± {} over the grammars' means", n, grammars, kHalf);
}

}  // namespace

bool is_external(const Result& result) {
  return result.model.ends_with(" (external)");
}

std::vector<std::string> head_of(const Rows& rows) {
  constexpr size_t most = 8;
  struct Kind {
    const std::vector<std::string>& names;
    const char *what, *title;
  };
  const Kind kinds[] = {{rows.missing, "not finished", "Not finished"},
                        {rows.damaged, "damaged", "Damaged"},
                        {rows.untested, "without a test accuracy", "Without a test accuracy (not finite)"},
                        {rows.other_schema, "of another result schema", "Of another result schema"}};
  size_t all = rows.runs.size();
  std::vector<std::string> counts, lines;
  for (const auto& [names, what, title] : kinds) {
    const size_t n = names.size(), shown = std::min(most, n);
    if (n == 0) continue;
    all += n;
    counts.push_back(formatted("{} {}", n == 1 ? "1 is" : formatted("{} are", n), what));
    const std::vector<std::string> first(names.begin(), names.begin() + static_cast<long>(shown));
    lines.push_back(
        formatted("{}: {}{}.", title, joined(first, "; "), shown < n ? formatted(" and {} more", n - shown) : ""));
  }
  if (!counts.empty())
    lines.insert(lines.begin(),
                 formatted("{} of {} run{}: {}.", rows.runs.size(), all, all == 1 ? "" : "s", joined(counts, ", ")));
  const auto wrong = above_ceiling(rows);
  for (size_t i = 0; i < std::min(most, wrong.size()); ++i)
    lines.push_back("Above its ceiling by more than four standard errors, which is impossible for a causal model: " +
                    wrong[i]);
  if (wrong.size() > most) lines.push_back(formatted("Above its ceiling: {} more.", wrong.size() - most));
  return lines;
}

void add_notes(Sheet& sheet, const Rows& rows) {
  const auto end = rows.notes.begin() + static_cast<long>(rows.choice_notes);
  sheet.beneath.assign(rows.notes.begin(), end);
  sheet.notes.assign(end, rows.notes.end());
}

std::vector<std::string> caption_of(const Rows& rows, const Labels& labels, const std::string& averaged) {
  bool predict = !rows.groups.empty();
  for (const auto& group : rows.groups) predict &= group.value("task.objective") == "\"predict\"";
  const auto further = averaged_further(rows);
  const auto squared = static_cast<size_t>(
      std::count_if(rows.cells.begin(), rows.cells.end(), [](const Cell& cell) { return cell.squared; }));
  const std::string metric = squared == 0 ? "accuracy" : squared == rows.cells.size() ? "squared error" : "result";
  const bool paper =
      std::any_of(rows.cells.begin(), rows.cells.end(), [](const Cell& cell) { return cell.paper.has_value(); });
  std::vector<std::string> out = {
      formatted("{}{}: {}.{}{}", several_splits(rows) ? capital(metric) : "Test " + metric,
                predict ? " of the next symbol" : "", averaged.empty() ? averaging_text(rows) : averaged,
                further.empty() ? "" : formatted(" Also averaged over {}.", joined(further, " and ")),
                paper ? " The paper's ± is quoted from the paper." : "")};
  size_t least = SIZE_MAX, most = 0;
  for (const auto& group : rows.groups) {
    least = std::min(least, group.candidates.size());
    most = std::max(most, group.candidates.size());
  }
  const auto open = open_settings(rows);
  std::vector<std::string> names, same;
  for (size_t i = 0; i < rows.axes.select.size(); ++i) {
    std::set<std::string> all;
    for (const auto& group : rows.groups)
      for (const auto& candidate : group.candidates) all.insert(candidate.settings[i]);
    if (all.size() > 1) names.push_back(short_name(config_key(rows.axes.select[i])));
  }
  for (const auto& [axis, value] : shared_settings(rows))
    same.push_back(short_name(config_key(axis)) + " " + shown_value(value));
  if (most > 1) {
    const auto [on_test, all] = chosen_from_by_test(rows);
    out.push_back(formatted("Chosen from {} settings of {} by mean {} over their common seeds.",
                            least == most ? std::to_string(most) : formatted("{} to {}", least, most),
                            joined(names, " and "),
                            on_test == 0     ? "valid " + metric
                            : on_test == all ? metric + " on the test set (select_on_test)"
                                             : "valid " + metric + ", or on the test set if select_on_test is on,"));
  }
  if (const std::string line = protocol_line(rows); !line.empty()) out.push_back(line);
  if (const std::string line = everywhere_line(labels, same); !line.empty()) out.push_back(line);
  if (std::any_of(rows.cells.begin(), rows.cells.end(), [](const Cell& cell) { return cell.n_gram.has_value(); }))
    out.emplace_back(kNgramNote);
  return out;
}

std::string protocol_line(const Rows& rows) {
  std::map<std::string, std::set<std::string>> models;  // by protocol
  for (const auto& run : rows.runs) {
    const std::string label = protocol_label(run.result.config);
    if (!label.empty()) models[label].insert(printable(run.result.model));
  }
  if (models.empty()) return "";
  if (models.size() == 1) return formatted("Protocol: {}.", models.begin()->first);
  std::vector<std::string> parts;
  for (const auto& [label, names] : models) parts.push_back(formatted("{} ({})", label, joined(names, ", ")));
  return formatted("Protocols: {}.", joined(parts, "; "));
}

std::vector<std::pair<std::string, std::string>> shared_settings(const Rows& rows) {
  std::vector<std::pair<std::string, std::string>> out;
  for (size_t i = 0; i < rows.axes.select.size(); ++i) {
    std::set<std::string> chosen;
    for (const auto& group : rows.groups)
      if (group.chosen) chosen.insert(group.candidates[*group.chosen].settings[i]);
    if (chosen.size() == 1 && !chosen.begin()->empty()) out.emplace_back(rows.axes.select[i], *chosen.begin());
  }
  return out;
}

std::string amount(double value) {
  return value >= 1e6   ? fixed(value / 1e6, 2) + " M"
         : value >= 1e4 ? fixed(value / 1e3, 1) + " k"
                        : formatted("{:.0f}", value);
}

bool left_aligned(const LabelAxis& axis) {
  return axis.keys[0] == "model.name" || axis.keys[0] == "run.label" || axis.keys[0] == "quirks";
}

Sheet cell_sheet(const Rows& rows, const Labels& labels) {
  return CellSheet(rows, labels).make();
}

}  // namespace sb
