#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/replace_file.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/shipped.h"
#include "config/config_file.h"
#include "findings/findings_figures.h"
#include "findings/page.h"
#include "report/folder.h"
#include "suites/experiment.h"

namespace sb::cli {
namespace experiments_verdict_command {

namespace fs = std::filesystem;
constexpr size_t kMaxPageBytes = size_t{16} << 20;

struct Options {
  std::string name, claims, scale, format = "text", out = "-";
  std::vector<std::string> folders;
};

struct PageOptions {
  std::string claims, results = "results", out = "docs/findings.md", readme;
  bool check = false;
};

std::string claims_path(const std::string& where, const std::string& given) {
  if (!given.empty()) return given;
  const std::string folder = shipped_folder();
  if (folder.empty()) throw bad_input(where, "shipped configs not found, expected --claims FILE");
  return (fs::path(folder) / "experiments/claims.toml").string();
}

// Names of the experiments in the folder of the claims file.
std::vector<std::string> experiment_names(const std::string& claims) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(fs::path(claims).parent_path(), failed), end; !failed && it != end;
       it.increment(failed)) {
    if (it->path().extension() != ".toml") continue;
    try {
      parse_experiment(read_config_text(it->path().string()), it->path().string());
      names.push_back(it->path().stem().string());
    } catch (const Error&) {  // another kind of file
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// An experiment of this name, or one claim.
Experiment asked_for(const std::string& name, const Claims& claims, const std::string& path) {
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (plain && is_there(fs::path(path).parent_path() / (name + ".toml"))) {
    const std::string file = (fs::path(path).parent_path() / (name + ".toml")).string();
    Experiment out = parse_experiment(read_config_text(file), file);
    for (const auto& id : out.claims)
      if (!claims.find(id))
        throw bad_input("experiments verdict", "no claim '" + printable(id) + "' in " + printable(path, 200) +
                                                   ", named in " + printable(file, 200));
    if (out.claims.empty()) throw bad_input("experiments verdict", "the experiment tests no claim, " + printable(name));
    return out;
  }
  for (const auto& claim : claims.claims)
    if (claim.number > 0 && std::to_string(claim.number) == name) return {name, "", "claim " + name, "", {claim.id}};
  if (const Claim* claim = claims.find(name)) return {name, "", "claim " + name, "", {claim->id}};
  std::vector<std::string> names = experiment_names(path);
  for (const auto* all : {&claims.claims, &claims.deviations})
    for (const auto& claim : *all) names.push_back(claim.id);
  throw bad_input("experiments verdict", "expected an experiment, or the id or number of a claim, such as " +
                                             join_some(nearest_first(name, names), 6) + ", got '" + printable(name) +
                                             "'" + did_you_mean(name, names));
}

// Throws for a switch that a known model does not have, and says which other models have no runs.
void check_arms(const Claim& claim, const Rows& rows, const SwitchDefaults& defaults, const std::string& path) {
  constexpr int64_t any_width = 256;
  std::set<std::string> with_runs, unknown;
  for (const auto& group : rows.groups) with_runs.insert(group.model());
  for (const auto& one : claim.comparisons)
    for (const auto* arm : {&one.a, &one.b})
      for (const auto& model : *arm) {
        const auto switches = defaults ? defaults(model.model, any_width) : std::map<std::string, std::string>();
        if (switches.empty() && !with_runs.contains(model.model)) unknown.insert(model.model);
        std::vector<std::string> names;
        for (const auto& [name, value] : switches) names.push_back(name);
        for (const auto& [name, value] : model.switches)
          if (!switches.empty() && !switches.contains(name))
            throw bad_input("claims", formatted("{} has no switch '{}'{}, {}", printable(model.model), printable(name),
                                                did_you_mean(name, names), printable(path, 200)));
      }
  for (const auto& name : unknown)
    complain(formatted("note: no run has the model '{}'{}", printable(name),
                       did_you_mean(name, {with_runs.begin(), with_runs.end()})));
}

Error without_runs(const std::string& where, const std::string& expected, const std::string& folder, const Rows& rows) {
  return bad_input(where, "expected " + expected + " below the folder, got none, " + printable(folder, 400) +
                              (rows.notes.empty() ? "" : "; " + rows.notes.front()));
}

Exit verdict(const Options& options, const SwitchDefaults& defaults) {
  const std::string path = claims_path("experiments verdict", options.claims);
  const Claims claims = read_claims(path);
  const Experiment experiment = asked_for(options.name, claims, path);
  if (!options.scale.empty() && !claims.scale(options.scale)) {
    std::vector<std::string> names;
    for (const auto& scale : claims.scales) names.push_back(scale.name);
    throw bad_input("experiments verdict --scale",
                    "expected " + join_or(names) + ", got '" + printable(options.scale) + "'");
  }
  const Rows rows = read_all_rows(options.folders, defaults);
  if (rows.runs.empty() && rows.absent.empty())
    throw without_runs("experiments verdict DIR", "runs", options.folders.front(), rows);
  if (!claims.choice_seed)
    complain(
        "note: " + printable(path, 200) +
        " has no [choices], so runs of every grammar count, and no verdict is withheld because of better settings");
  for (const auto& id : experiment.claims) check_arms(*claims.find(id), rows, defaults, path);
  std::vector<ClaimVerdict> verdicts;
  for (const auto& id : experiment.claims) verdicts.push_back(judge(rows, claims, *claims.find(id), options.scale));
  deliver(options.out, options.format == "json" ? json_document(verdict_json(experiment, verdicts, rows), 6)
                                                : verdict_text(experiment, verdicts, rows));
  if (options.format != "json")
    for (const auto& note : rows.notes)
      if (note.kind == Note::Kind::left_out || note.kind == Note::Kind::damaged) complain("note: " + note);
  return Exit::done;
}

std::string current(const std::string& path) {
  return is_there(path) ? read_file(path, kMaxPageBytes) : std::string();
}

Exit findings(const PageOptions& options, const SwitchDefaults& defaults) {
  Claims claims = read_claims(claims_path("experiments findings", options.claims));
  if (!options.claims.empty()) claims.file = options.claims;
  const Rows rows = read_all_rows({options.results}, defaults);
  if (rows.runs.empty()) throw without_runs("experiments findings --results", "finished runs", options.results, rows);
  for (const auto& note : rows.notes)
    if (note.kind == Note::Kind::damaged)
      throw bad_input("experiments findings --results", "expected intact runs and archives, got " + note);
  const fs::path results = fs::path(options.results).lexically_normal();
  const std::string source = (results.has_filename() ? results : results.parent_path()).filename().string() + "/";
  const ValidCurves curves = read_valid_curves(rows);
  const FindingsPages pages = findings_pages(rows, claims, source, curves);
  // Everything is computed before anything is written.
  std::vector<std::pair<std::string, std::string>> stale;  // path, content
  const auto add = [&stale](const std::string& path, const std::string& content) {
    if (current(path) != content) stale.emplace_back(path, content);
  };
  // Figures and subpages are in the folder findings/ next to the page, and are written before it.
  const fs::path folder_of_parts = fs::path(options.out).parent_path() / "findings";
  if (options.out != "-") {
    for (const auto& figure : findings_figures(rows, claims, curves))
      add((folder_of_parts / (figure.name + ".svg")).string(), figure.svg);
    add((folder_of_parts / "claims.md").string(), pages.claims);
    add((folder_of_parts / "details.md").string(), pages.details);
    add(options.out, pages.front);
  }
  if (!options.readme.empty()) {
    const std::string readme = read_file(options.readme, kMaxPageBytes);
    const std::string made = with_table(readme, top_table(rows, claims), options.readme);
    if (made != readme) stale.emplace_back(options.readme, made);
  }
  if (options.out == "-") print(pages.front);
  for (const auto& note : rows.notes)
    if (note.kind == Note::Kind::left_out) complain("note: " + note);
  for (const auto& line : above_ceiling(rows)) complain("wrong: " + line);
  if (options.check && !stale.empty()) {
    std::vector<std::string> names;
    for (const auto& [path, content] : stale) names.push_back(printable(path, 400));
    throw check_failed("experiments findings", "out of date: " + join_or(names) + "; rerun without --check to update");
  }
  for (const auto& [path, content] : stale) {
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty()) make_folder("experiments findings --out", folder.string());
    folder == folder_of_parts ? replace_file(path, content) : write_file_atomically(path, content);
  }
  return Exit::done;
}

}  // namespace experiments_verdict_command

void add_experiments_verdict(Program& program, SwitchDefaults defaults) {
  using namespace experiments_verdict_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "experiments verdict",
      "Test the claims of an experiment on folders of runs: supported, contradicted, equivalent or undecided",
      {"selectivbench experiments verdict main_table runs/quick",
       "selectivbench experiments verdict gates runs/quick --scale quick --format json"},
      [options, defaults] { return verdict(*options, defaults); });
  arguments.positional("NAME", options->name, true, "An experiment, the id or number of a claim, or the id of a deviation");
  arguments.positionals("DIR", options->folders, true, "Folders or archives of runs, or folders that contain them");
  arguments.text("--scale", options->scale, "NAME", "Use only runs of this scale: quick, small or paper");
  arguments.choice("--format", options->format, {"text", "json"}, "Output format");
  arguments.text("--out", options->out, "FILE", "Output file, - for standard output");
  arguments.text("--claims", options->claims, "FILE", "Use the claims of this file instead of the shipped ones");

  auto page = std::make_shared<PageOptions>();
  Arguments& writes = program.command(
      "experiments findings",
      "Write docs/findings.md, its subpages and figures in docs/findings, and the README's table from results",
      {"selectivbench experiments findings --results results --out docs/findings.md --readme README.md",
       "selectivbench experiments findings --results results --out docs/findings.md --readme README.md --check"},
      [page, defaults] { return findings(*page, defaults); });
  writes.text("--results", page->results, "DIR", "Folder of results");
  writes.text(
      "--out", page->out, "FILE",
      "The page; subpages and figures go into the folder findings next to it. -: only the page, to standard output");
  writes.text("--readme", page->readme, "FILE", "Also update the results table between the markers in this file");
  writes.flag("--check", page->check, "Write nothing; exit code 1 if a file is out of date");
  writes.text("--claims", page->claims, "FILE", "Use the claims of this file instead of the shipped ones");
}

}  // namespace sb::cli
