#include <memory>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/folder.h"
#include "report/layout.h"
#include "report/table.h"

namespace sb::cli {
namespace table_command {

struct Options {
  std::string format = "text", out = "-";
  std::vector<std::string> folders;
  TableChoice choice;
  bool per_run = false;
  SwitchDefaults defaults;
};

Exit run(const Options& options) {
  const TableFormat format = parse_table_format(options.format);
  check_roots(options.folders, "table DIR");
  const Rows rows = read_rows(options.folders, options.choice, options.defaults);
  deliver(options.out, options.per_run ? run_table(rows, format) : cell_table(rows, format));
  // CSV has no place for notes.
  if (format == TableFormat::csv)
    for (const auto& line : head_of(rows)) complain("note: " + line);
  if (format == TableFormat::csv)
    for (const auto& note : rows.notes) complain("note: " + note);
  return Exit::done;
}

}  // namespace table_command

void add_table(Program& program, SwitchDefaults defaults) {
  using namespace table_command;
  auto options = std::make_shared<Options>();
  options->defaults = std::move(defaults);
  Arguments& arguments =
      program.command("table",
                      "Print a table of finished runs: mean and 95 % interval over seeds, at the learning rate and "
                      "warm-up selected on valid",
                      {"selectivbench table runs/quick", "selectivbench table runs/quick results/paper.tar.gz",
                       "selectivbench table results --scale small --where task.number=3 --where model.name=gla,mamba2",
                       "selectivbench table runs/quick --format latex --out table.tex",
                       "selectivbench table runs/quick --per-run --format csv"},
                      [options] { return run(*options); });
  arguments.positionals("DIR", options->folders, true, "Folders or archives of runs, or folders that contain them");
  arguments.choice("--format", options->format, table_format_names(), "Output format");
  arguments.flag("--per-run", options->per_run, "One row per run instead of one cell per setting");
  arguments.text("--scale", options->choice.scale, "NAME",
                 "Only runs with the grammar and the sequences of this scale: quick, small or paper");
  arguments.texts(
      "--where", options->choice.where, "SECTION.KEY=VALUE[,VALUE]",
      "Only runs with one of these values; a list such as [10,20] is one value; run.id=A,B selects runs by id; can be "
      "repeated");
  arguments.texts(
      "--select", options->choice.select, "KEY",
      "Also select this key by its accuracy on valid, like train.lr and train.warmup (e.g. train.weight_decay)");
  arguments.texts("--average", options->choice.average, "KEY", "Also average over this key, like over seeds");
  arguments.text("--out", options->out, "FILE", "Output file, - for standard output");
}

}  // namespace sb::cli
