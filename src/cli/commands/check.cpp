#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/axes.h"
#include "store/run_check.h"
#include "store/run_identity.h"

namespace sb::cli {
namespace check_command {

struct Options {
  std::vector<std::string> folders;
  std::string json;
  std::optional<ModelRules> rules;
};

struct Findings {
  std::vector<DamagedArchive> archives;
  std::vector<RunReport> reports;
  std::vector<std::string> not_evaluated;  // by report: why `eval` cannot test it, "" if it can
  std::vector<std::string> notes;          // what was not searched
  std::vector<std::string> suites;         // damaged suite.json files next to runs
};

// Marks the run as damaged if config.json and config.toml describe different networks.
void look_at_network(RunReport& report, std::string& not_evaluated, const RunTree& tree, const ModelRules& rules) {
  if (report.state == RunState::damaged || report.state == RunState::older || report.state == RunState::newer) return;
  ConfigVerdict verdict = judge_config(report.folder, tree, rules);
  not_evaluated = std::move(verdict.not_evaluated);
  if (verdict.problem.empty()) return;
  report.state = RunState::damaged;
  report.problems.push_back(std::move(verdict.problem));
}

Findings inspect_all(const Options& options) {
  Findings out;
  RunTree tree;
  std::map<std::filesystem::path, std::string> seen;  // by canonical path
  // Whether the folder was not seen before.
  const auto fresh = [&](const std::string& folder) {
    std::error_code failed;
    const auto place = std::filesystem::canonical(folder, failed);
    return failed || seen.emplace(place, folder).second;
  };
  for (const auto& root : options.folders) {
    expect_folder_or_archive(root, "check");
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
    if (found.runs.empty() && found.damaged.empty()) throw bad_input("check", "no run in '" + one_line(root) + "'");
    for (const auto& folder : found.folders) {
      if (std::find(found.runs.begin(), found.runs.end(), folder) == found.runs.end() && !fresh(folder)) continue;
      if (const std::string fault = record_fault(folder, tree); !fault.empty()) out.suites.push_back(fault);
    }
    for (const auto& folder : found.runs) {
      if (!fresh(folder)) continue;
      out.reports.push_back(inspect_run(folder, CheckScope::all, tree));
      out.not_evaluated.emplace_back();
      if (options.rules) look_at_network(out.reports.back(), out.not_evaluated.back(), tree, *options.rules);
    }
  }
  return out;
}

std::string said_of(const RunReport& report) {
  std::string out = to_string(report.state);
  const bool without_result =
      report.status.empty() && report.state != RunState::older && report.state != RunState::newer;
  // The progress of a damaged run without an intact checkpoint is unknown.
  const bool known = report.state == RunState::unfinished || report.update > 0;
  if (without_result && known && report.updates > 0) {
    const bool trained = report.update >= report.updates;
    const std::string at =
        trained ? "all " + std::to_string(report.updates) + " updates are done, but there is no readable result"
                : "at update " + std::to_string(report.update) + " of " + std::to_string(report.updates);
    out += (report.state != RunState::unfinished ? ", " : trained ? ": " : " ") + at;
  }
  if (report.status == "diverged") out += ", diverged";
  return report.not_needed.empty() ? out : out + "; a damaged checkpoint is not needed";
}

int count(const std::vector<RunReport>& reports, RunState state) {
  int n = 0;
  for (const auto& report : reports) n += report.state == state;
  return n;
}

constexpr RunState kStates[] = {RunState::whole,   RunState::without_weights, RunState::packed, RunState::unfinished,
                                RunState::damaged, RunState::older,           RunState::newer};

std::string as_text(const Findings& findings) {
  const auto& reports = findings.reports;
  std::string out;
  for (size_t i = 0; i < reports.size(); ++i) {
    const RunReport& report = reports[i];
    const std::string& not_evaluated = findings.not_evaluated[i];
    out += one_line(report.folder) + ": " + said_of(report) + "\n";
    for (const auto& problem : report.not_needed) out += "  " + one_line(problem) + "; not needed: the run is over\n";
    if (report.state == RunState::damaged)
      for (const auto& problem : report.problems) out += "  " + one_line(problem) + "\n";
    if (report.state == RunState::without_weights)
      out += std::string("  final.safetensors is missing: tables include the run, eval ") +
             (report.checkpoint
                  ? "tests the checkpoint after " + std::to_string(*report.checkpoint) + " updates with --checkpoint\n"
                  : std::string("cannot test it\n"));
    if (report.state == RunState::whole && !not_evaluated.empty())
      out += "  eval does not test it: " + one_line(not_evaluated.substr(0, not_evaluated.find('\n'))) + "\n";
    if (report.state == RunState::older) out += "  read by the version that wrote it; tables leave it out\n";
    if (report.state == RunState::newer) out += "  written by a newer version of this program; tables leave it out\n";
  }
  for (const auto& archive : findings.archives) out += "damaged: " + one_line(archive.problem) + "\n";
  for (const auto& fault : findings.suites) out += "damaged: " + one_line(fault) + "\n";
  for (const auto& note : findings.notes) out += one_line(note) + "\n";
  out += std::to_string(reports.size()) + (reports.size() == 1 ? " run: " : " runs: ");
  std::string parts;
  for (const RunState state : kStates)
    if (const int n = count(reports, state); n > 0)
      parts += (parts.empty() ? "" : ", ") + std::to_string(n) + " " + to_string(state);
  if (const size_t n = findings.archives.size(); n > 0)
    parts += (parts.empty() ? "" : ", ") + std::to_string(n) + (n == 1 ? " damaged archive" : " damaged archives");
  return out + (parts.empty() ? "none" : parts) + "\n";
}

// Names in the JSON output, which scripts read; they are older than the words of the text output.
const char* json_name(RunState state) {
  return state == RunState::whole             ? "whole"
         : state == RunState::without_weights ? "whole without weights"
         : state == RunState::packed          ? "whole, packed"
                                              : to_string(state);
}

std::string as_json(const Findings& findings) {
  const auto& reports = findings.reports;
  Json json;
  for (const RunState state : kStates) json[json_name(state)] = count(reports, state);
  Json& runs = json["runs"] = Json::array();
  for (size_t i = 0; i < reports.size(); ++i) {
    const RunReport& report = reports[i];
    Json& entry = runs.emplace_back(
        Json{{"folder", report.folder}, {"run_id", report.run_id}, {"state", json_name(report.state)}});
    if (!report.status.empty()) entry["status"] = report.status;
    entry["update"] = report.update;
    entry["updates"] = report.updates;
    entry["problems"] = report.problems;
    entry["not_needed"] = report.not_needed;
    if (!findings.not_evaluated[i].empty()) entry["not_evaluated"] = findings.not_evaluated[i];
  }
  json["suites"] = findings.suites;
  Json& archives = json["archives"] = Json::array();  // damaged ones
  for (const auto& archive : findings.archives)
    archives.push_back({{"file", archive.path}, {"problem", archive.problem}});
  json["notes"] = findings.notes;
  return json_document(json);
}

Exit run(const Options& options) {
  const Findings findings = inspect_all(options);
  deliver_both(options.json, as_json(findings), as_text(findings));
  const bool damaged =
      count(findings.reports, RunState::damaged) > 0 || !findings.suites.empty() || !findings.archives.empty();
  return damaged ? Exit::check_failed : Exit::done;
}

}  // namespace check_command

void add_check(Program& program, std::optional<ModelRules> rules) {
  using namespace check_command;
  auto options = std::make_shared<Options>();
  options->rules = std::move(rules);
  Arguments& arguments =
      program.command("check", "Verify every file of these runs against its checksum; exit code 1 if one is damaged",
                      {"selectivbench check runs", "selectivbench check runs/quick runs/paper --json check.json",
                       "selectivbench check results/small.tar.gz"},
                      [options] { return run(*options); });
  arguments.positionals("DIR", options->folders, true,
                        "Folders of runs, folders of single runs, or archives of `pack`");
  arguments.text("--json", options->json, "FILE", "Write JSON there, - for standard output");
}

}  // namespace sb::cli
