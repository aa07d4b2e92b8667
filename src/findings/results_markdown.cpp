// Prints the results table.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "findings/page_text.h"
#include "findings/results_table.h"

namespace sb {
namespace {

// Whether an interval contains every accuracy.
bool says_nothing(const Interval& interval) {
  return interval.low < 0 && interval.high > 1;
}

bool is_cut(const Interval& interval) {
  return leaves_shares(interval) && !says_nothing(interval);
}

std::string superscript(size_t number) {
  static constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out;
  for (const char c : std::to_string(number)) out += digits[c - '0'];
  return out;
}

class Printer {
 public:
  Printer(const ResultsTable& table, bool brief) : table_(table), brief_(brief) {
    for (int task = 1; task <= result_tasks; ++task)
      for (const ResultColumn column : result_columns)
        if (const ResultPlace place{task, column}; shown(place)) places_.push_back(place);
  }

  std::string text() {
    if (places_.empty()) return "No runs yet.\n";
    std::string out = "| model |", rule = "|---|";
    int task = 0;
    for (const ResultPlace& place : places_) {
      out +=
          formatted(" {}{} |", place.first != task ? formatted("task {}: ", place.first) : "", to_string(place.second));
      rule += "---:|";
      task = place.first;
    }
    out += "\n" + rule + "\n";
    for (const auto& row : table_) {
      out += "| " + sb::cell(row.name) + " |";
      for (const ResultPlace& place : places_) {
        const auto it = row.cells.find(place);
        out += " " + cell(it == row.cells.end() ? ResultValue{} : it->second) + " |";
      }
      out += "\n";
    }
    if (const std::string line = grammars_line(); !line.empty()) out += "\n" + line + "\n";
    for (const ResultColumn column : {ResultColumn::reproduced, ResultColumn::corrected})
      if (const std::string line = settings_line(column); !line.empty()) out += "\n" + line + "\n";
    for (size_t i = 0; i < footnotes_.size(); ++i)
      out += formatted("\n{} {}\n", superscript(i + 1), sb::cell(footnotes_[i]));
    return out;
  }

 private:
  bool measured(const ResultPlace& place) const {
    return std::any_of(table_.begin(), table_.end(), [&](const ResultRow& row) {
      const auto it = row.cells.find(place);
      return it != row.cells.end() && (it->second.accuracy || !it->second.footnotes.empty());
    });
  }

  // Shows the paper's figures only for tasks with other figures.
  bool shown(const ResultPlace& place) const {
    if (place.second != ResultColumn::paper || !measured(place)) return measured(place);
    return measured({place.first, ResultColumn::reproduced}) || measured({place.first, ResultColumn::corrected});
  }

  std::string cell(const ResultValue& value) {
    std::string out = value.accuracy ? share(*value.accuracy) : "–";
    if (!brief_ && value.accuracy && value.interval) {
      const Interval &full = *value.interval, cut = within_shares(full);
      out += says_nothing(full)    ? formatted(", {} to {}", share(value.range.low), share(value.range.high))
             : leaves_shares(full) ? formatted(" [{}, {}]", share(cut.low), share(cut.high))
                                   : " ± " + share((cut.high - cut.low) / 2);
    }
    if (!brief_ && value.accuracy && !value.grammars.empty()) out += formatted(" ({})", value.grammars.size());
    std::set<size_t> numbers;
    for (const auto& text : value.footnotes) {
      const auto at = std::find(footnotes_.begin(), footnotes_.end(), text);
      numbers.insert(static_cast<size_t>(at - footnotes_.begin()) + 1);
      if (at == footnotes_.end()) footnotes_.push_back(text);
    }
    std::vector<std::string> marks;
    for (const size_t number : numbers) marks.push_back(superscript(number));
    return out + joined(marks, " ");
  }

