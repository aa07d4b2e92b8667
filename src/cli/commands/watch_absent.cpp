#include "cli/commands.h"
#include "cli/commands/report.h"

namespace sb::cli {

void add_watch(Program& program, SwitchDefaults) {
  add_watch(program);
}

void add_watch(Program& program) {
  auto folders = std::make_shared<std::vector<std::string>>();
  Arguments& arguments = program.command(
      "watch", "The page of `report`, served and kept up to date; this build has no HTTP library and cannot",
      {"selectivbench watch runs/quick"}, [folders]() -> Exit {
        throw bad_input("watch",
                        "this build has no HTTP library, expected libcpp-httplib-dev when it was built (make deps)");
      });
  arguments.positionals("DIR", *folders, true, "Folders of runs");
}

}  // namespace sb::cli
