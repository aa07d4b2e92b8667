#include "cli/commands/table.h"

#include <memory>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/folder.h"
#include "report/layout.h"
#include "report/table.h"

namespace sb::cli {
namespace {

struct Options {
  std::string format = "text", out = "-";
  std::vector<std::string> folders, select, average;
  bool per_run = false;
  SwitchDefaults defaults;
};

Exit run(const Options& options) {
  const TableFormat format = parse_table_format(options.format);
  check_roots(options.folders, "table DIR");
  const Rows rows = read_rows(options.folders, options.select, options.average, options.defaults);
  deliver(options.out, options.per_run ? run_table(rows, format) : cell_table(rows, format));
  // A CSV file has no place for them.
  if (format == TableFormat::csv)
    for (const auto& line : head_of(rows)) complain("note: " + line);
  if (format == TableFormat::csv)
    for (const auto& note : rows.notes) complain("note: " + note);
  return Exit::done;
}

}  // namespace

void add_table(Program& program, SwitchDefaults defaults) {
  auto options = std::make_shared<Options>();
  options->defaults = std::move(defaults);
  Arguments& arguments = program.command(
      "table", "The table of finished runs: mean and spread over seeds, at the learning rate and warm-up best on valid",
      {"selectivbench table runs/quick", "selectivbench table runs/quick results/paper.tar.gz",
       "selectivbench table runs/quick --format latex --out table.tex",
       "selectivbench table runs/quick --per-run --format csv"},
      [options] { return run(*options); });
  arguments.positionals("DIR", options->folders, true, "Folders or archives of runs, or folders of those");
  arguments.choice("--format", options->format, table_format_names(), "How the table is written");
  arguments.flag("--per-run", options->per_run, "One line a run instead of one cell a setting");
  arguments.texts("--select", options->select, "KEY",
                  "Also take the best of this key on valid, as of train.lr and train.warmup (e.g. train.weight_decay)");
  arguments.texts("--average", options->average, "KEY", "Also average over this key, as over the seeds");
  arguments.text("--out", options->out, "FILE", "Where it goes, - for standard output");
}

void add_table(Program& program) {
  add_table(program, {});
}

}  // namespace sb::cli
