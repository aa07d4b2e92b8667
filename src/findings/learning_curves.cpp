#include "findings/learning_curves.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "findings/arms.h"
#include "findings/choices.h"
#include "findings/page_text.h"
#include "findings/protocol.h"
#include "store/run_tree.h"
#include "store/thinned_metrics.h"

namespace sb {
namespace {

namespace fs = std::filesystem;

// Opens the archive that holds this path, if one does.
void open_archive_of(const std::string& path, RunTree& tree, std::set<std::string>& opened) {
  for (fs::path at = path; at.has_relative_path() && at != at.parent_path(); at = at.parent_path()) {
    if (!is_file(at)) continue;
    if (opened.insert(at.string()).second) tree.open(at.string());
    return;
  }
}

using ByUpdate = std::map<int64_t, std::vector<double>>;

std::vector<LinePoint> means(const ByUpdate& values) {
  std::vector<LinePoint> out;
  for (const auto& [update, all] : values) out.push_back(mean_point(static_cast<double>(update), all));
  return out;
}

}  // namespace

ValidCurves read_valid_curves(const Rows& rows) {
  ValidCurves out;
  RunTree tree;
  std::set<std::string> opened;
  for (const auto& run : rows.runs) {
    open_archive_of(run.folder, tree, opened);
    ValidCurve curve;
    for (const auto& row : load_metrics(run.folder, run.result, tree).rows)
      for (const auto& [name, value] : row.values)
        if (row.phase == "valid" && name == "accuracy") curve.emplace_back(row.update, value);
    if (!curve.empty()) out.emplace(run.folder, std::move(curve));
  }
  return out;
}

LinesFigure learning_curves(const Rows& rows, const Claims& claims, const ValidCurves& curves, const Scale& scale,
                            const std::string& protocol, int task) {
  const auto keys = claims.task_keys.find(task);
  std::map<std::string, ByUpdate> trained, failed;  // by model
  std::vector<double> n_grams, ceilings;
  for (size_t run = 0; run < rows.runs.size(); ++run) {
    const Result& result = rows.runs[run].result;
    const Group& group = rows.groups[rows.group_of[run]];
    if (!curves.contains(rows.runs[run].folder) || result.task != task || is_choice(rows, claims, run) ||
        (keys != claims.task_keys.end() && !meets(group.config, keys->second, {})) ||
        !fits(group, {result.model, {}, {}}) || !of_scale(rows, group, scale, {}) ||
        !meets(group.config, scale.results, {}) || protocol_of(rows, group) != protocol)
      continue;
    const bool failure = result.status != "done" || collapsed_run(rows, run).has_value();
    if (!failure && rows.standing[run] == Standing::not_chosen) continue;
    for (const auto& [update, accuracy] : curves.at(rows.runs[run].folder))
      (failure ? failed : trained)[result.model][update].push_back(accuracy);
    if (result.baselines && result.baselines->best_n_gram()) n_grams.push_back(*result.baselines->best_n_gram());
    if (result.test && result.test->ceiling) ceilings.push_back(result.test->ceiling->accuracy);
  }
  LinesFigure out;
  for (const auto& model : paper_models()) {
    if (const auto found = trained.find(model); found != trained.end())
      out.lines.push_back({model_title(model), model, means(found->second)});
    if (const auto found = failed.find(model); found != failed.end())
      out.lines.push_back({model_title(model) + " (failed)", model, means(found->second)});
  }
  if (!n_grams.empty()) out.references.push_back({"n-gram", {{0, estimate(n_grams).mean, {}}}});
  if (!ceilings.empty()) out.references.push_back({"ceiling", {{0, estimate(ceilings).mean, {}}}});
  return out;
}

}  // namespace sb
