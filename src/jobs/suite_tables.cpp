#include "jobs/suite_tables.h"

#include <filesystem>

#include "base/replace_file.h"
#include "base/text.h"
#include "report/folder.h"
#include "report/table.h"
#include "store/run_check.h"

namespace sb {

void write_suite_tables(const SuiteOptions& options, const Suite& suite, const ModelRules& rules,
                        const KnownRuns& known, const Host& host) {
  std::vector<std::string> folders;
  for (const auto& run : suite.runs) {
    const std::string own = options.root + "/" + run.run_id;
    const auto* elsewhere = has_result(own) ? nullptr : known.find(run.run_id);
    folders.push_back(elsewhere ? *elsewhere : own);
  }
  FoundRuns found = read_runs(folders, known.tree);
  if (found.runs.empty()) {
    if (options.table_only)
      host.complain("[suite] none of " + counted(suite.runs.size(), "run") + " done in " + one_line(options.root) +
                    "; no table written");
    return;
  }
  std::filesystem::create_directories(options.root);
  for (const auto& line : record_suite(options.root, suite, host.stop_requested)) host.complain("warning: " + line);
  for (auto& missing : found.missing)  // a run that was not started has no config in its folder
    for (const auto& run : suite.runs)
      if (run.run_id == missing.name) missing.config = config_map(run.canonical);
  for (const auto& line : match_lines(suite.matched)) found.notes.push_back(line);
  const Rows rows = make_rows(std::move(found.runs), axes_of(suite), std::move(found.notes), std::move(found.missing),
                              defaults_of(rules));
  const std::string stem = options.root + "/" + options.table;
  const std::string text = cell_table(rows, TableFormat::text);
  replace_file(stem + ".txt", text);
  replace_file(stem + ".md", cell_table(rows, TableFormat::markdown));
  replace_file(stem + ".csv", cell_table(rows, TableFormat::csv));
  replace_file(stem + ".json", cell_table(rows, TableFormat::json));
  replace_file(stem + ".tex", cell_table(rows, TableFormat::latex));
  if (host.stop_requested()) return;  // keeps the message on stopping last
  host.print(text);
  host.print("\nwritten to " + one_line(stem) + ".{txt,md,csv,json,tex}\n");
}

}  // namespace sb
