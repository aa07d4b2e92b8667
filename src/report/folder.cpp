#include "report/folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/parallel.h"
#include "base/text.h"
#include "store/evaluation_file.h"
#include "store/open_run.h"
#include "store/run_check.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t most_names = 20;

Note damaged_note(const std::string& problem) {
  return {"left out, damaged: " + printable(problem, 1000), Note::Kind::damaged};
}

Note counted(const std::string& what, const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), most_names);
  const std::vector<std::string> first(names.begin(), names.begin() + static_cast<long>(shown));
  return {formatted("left out: {} {}: {}{}", names.size(), what, joined(first, ", "),
                    shown < names.size() ? formatted(" and {} more", names.size() - shown) : ""),
          Note::Kind::left_out};
}

bool begun(const std::string& run, const RunTree& tree) {
  return tree.exists(run + "/config.json") || tree.exists(run + "/result.json");
}

// Adds saved evaluations of the run's own final weights, identified by name and by the digest in the result.
void add_evaluations(TableRun& run, const RunTree& tree, std::vector<Note>& notes, size_t& other_weights) {
  std::vector<std::string> problems;
  const auto final_weights = run.result.files.find("final.safetensors");
  const EvaluatedRun own{run.result.run_id, run.result.model, run.result.task};
  for (auto& saved : load_evaluations(run.folder, own, &problems, tree)) {
    if (saved.weights != "final") {
      ++other_weights;
      continue;
    }
    if (final_weights == run.result.files.end() || saved.weights_sha256 != final_weights->second) {
      ++run.damaged;
      notes.emplace_back("left out: measured on other final weights than the run's: " +
                             printable((fs::path(run.folder) / evaluation_name(saved)).string(), 400),
                         Note::Kind::left_out);
      continue;
    }
    const std::string how = saved.device || saved.precision
                                ? saved.device.value_or("?") + ", " + saved.precision.value_or("?")
                                : std::string();
    for (auto& point : saved.points) run.evaluations.emplace_back(std::move(point), how);
  }
  run.damaged += problems.size();
  for (const auto& problem : problems) notes.push_back(damaged_note(problem));
}

// The config of an unfinished run; empty if it cannot be read.
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

std::string folder_name(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  return printable((path.has_filename() ? path : path.parent_path()).filename().string());
}

ReadRun read_run(const std::string& folder, const RunTree& tree) {
  ReadRun out;
  out.report = inspect_run(folder, CheckScope::result, tree);
  out.begun = begun(folder, tree);
  if (out.report.state == RunState::unfinished || !out.begun) {
    out.config = config_of(folder, tree);
    return out;
  }
  try {
    if (out.report.state == RunState::damaged) {
      for (const auto& problem : out.report.problems) out.notes.push_back(damaged_note(problem));
      out.config = config_of(folder, tree);
      return out;
    }
    TableRun run{folder, out.report.result ? *out.report.result : open_result(folder, tree), {}};
    out.report.result = nullptr;  // held once
    add_evaluations(run, tree, out.notes, out.other_weights);
    out.run = std::move(run);
  } catch (const OtherSchema& other) {
    out.other_schema = other.schema();
    out.config = config_of(folder, tree);
  } catch (const Error& error) {
    out.config = config_of(folder, tree);
    out.report.state = RunState::damaged;
    out.report.problems.emplace_back(error.what());
    out.notes.push_back(damaged_note(error.what()));
  }
  return out;
}

namespace {

using AllRuns = std::vector<std::shared_ptr<const ReadRun>>;

AllRuns read_each(const std::vector<std::string>& folders, const RunTree& tree, const RunReader& reader) {
  std::vector<std::string> once;
  std::set<std::string> seen;
  for (const auto& folder : folders) {
    std::error_code unknown;
    const std::string place = fs::weakly_canonical(folder, unknown).string();
    if (unknown || seen.insert(place).second) once.push_back(folder);
  }
  AllRuns out(once.size());
  parallel_for(once.size(), 1, 0, [&](size_t begin, size_t) {
    out[begin] = reader ? reader(once[begin], tree) : std::make_shared<const ReadRun>(read_run(once[begin], tree));
  });
  return out;
}

// Removes labels from runs if other runs of the same setting, except for seeds, have none: they form one setting.
void drop_partial_labels(std::vector<TableRun>& runs) {
  const auto setting = [](const TableRun& run) {
    auto out = run.result.config;
    for (const char* seed : {"grammar.seed", "train.seed", "train.order_seed"}) out.erase(seed);
    return out;
  };
  std::set<decltype(Result::config)> unnamed;
  for (const auto& run : runs)
    if (run.result.label.empty()) unnamed.insert(setting(run));
  for (auto& run : runs)
    if (!run.result.label.empty() && unnamed.contains(setting(run))) run.result.label.clear();
}

FoundRuns found_runs(const AllRuns& all) {
  FoundRuns out;
  std::set<std::string> whole;  // ids of intact runs
  for (const auto& read : all)
    if (read->run) whole.insert(read->run->result.run_id);
  std::vector<std::string> unfinished;
  std::map<int64_t, std::vector<std::string>> schemas;
  size_t other_weights = 0;
  using Why = MissingRun::Why;
  for (const auto& read : all) {
    const std::string name = folder_name(read->report.folder);
    out.notes.insert(out.notes.end(), read->notes.begin(), read->notes.end());
    other_weights += read->other_weights;
    if (read->run) {
      out.runs.push_back(*read->run);
      out.runs.back().result.samples.clear();  // large, and in no table
    } else if (read->report.state == RunState::unfinished || !read->begun) {
      if (!whole.contains(name)) unfinished.push_back(name);  // no other copy is intact
      out.missing.push_back({name, read->config, Why::unfinished});
    } else if (read->other_schema) {
      schemas[*read->other_schema].push_back(name);
      out.missing.push_back({name, read->config, Why::other_schema});
    } else {
      out.missing.push_back({name, read->config, Why::damaged});
    }
  }
  for (const auto& [schema, names] : schemas)
    out.notes.push_back(
        counted(formatted("of result schema {} (this program reads {})", schema, result_schema), names));
  if (other_weights > 0)
    out.notes.emplace_back(formatted("left out: {} saved evaluation{} of a checkpoint or of weights trained elsewhere",
                                     other_weights, other_weights == 1 ? "" : "s"),
                           Note::Kind::left_out);
  if (!unfinished.empty()) out.notes.push_back(counted("not finished", unfinished));
  drop_partial_labels(out.runs);
  return out;
}

Rows rows_of(const GatheredRuns& all, FoundRuns found, SwitchDefaults defaults) {
  std::vector<Note> notes = all.notes;
  notes.insert(notes.end(), found.notes.begin(), found.notes.end());
  return make_rows(std::move(found.runs), all.axes, std::move(notes), std::move(found.missing), std::move(defaults));
}

}  // namespace

