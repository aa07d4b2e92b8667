#include "page/build.h"

#include <map>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "findings/verdict.h"
#include "page/figures.h"
#include "page/parts.h"
#include "page/summary.h"
#include "report/layout.h"

namespace sb {
namespace {

void add_head(const Outline& outline, const PageRequest& request, PageData& data) {
  for (const auto& source : request.sources) data.sources.push_back(one_line(source));
  data.title =
      "SelectivBench: " + (data.sources.size() == 1 ? data.sources.front() : counted(data.sources.size(), "folder"));
  std::set<std::string> tasks;
  std::set<std::vector<std::string>> grammars;
  for (const auto& column : outline.columns) tasks.insert(column.task);
  data.headline.push_back(formatted("{} of {} on {}.", counted(outline.rows.runs.size(), "finished run"),
                                    counted(outline.models.size(), "model"), counted(tasks.size(), "task")));
  data.warnings = head_of(outline.rows);
  for (auto& line : data.warnings) line = one_line(line);
  for (const auto& archive : outline.source.archives)
    data.warnings.push_back(
        "An archive is damaged and none of its runs is in the tables: " + printable(archive.path, 400) + ".");
  for (const auto& note : outline.rows.notes) data.notes.push_back(one_line(note));
}

// Removes duplicates from the runs of each figure.
void name_runs_once(std::vector<Figure>& figures) {
  for (auto& figure : figures) {
    std::set<std::string> seen;
    std::erase_if(figure.runs, [&](const std::string& run) { return !seen.insert(run).second; });
  }
}

// Makes ids unique, since they are anchors; names of gates come from files and may repeat.
void name_figures_apart(std::vector<Figure>& figures) {
  std::set<std::string> taken;
  for (auto& figure : figures) {
    const std::string stem = figure.id;
    for (int i = 2; !taken.insert(figure.id).second; ++i) figure.id = formatted("{}-{}", stem, i);
  }
}

}  // namespace

PageData make_page(const SourceContent& content, const PageRequest& request) {
  PageData data;
  const Outline outline = make_outline(content);
  data.models = outline.models;
  data.series = outline.series;
  data.columns = outline.columns;
  add_head(outline, request, data);
  add_summary(outline, data);
  add_figures(outline, data);
  name_figures_apart(data.figures);
  name_runs_once(data.figures);
  add_compare(outline, data);
  add_samples(outline, data);
  add_runs(outline, request.page_folder, data);
  if (request.live) add_running(outline, add_board(outline, data), data);
  add_method(outline, request.citation, data);
  const auto diverged = data.counts.diverged;
  if (diverged > 0) data.warnings.push_back(counted(diverged, "run") + " diverged; see Runs.");
  return data;
}

}  // namespace sb
