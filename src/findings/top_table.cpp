#include <algorithm>
#include <set>

#include "base/format.h"
#include "findings/model_figures.h"
#include "findings/page.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

namespace sb {
namespace {

// ".526 ± .030 (4)": the mean, half of its interval and the number of grammars; the ends of the interval if it would
// leave [0, 1].
std::string top_cell(const ModelFigure& f) {
  if (f.accuracy.n == 0) return f.failed.empty() ? "–" : "†";
  const auto interval = f.accuracy.interval(family_error);
  std::string out = share(f.accuracy.mean);
  if (interval && leaves_shares(*interval)) {
    const Interval cut = within_shares(*interval);
    out += formatted(" [{}, {}]", share(cut.low), share(cut.high));
  } else if (interval) {
    out += " ± " + share(interval->high - f.accuracy.mean);
  }
  return out + (f.failed.empty() ? "" : " †") + formatted(" ({})", f.accuracy.n);
}

const std::vector<std::pair<std::string, std::string>> columns = {{"reproduced", published_protocol},
                                                                  {"corrected", corrected_protocol}};

}  // namespace

std::string top_table(const Rows& rows, const Claims& claims) {
  const Scale* scale = claims.scale("paper");
  if (!scale) return "";
  std::string head = "| model |", rule = "|---|";
  for (int task = 1; task <= 4; ++task) {
    if (task < 4) head += formatted(" task {}: paper |", task);
    for (const auto& [title, protocol] : columns)
      head += task < 4 ? formatted(" {} |", title) : formatted(" task 4: {} |", title);
    rule += task < 4 ? "---:|---:|---:|" : "---:|---:|";
  }
  std::string out = head + "\n" + rule + "\n";
  std::vector<std::map<Unit, double>> ceilings(5);              // by task, of each grammar
  std::map<std::string, std::set<std::vector<Unit>>> grammars;  // of the models of a column
  std::set<std::string> failed;
  bool any = false;
  for (const auto& model : paper_models()) {
    out += formatted("| {} |", title_of(model));
    for (int task = 1; task <= 4; ++task) {
      if (const auto paper = paper_table(model, task)) out += " " + share(paper->accuracy) + " |";
      for (const auto& [title, protocol] : columns) {
        const ModelFigure f = model_figure(rows, claims, *scale, protocol, model, task);
        out += " " + top_cell(f) + " |";
        failed.insert(f.failed.begin(), f.failed.end());
        for (const auto& [unit, ceiling] : f.ceilings) ceilings[static_cast<size_t>(task)].emplace(unit, ceiling);
        std::vector<Unit> units;
        for (const auto& [unit, value] : f.values) units.push_back(unit);
        if (!units.empty()) grammars[title + std::to_string(task)].insert(units);
        any |= !units.empty();
      }
    }
    out += "\n";
  }
  out += "| ceiling |";
  for (int task = 1; task <= 4; ++task) {
    const auto& all = ceilings[static_cast<size_t>(task)];
    double sum = 0;
    for (const auto& [unit, ceiling] : all) sum += ceiling;
    const std::string text = all.empty() ? "–" : share(sum / static_cast<double>(all.size()));
    out += (task < 4 ? " | |" : " |") + formatted(" {} |", text);
  }
  out += "\n";
  if (!any) out += "\nNo runs of either protocol at the paper's scale yet.\n";
  if (std::any_of(grammars.begin(), grammars.end(), [](const auto& column) { return column.second.size() > 1; }))
    out +=
        "\nIn brackets: grammars. Models of a column do not all have the same ones yet;\n"
        "[docs/findings.md](docs/findings.md) compares models on the grammars that both have.\n";
  for (const auto& run : failed) out += "\n† Failed in training, and in no mean: " + cell(run) + ".\n";
  return out;
}

}  // namespace sb