FoundRuns read_runs(const std::vector<std::string>& folders, const RunTree& tree) {
  return found_runs(read_each(folders, tree, {}));
}

namespace {

GatheredRuns gather(const std::vector<std::string>& roots, const TableChoice& choice, const RunReader& reader,
                    DamagedRoot damaged_root) {
  RunTree tree;
  GatheredRuns out;
  std::vector<std::string> runs, folders;
  const auto look_below = [&](const std::string& root) -> FoundFolders {
    try {
      return find_runs(root, tree);
    } catch (const Error& error) {
      if (damaged_root == DamagedRoot::refused) throw;
      return {{}, {}, {}, {{root, error.what()}}};
    }
  };
  for (const auto& root : roots) {
    const FoundFolders below = look_below(root);
    out.notes.insert(out.notes.end(), below.notes.begin(), below.notes.end());
    for (const auto& archive : below.damaged) out.notes.push_back(damaged_note(archive.problem));
    out.archives.insert(out.archives.end(), below.damaged.begin(), below.damaged.end());
    runs.insert(runs.end(), below.runs.begin(), below.runs.end());
    folders.insert(folders.end(), below.folders.begin(), below.folders.end());
  }
  out.runs = read_each(runs, tree, reader);
  std::set<std::pair<std::string, int64_t>> networks;
  std::function<bool(const MatchedNetwork&)> shown;
  if (choice.is_of_some_runs()) {
    keep_chosen(out.runs, choice);
    for (const auto& read : out.runs)
      if (read->run) networks.emplace(read->run->result.model, read->run->result.width);
    shown = [&](const MatchedNetwork& each) { return networks.contains({each.model, each.width}); };
  }
  std::vector<std::string> said;
  out.axes = recorded_axes(folders, said, tree, shown);
  out.notes.insert(out.notes.end(), said.begin(), said.end());
  return out;
}

}  // namespace

GatheredRuns gather_runs(const std::vector<std::string>& roots, const RunReader& reader, DamagedRoot damaged_root) {
  return gather(roots, {}, reader, damaged_root);
}

Rows rows_of(const GatheredRuns& gathered, SwitchDefaults defaults) {
  return rows_of(gathered, found_runs(gathered.runs), std::move(defaults));
}

void check_roots(const std::vector<std::string>& roots, const std::string& where) {
  for (const auto& root : roots) {
    expect_folder_or_archive(root, where);
    std::error_code failed;
    if (!fs::is_directory(root, failed)) continue;
    fs::directory_iterator(root, failed);
    if (failed)
      throw bad_input(where, formatted("cannot read the folder '{}': {}", printable(root, 400), failed.message()));
  }
}

Rows read_rows(const std::vector<std::string>& roots, const TableChoice& choice, SwitchDefaults defaults) {
  GatheredRuns all = gather(roots, choice, {}, DamagedRoot::refused);
  FoundRuns found = found_runs(all.runs);
  if (found.runs.empty() && choice.is_of_some_runs() && !found.missing.empty())
    throw bad_input("table",
                    formatted("no finished run meets the conditions, {} unfinished or damaged", found.missing.size()));
  if (found.runs.empty()) {
    std::vector<std::string> names;
    for (const auto& root : roots) names.push_back(printable(root, 400));
    throw bad_input("table", formatted("expected finished runs below the folder, got none, {}{}", joined(names, ", "),
                                       found.notes.empty() ? "" : "; " + found.notes.front()));
  }
  add_given(all.axes, choice.select, true, found.runs);
  add_given(all.axes, choice.average, false, found.runs);
  return rows_of(all, std::move(found), std::move(defaults));
}

Rows read_rows(const std::string& root, const TableChoice& choice, SwitchDefaults defaults) {
  return read_rows(std::vector<std::string>{root}, choice, std::move(defaults));
}

Rows read_all_rows(const std::vector<std::string>& roots, SwitchDefaults defaults) {
  check_roots(roots, "runs");
  const GatheredRuns all = gather_runs(roots);
  FoundRuns found = found_runs(all.runs);
  for (auto& run : found.runs) run.result.label.clear();
  return rows_of(all, std::move(found), std::move(defaults));
}

}  // namespace sb
