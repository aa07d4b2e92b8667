#include "store/known_runs.h"

#include "store/run_check.h"

namespace sb {

const std::string* KnownRuns::find(const std::string& run_id) const {
  const auto found = folders.find(run_id);
  return found == folders.end() ? nullptr : &found->second;
}

KnownRuns known_runs(const std::vector<std::string>& roots, const std::string& where) {
  KnownRuns out;
  for (const auto& root : roots) {
    expect_folder_or_archive(root, where);
    const FoundFolders found = find_runs(root, out.tree);
    out.notes.insert(out.notes.end(), found.notes.begin(), found.notes.end());
    for (const auto& archive : found.damaged) out.notes.push_back("left out, damaged: " + archive.problem);
    for (const auto& folder : found.runs) {
      const RunReport report = inspect_run(folder, CheckScope::result, out.tree);
      if (report.result_stands) out.folders.emplace(report.run_id, folder);
      if (report.state == RunState::damaged)
        for (const auto& problem : report.problems) out.notes.push_back("left out, damaged: " + problem);
    }
  }
  return out;
}

}  // namespace sb
