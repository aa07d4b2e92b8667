#include "cli/run_suite.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_sizes.h"
#include "cli/shipped.h"
#include "cli/standard_error.h"
#include "cli/stop.h"
#include "cli/training.h"
#include "jobs/run_names.h"
#include "jobs/slurm_submit.h"
#include "jobs/suite_session.h"
#include "jobs/suite_status.h"
#include "jobs/suite_tables.h"
#include "report/axes.h"
#include "store/run_check.h"

namespace sb::cli {
namespace {

Host this_program() {
  return {print,         complain, standard_error, stop_requested, [] { return std::make_shared<GracefulStop>(); },
          program_path()};
}

Overview overview_of(const SuiteOptions& options, const Suite& suite, const KnownRuns& known) {
  return Overview(options.root, suite, shipped_costs(), size_of, known);
}

Exit list_runs(const SuiteOptions& options, const Suite& suite, const KnownRuns& known) {
  Overview overview = overview_of(options, suite, known);
  const Division division = divide(options, suite, overview);
  share_machine(overview, options, division);
  const std::vector<std::string> names = run_names(suite.runs, suite.axes);
  TextTable table({}, "llrll");
  for (size_t i = 0; i < suite.runs.size(); ++i) {
    const Overview::Run& run = overview.runs[i];
    const auto estimate = overview.estimate(suite, i);
    const std::string took = run.taken ? "took " + duration_text(run.taken->seconds) : "time unknown";
    table.row({suite.runs[i].run_id, run.state, grouped(static_cast<uint64_t>(run.size.parameters)) + " parameters",
               run.done   ? took
               : estimate ? "estimate " + duration_text(*estimate)
                          : "time unknown",
               names[i]});
  }
  print(table.text());
  const size_t begun = overview.count("begun"), damaged = overview.count("damaged");
  std::string line = counted(suite.runs.size(), "run") + ", ";
  if (begun > 0) line += std::to_string(begun) + " begun, ";
  if (damaged > 0) line += std::to_string(damaged) + " damaged, ";
  line += std::to_string(overview.count("missing")) + " missing";
  if (const auto left = overview.seconds_left(suite, division.jobs); overview.done() < suite.runs.size())
    line += left ? ", estimate " + duration_text(*left) + ", " +
                       (division.jobs == 1 ? "one after another" : std::to_string(division.jobs) + " at a time") +
                       " (by configs/rates.toml and the runs finished here)"
                 : ", time unknown";
  complain(line);
  return Exit::done;
}

bool is_done(const SuiteOptions& options, const KnownRuns& known, const ResolvedConfig& run) {
  return has_result(options.root + "/" + run.run_id) || known.find(run.run_id) != nullptr;
}

// The runs of a table: those of `part`, and the finished ones among the others of the suite.
Suite tabulated(const SuiteOptions& options, const KnownRuns& known, Suite whole, const Suite& part) {
  std::set<std::string> ids;
  for (const auto& run : part.runs) ids.insert(run.run_id);
  std::vector<bool> kept;
  for (const auto& run : whole.runs) kept.push_back(ids.contains(run.run_id) || is_done(options, known, run));
  keep_runs(whole, kept);
  return whole;
}

}  // namespace

Exit run_suite(const SuiteOptions& options, Suite suite, const ModelRules& rules) {
  std::optional<Suite> whole;  // if `suite` is a part of it
  if (!options.where.empty()) {
    if (!options.no_table) whole = suite;
    keep_where(suite, options.where, options.command + " --where");
  }
  for (const auto& line : suite.merged_lines()) complain("[suite] " + line);
  if (!options.elsewhere() || options.list) tell_unusable_gpu(suite.runs);
  if (options.slurm.submit && options.gpus > 0 && !usable_gpus().built && !options.slurm.dry_run)
    throw bad_input(options.command + " --gpus",
                    "every job would fail, because the nodes run this program: " + usable_gpus().missing);
  if (options.slurm.submit && options.gpus > 0 && usable_gpus().count == 0)
    complain("note: the jobs request GPUs, but this machine has none to use: " + usable_gpus().missing);
  const KnownRuns known = known_runs(options.reuse, options.command + " --reuse");
  for (const auto& note : known.notes) complain(note);
  if (options.list) return list_runs(options, suite, known);
  const Host host = this_program();
  if (options.status) {
    print_status(options.root, suite, known, host);
    return Exit::done;
  }
  const auto done = [&](const ResolvedConfig& run) { return is_done(options, known, run); };
  const bool all_done = std::all_of(suite.runs.begin(), suite.runs.end(), done);
  if (options.slurm.submit && (!all_done || options.slurm.dry_run)) return submit_suite(options, suite, known, host);
  Exit code = Exit::done;
  if (!options.table_only && !options.slurm.submit)
    code = work_on_suite(options, suite, known, overview_of(options, suite, known), host);
  if (!options.no_table)
    write_suite_tables(options, whole ? tabulated(options, known, std::move(*whole), suite) : suite, rules, known,
                       host);
  // The report that the final Slurm job would have written.
  if (options.slurm.submit && std::filesystem::exists(options.root + "/" + options.table + ".json"))
    write_report(options.root, options.root + "/report.html", defaults_of(rules));
  return code;
}

}  // namespace sb::cli
