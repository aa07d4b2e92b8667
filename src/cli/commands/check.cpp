#include <memory>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/check_folders.h"

namespace sb::cli {
namespace check_command {

struct Options {
  std::vector<std::string> folders;
  std::string json;
  std::optional<ModelRules> rules;
};

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

std::string as_text(const FolderCheck& found) {
  const auto& reports = found.reports;
  std::string out;
  for (size_t i = 0; i < reports.size(); ++i) {
    const RunReport& report = reports[i];
    const std::string& not_evaluated = found.not_evaluated[i];
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
    if (report.state == RunState::older) out += "  only the version that wrote it can read it; tables leave it out\n";
    if (report.state == RunState::newer) out += "  written by a newer version of this program; tables leave it out\n";
  }
  for (const auto& archive : found.archives) out += "damaged: " + one_line(archive.problem) + "\n";
  for (const auto& fault : found.suites) out += "damaged: " + one_line(fault) + "\n";
  for (const auto& note : found.notes) out += one_line(note) + "\n";
  out += std::to_string(reports.size()) + (reports.size() == 1 ? " run: " : " runs: ");
  std::string parts;
  for (const RunState state : kStates)
    if (const int n = count(reports, state); n > 0)
      parts += (parts.empty() ? "" : ", ") + std::to_string(n) + " " + to_string(state);
  if (const size_t n = found.archives.size(); n > 0)
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

std::string as_json(const FolderCheck& found) {
  const auto& reports = found.reports;
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
    if (!found.not_evaluated[i].empty()) entry["not_evaluated"] = found.not_evaluated[i];
  }
  json["suites"] = found.suites;
  Json& archives = json["archives"] = Json::array();  // damaged ones
  for (const auto& archive : found.archives) archives.push_back({{"file", archive.path}, {"problem", archive.problem}});
  json["notes"] = found.notes;
  return json_document(json);
}

Exit run(const Options& options) {
  const FolderCheck found = check_folders(options.folders, options.rules, "check");
  deliver_both(options.json, as_json(found), as_text(found));
  const bool damaged = count(found.reports, RunState::damaged) > 0 || !found.suites.empty() || !found.archives.empty();
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
