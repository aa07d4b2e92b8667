// Table with one line per run.

#include <algorithm>
#include <functional>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "report/layout.h"
#include "report/order.h"

namespace sb {
namespace {

struct RunColumn {
  std::string name;
  bool left = false;
  std::function<std::string(size_t)> text;  // of a run
};

class RunSheet {
 public:
  RunSheet(const Rows& rows, const Labels& labels) : rows_(rows), labels_(labels) {}

  Sheet make() {
    what_it_is();
    what_it_found();
    Sheet sheet;
    for (const auto& column : columns_) sheet.columns.push_back({{column.name}, column.left, 0});
    for (const size_t run : ordered_runs(rows_, labels_)) {
      std::vector<std::string> line;
      for (const auto& column : columns_) line.push_back(column.text(run));
      sheet.rows.push_back(std::move(line));
    }
    sheet.head = head_of(rows_);
    if (const std::string line = valid_line(); !line.empty()) sheet.caption.push_back(line);
    if (const std::string line = everywhere_line(labels_); !line.empty()) sheet.caption.push_back(line);
    add_notes(sheet, rows_);
    return sheet;
  }

 private:
  const Result& result(size_t run) const { return rows_.runs[run].result; }
  const Group& group(size_t run) const { return rows_.groups[rows_.group_of[run]]; }

  void add(const std::string& name, std::function<std::string(size_t)> text, bool left = false) {
    columns_.push_back({name, left, std::move(text)});
  }

  void what_it_is() {
    add(
        "run", [this](size_t run) { return printable(result(run).run_id, 64); }, true);
    bool label_shown = false, labelled = false;
    for (const auto* axes : {&labels_.rows, &labels_.columns})
      for (const auto& axis : *axes) {
        label_shown |= axis.keys[0] == "run.label";
        add(
            axis.name(), [this, &axis](size_t run) { return axis.text(group(run)); }, left_aligned(axis));
      }
    bool one_seed = rows_.axes.average.size() == 2;
    for (size_t run = 0; run < rows_.runs.size(); ++run) {
      labelled |= !result(run).label.empty();
      one_seed = one_seed && rows_.seeds[run][0] == rows_.seeds[run][1];
    }
    if (labelled && !label_shown)
      add(
          "label", [this](size_t run) { return shown_value(group(run).value("run.label")); }, true);
    for (size_t i = 0; i < rows_.axes.average.size() && !(one_seed && i > 0); ++i)
      add(one_seed ? "seed" : short_name(config_key(rows_.axes.average[i])),
          [this, i](size_t run) { return shown_value(rows_.seeds[run][i]); });
    for (size_t i = 0; i < rows_.axes.select.size(); ++i)
      add(short_name(config_key(rows_.axes.select[i])),
          [this, i](size_t run) { return shown_value(rows_.settings[run][i]); });
  }

  // ", test, 200 samples": split and samples of a point.
  std::string measured_text(const Point& point) const {
    std::set<std::string> splits;
    std::set<int64_t> samples;
    for (const auto& run : rows_.runs) {
      const auto points = points_of(run);
      const auto it = points.find(point);
      if (it == points.end()) continue;
      splits.insert(it->second->split);
      samples.insert(it->second->samples);
    }
    if (!point.split.empty() || splits.empty()) return "";
    std::string out;
    if (splits.size() == 1 && (point != Point{} || *splits.begin() != "test")) out = ", " + printable(*splits.begin());
    return out + formatted(", {} samples", joined(samples, " or "));
  }

  // A line if some accuracies in the column "valid" are on the test set; else empty.
  std::string valid_line() const {
    size_t on_test = 0, all = 0;
    for (const auto& run : rows_.runs) {
      on_test += valid_is_test(run.result);
      all += run.result.valid.has_value();
    }
    if (on_test == 0) return "";
    return formatted("Column valid: {}accuracy on the test set (select_on_test).",
                     on_test == all ? "" : formatted("in {} of {} runs ", on_test, all));
  }

  void what_it_found() {
    const auto accuracy = [](const std::optional<Measurement>& m) { return m ? fixed(m->score(), 3) : std::string(); };
    add("valid", [=, this](size_t run) { return accuracy(result(run).valid); });
    const bool saved = std::any_of(rows_.runs.begin(), rows_.runs.end(), shows_saved);
    add("test" + (saved ? measured_text({}) : ""), [=, this](size_t run) { return accuracy(result(run).test); });
    const auto any = [this](const auto& has) {
      return std::any_of(rows_.runs.begin(), rows_.runs.end(),
                         [&](const TableRun& run) { return run.result.test && has(*run.result.test); });
    };
    if (any([](const Measurement& m) { return m.kl.has_value(); })) {
      add("KL, nats", [this](size_t run) {
        const auto& test = result(run).test;
        return test && test->kl ? fixed(*test->kl, 4) : std::string();
      });
      add("bound", [this](size_t run) {
        const auto& test = result(run).test;
        return test && test->ceiling && test->ceiling->kl ? "≥ " + fixed(*test->ceiling->kl, 4) : std::string();
      });
    }
    const auto further = further_points(rows_);
    for (const Point& point : further)
      add(formatted("{}{}", joined(point_lines(point), ", "), saved ? measured_text(point) : ""),
          [=, this](size_t run) {
            const auto points = points_of(rows_.runs[run]);
            const auto it = points.find(point);
            return it == points.end() ? std::string() : fixed(it->second->score(), 3);
          });
    if (std::any_of(rows_.runs.begin(), rows_.runs.end(), [](const TableRun& run) { return n_gram_of(run.result); }))
      add("n-gram", [this](size_t run) {
        const auto found = n_gram_of(result(run));
        return found ? formatted("{} (n {})", fixed(found->accuracy, 3), found->n) : std::string();
      });
    const bool squared = any([](const Measurement& m) { return m.mse.has_value(); });
    const bool accuracies = !squared || any([](const Measurement& m) { return !m.mse; });
    add(!squared     ? "ceiling"
        : accuracies ? "ceiling or bound"
                     : "bound",
        [this](size_t run) {
          const auto& test = result(run).test;
          if (!test || !test->ceiling) return std::string();
          if (test->ceiling->mse) return "≥ " + fixed(*test->ceiling->mse, 3);
          return test->ceiling->exact ? fixed(test->ceiling->accuracy, 3) : "≤ " + fixed(test->ceiling->upper_bound, 3);
        });
    if (accuracies)
      add("fraction", [this](size_t run) {
        const auto& test = result(run).test;
        if (!test || test->mse || !test->ceiling || !test->ceiling->exact || test->ceiling->accuracy <= 0)
          return std::string();
        return fixed(test->accuracy / test->ceiling->accuracy, 3);
      });
    add("params", [this](size_t run) { return amount(static_cast<double>(result(run).params)); });
    add("state", [this](size_t run) {
      const auto& size = result(run).state_size;
      return size ? amount(static_cast<double>(*size)) : std::string(is_external(result(run)) ? "–" : "grows");
    });
    add(
        "status", [this](size_t run) { return std::string(to_string(rows_.standing[run])); }, true);
  }

  const Rows& rows_;
  const Labels& labels_;
  std::vector<RunColumn> columns_;
};

}  // namespace

Sheet run_sheet(const Rows& rows, const Labels& labels) {
  return RunSheet(rows, labels).make();
}

}  // namespace sb
