#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "report/summary.h"

namespace sb::cli {
namespace {

struct Options {
  std::string folder, format = "text", out = "-";
};

Exit run(const Options& options) {
  deliver(options.out, render(summarise_folder(options.folder), parse_table_format(options.format)));
  return Exit::done;
}

}  // namespace

void add_table(Program& program) {
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("table", "The table of finished runs: model by task, mean and spread over seeds",
                      {"selectivbench table runs/quick", "selectivbench table runs/quick --format md --out table.md"},
                      [options] { return run(*options); });
  arguments.positional("DIR", options->folder, true, "Folder of runs");
  arguments.choice("--format", options->format, {"text", "md", "csv", "json"}, "How the table is written");
  arguments.text("--out", options->out, "FILE", "Where it goes, - for standard output");
}

}  // namespace sb::cli
