#include "report/check_folders.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "report/axes.h"
#include "store/run_identity.h"

namespace sb {
namespace {

// Marks the run as damaged if config.json and config.toml describe different networks.
void look_at_network(RunReport& report, std::string& not_evaluated, const RunTree& tree, const ModelRules& rules) {
  if (report.state == RunState::damaged || report.state == RunState::older || report.state == RunState::newer) return;
  ConfigVerdict verdict = judge_config(report.folder, tree, rules);
  not_evaluated = std::move(verdict.not_evaluated);
  if (verdict.problem.empty()) return;
  report.state = RunState::damaged;
  report.problems.push_back(std::move(verdict.problem));
}

}  // namespace

FolderCheck check_folders(const std::vector<std::string>& folders, const std::optional<ModelRules>& rules,
                          const std::string& where) {
  FolderCheck out;
  RunTree tree;
  std::map<std::filesystem::path, std::string> seen;  // by canonical path
  // Whether the folder was not seen before.
  const auto fresh = [&](const std::string& folder) {
    std::error_code failed;
    const auto place = std::filesystem::canonical(folder, failed);
    return failed || seen.emplace(place, folder).second;
  };
  for (const auto& root : folders) {
    expect_folder_or_archive(root, where);
    if (is_file(root)) {
      try {
        tree.open(root);
      } catch (const Error& error) {
        out.archives.push_back({root, error.what()});
        continue;
      }
    }
    const FoundFolders found = find_runs(root, tree);
    out.archives.insert(out.archives.end(), found.damaged.begin(), found.damaged.end());
    for (const auto& note : found.notes)
      if (std::find(out.notes.begin(), out.notes.end(), note) == out.notes.end()) out.notes.push_back(note);
    if (found.runs.empty() && found.damaged.empty()) throw bad_input(where, "no run in '" + one_line(root) + "'");
    for (const auto& folder : found.folders) {
      if (std::find(found.runs.begin(), found.runs.end(), folder) == found.runs.end() && !fresh(folder)) continue;
      if (const std::string fault = record_fault(folder, tree); !fault.empty()) out.suites.push_back(fault);
    }
    for (const auto& folder : found.runs) {
      if (!fresh(folder)) continue;
      out.reports.push_back(inspect_run(folder, CheckScope::all, tree));
      out.not_evaluated.emplace_back();
      if (rules) look_at_network(out.reports.back(), out.not_evaluated.back(), tree, *rules);
    }
  }
  return out;
}

}  // namespace sb