  // "*Corrected* runs use learning rate 0.004 (GLA: 0.002), on task 3 0.008, and residual `post` (Transformer: `pre`)."
  std::string settings_line(ResultColumn column) const {
    const auto line = [&](std::string ResultValue::*setting, const char* quote, const std::vector<int>& tasks) {
      std::map<std::string, std::vector<std::string>> models;
      for (const auto& row : table_)
        for (const auto& [place, value] : row.cells)
          if (place.second == column && !(value.*setting).empty() &&
              std::find(tasks.begin(), tasks.end(), place.first) != tasks.end()) {
            auto& names = models[value.*setting];
            if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
          }
      if (models.empty()) return std::string();
      const auto most = std::max_element(
          models.begin(), models.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      std::vector<std::string> others;
      for (const auto& [text, names] : models)
        if (text != most->first) others.push_back(joined(names, ", ") + ": " + quote + text + quote);
      return quote + most->first + quote + (others.empty() ? "" : " (" + joined(others, "; ") + ")");
    };
    std::vector<std::pair<std::string, std::vector<int>>> by_task;  // tasks with the same learning rates
    for (int task = 1; task <= result_tasks; ++task) {
      const std::string text = line(&ResultValue::lr, "", {task});
      if (text.empty()) continue;
      auto at = std::find_if(by_task.begin(), by_task.end(), [&](const auto& one) { return one.first == text; });
      if (at == by_task.end()) at = by_task.insert(by_task.end(), {text, {}});
      at->second.push_back(task);
    }
    if (by_task.empty()) return "";
    std::vector<int> tasks;
    std::vector<std::string> rates;
    for (const auto& [text, own] : by_task) {
      tasks.insert(tasks.end(), own.begin(), own.end());
      std::vector<std::string> numbers;
      for (const int task : own) numbers.push_back(std::to_string(task));
      rates.push_back(by_task.size() == 1
                          ? text
                          : formatted("{} on task{} {}", text, own.size() == 1 ? "" : "s", and_list(numbers)));
    }
    const std::string lr = and_list(rates);
    const bool mixed = std::any_of(table_.begin(), table_.end(), [&](const ResultRow& row) {
      return std::any_of(row.cells.begin(), row.cells.end(),
                         [&](const auto& cell) { return cell.first.second == column && cell.second.mixed_rates; });
    });
    return formatted("*{}* runs use learning rate {}{} and [residual]({}configs.md#residuals) {}.",
                     capitalised(to_string(column)), lr, mixed ? ", unless a footnote gives another," : "",
                     brief_ ? "docs/" : "", line(&ResultValue::residual, "`", tasks));
  }

  bool has_interval(bool (*is)(const Interval&)) const {
    return std::any_of(table_.begin(), table_.end(), [&](const ResultRow& row) {
      return std::any_of(row.cells.begin(), row.cells.end(),
                         [is](const auto& cell) { return cell.second.interval && is(*cell.second.interval); });
    });
  }

  std::string grammars_line() const {
    size_t fewest = 0, most = 0;
    bool alike = true;
    for (const ResultPlace& place : places_) {
      const std::set<std::string>* first = nullptr;
      for (const auto& row : table_) {
        const auto it = row.cells.find(place);
        if (it == row.cells.end() || it->second.grammars.empty()) continue;
        const auto& grammars = it->second.grammars;
        fewest = fewest == 0 ? grammars.size() : std::min(fewest, grammars.size());
        most = std::max(most, grammars.size());
        alike &= !first || *first == grammars;
        first = &grammars;
      }
    }
    if (most == 0) return "";
    std::string out = !brief_          ? "In brackets: the number of grammars"
                      : most == 1      ? "Measured on one grammar"
                      : fewest == most ? formatted("Means over {} grammars", most)
                                       : formatted("Means over {} to {} grammars", fewest, most);
    out += alike ? ", the same for all rows of a column." : "; not all rows of a column have the same.";
    const bool paper = std::any_of(places_.begin(), places_.end(),
                                   [](const ResultPlace& place) { return place.second == ResultColumn::paper; });
    if (brief_) return paper ? out + " The paper's numbers are means over four." : out;
    return out + " ± is half of the 95 % interval over at least three grammars" +
           (paper ? ", or under *paper* the paper's own ±" : "") +
           (has_interval(is_cut) ? ". Square brackets hold an interval that is cut at 0 or 1" : "") +
           (has_interval(says_nothing) ? ". If the interval would contain every accuracy, the cell shows the lowest "
                                         "and the highest grammar instead."
                                       : ".");
  }

  const ResultsTable& table_;
  bool brief_;
  std::vector<ResultPlace> places_;
  std::vector<std::string> footnotes_;
};

}  // namespace

const char* to_string(ResultColumn column) {
  static constexpr const char* names[] = {"paper", "reproduced", "corrected"};
  return names[static_cast<size_t>(column)];
}

std::string results_markdown(const ResultsTable& table) {
  return Printer(table, false).text();
}

std::string networks_markdown(const ResultsTable& table) {
  std::string lines;
  for (const auto& row : table) {
    const auto cell = std::find_if(row.cells.begin(), row.cells.end(), [](const auto& each) {
      return each.first.second == ResultColumn::corrected && !each.second.network.empty();
    });
    if (cell != row.cells.end()) lines += formatted("| {} | {} |\n", row.name, joined(cell->second.network, " | "));
  }
  if (lines.empty()) return "";
  return "| model | width | parameters | state per layer | residual | output gate |\n|---|---:|---:|---:|---|---|\n" +
         lines;
}

std::string short_results_markdown(const ResultsTable& table) {
  return Printer(table, true).text();
}

}  // namespace sb
