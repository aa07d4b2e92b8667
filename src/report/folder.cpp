#include "report/folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "runs/evaluation_file.h"
#include "runs/open_run.h"
#include "runs/run_check.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t most_names = 20;

std::string name_of(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  return printable((path.has_filename() ? path : path.parent_path()).filename().string());
}

std::string counted(const std::string& what, const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), most_names);
  const std::vector<std::string> first(names.begin(), names.begin() + static_cast<long>(shown));
  return formatted("left out: {} {}: {}{}", names.size(), what, joined(first, ", "),
                   shown < names.size() ? formatted(" and {} more", names.size() - shown) : "");
}

bool begun(const std::string& run, const RunTree& tree) {
  return tree.is_there(run + "/config.json") || tree.is_there(run + "/result.json");
}

// Only those of the run's own final weights say something of the run: by name, and by the digest in its result.
void add_evaluations(TableRun& run, const RunTree& tree, std::vector<std::string>& notes, size_t& other_weights) {
  std::vector<std::string> problems;
  const auto final_weights = run.result.files.find("final.safetensors");
  for (auto& saved : load_evaluations(run.folder, run.result.run_id, &problems, tree)) {
    if (saved.weights != "final") {
      ++other_weights;
      continue;
    }
    if (final_weights == run.result.files.end() || saved.weights_sha256 != final_weights->second) {
      ++run.damaged;
      notes.push_back("left out: measured on other final weights than the run's: " +
                      printable((fs::path(run.folder) / evaluation_name(saved)).string(), 400));
      continue;
    }
    const std::string how = saved.device || saved.precision
                                ? saved.device.value_or("?") + ", " + saved.precision.value_or("?")
                                : std::string();
    for (auto& point : saved.points) run.evaluations.emplace_back(std::move(point), how);
  }
  run.damaged += problems.size();
  for (const auto& problem : problems) notes.push_back("left out, damaged: " + printable(problem, 1000));
}

// Of a run that is not finished; empty where it cannot be read.
ConfigMap config_of(const std::string& folder, const RunTree& tree) {
  try {
    return config_map(check_identity(folder, tree).canonical);
  } catch (const Error&) {
    return {};
  }
}

void add_given(Axes& axes, const std::vector<std::string>& keys, bool select, const std::vector<TableRun>& runs) {
  std::set<std::string> switches;
  for (const auto& run : runs)
    for (const auto& [key, value] : run.result.config)
      if (key.starts_with("model.switch ")) switches.insert(key.substr(13));
  for (const auto& key : keys) {
    const std::string fault = axis_fault(key, {switches.begin(), switches.end()}, select);
    const std::string option = select ? "table --select" : "table --average";
    if (!fault.empty()) throw bad_input(option, fault);
    const auto& others = select ? axes.average : axes.select;
    if (std::find(others.begin(), others.end(), key) != others.end())
      throw bad_input(option,
                      formatted("expected a key that is not {} over, got {}", select ? "averaged" : "selected", key));
    select ? axes.add_select(key) : axes.add_average(key);
  }
}

}  // namespace

FoundRuns read_runs(const std::vector<std::string>& folders, const RunTree& tree) {
  FoundRuns out;
  std::vector<std::string> unfinished;
  std::map<int64_t, std::vector<std::string>> schemas;
  size_t other_weights = 0;
  std::set<std::string> seen;
  using Why = MissingRun::Why;
  const auto leave_out = [&](const std::string& folder, Why why) {
    out.missing.push_back({name_of(folder), config_of(folder, tree), why});
  };
  for (const auto& folder : folders) {
    std::error_code unknown;
    const std::string place = fs::weakly_canonical(folder, unknown).string();
    if (!unknown && !seen.insert(place).second) continue;
    const RunReport report = inspect_run(folder, Look::result, tree);
    if (report.state == RunState::unfinished || !begun(folder, tree)) {
      unfinished.push_back(name_of(folder));
      leave_out(folder, Why::unfinished);
      continue;
    }
    try {
      if (report.state == RunState::damaged) {
        for (const auto& problem : report.problems)
          out.notes.push_back("left out, damaged: " + printable(problem, 1000));
        leave_out(folder, Why::damaged);
        continue;
      }
      TableRun run{folder, open_result(folder, tree), {}};
      run.result.samples.clear();  // large, and in no table
      add_evaluations(run, tree, out.notes, other_weights);
      out.runs.push_back(std::move(run));
    } catch (const OtherSchema& other) {
      schemas[other.schema()].push_back(name_of(folder));
      leave_out(folder, Why::other_schema);
    } catch (const Error& error) {
      leave_out(folder, Why::damaged);
      out.notes.push_back("left out, damaged: " + printable(error.what(), 1000));
    }
  }
  for (const auto& [schema, names] : schemas)
    out.notes.push_back(
        counted(formatted("of result schema {} (this program reads {})", schema, result_schema), names));
  if (other_weights > 0)
    out.notes.push_back(
        formatted("left out: {} saved evaluations of a checkpoint or of weights trained elsewhere", other_weights));
  if (!unfinished.empty()) out.notes.push_back(counted("not finished", unfinished));
  return out;
}

namespace {

// Folders and archives of runs, read together.
struct Gathered {
  Axes axes;
  FoundRuns found;
  std::vector<std::string> notes;
};

Gathered gathered(const std::vector<std::string>& roots) {
  RunTree tree;
  Gathered out;
  std::vector<std::string> runs, folders;
  for (const auto& root : roots) {
    const FoundFolders below = find_runs(root, tree);
    out.notes.insert(out.notes.end(), below.notes.begin(), below.notes.end());
    for (const auto& line : below.damaged) out.notes.push_back("left out, damaged: " + printable(line, 1000));
    runs.insert(runs.end(), below.runs.begin(), below.runs.end());
    folders.insert(folders.end(), below.folders.begin(), below.folders.end());
  }
  out.axes = recorded_axes(folders, out.notes, tree);
  out.found = read_runs(runs, tree);
  out.notes.insert(out.notes.end(), out.found.notes.begin(), out.found.notes.end());
  return out;
}

Rows rows_of(Gathered all, SwitchDefaults defaults) {
  return make_rows(std::move(all.found.runs), all.axes, std::move(all.notes), std::move(all.found.missing),
                   std::move(defaults));
}

}  // namespace

Rows read_rows(const std::string& root, const std::vector<std::string>& select, const std::vector<std::string>& average,
               SwitchDefaults defaults) {
  Gathered all = gathered({root});
  if (all.found.runs.empty())
    throw bad_input("table", formatted("expected finished runs below the folder, got none, {}{}", printable(root, 400),
                                       all.found.notes.empty() ? "" : "; " + all.found.notes.front()));
  add_given(all.axes, select, true, all.found.runs);
  add_given(all.axes, average, false, all.found.runs);
  return rows_of(std::move(all), std::move(defaults));
}

Rows read_all_rows(const std::vector<std::string>& roots, SwitchDefaults defaults) {
  for (const auto& root : roots) expect_folder_or_archive(root, "runs");
  Gathered all = gathered(roots);
  for (auto& run : all.found.runs) run.result.label.clear();
  return rows_of(std::move(all), std::move(defaults));
}

}  // namespace sb
