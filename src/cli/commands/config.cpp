#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/shipped.h"
#include "cli/training.h"

namespace sb::cli {
namespace {

struct Options {
  std::string file, json;
  std::vector<std::string> overrides;
};

Exit show(const Options& options) {
  const ResolvedConfig config = resolve_config(options.file, options.overrides, model_rules());
  if (!options.json.empty()) deliver(options.json, config_json(config));
  if (options.json != "-") print("# run " + config.run_id + "\n" + config_toml(config, true));
  return Exit::done;
}

Exit keys(const Options& options) {
  if (!options.json.empty()) deliver(options.json, parameter_json());
  if (options.json != "-") print(parameter_table());
  return Exit::done;
}

}  // namespace

void add_config(Program& program) {
  auto shown = std::make_shared<Options>();
  Arguments& arguments =
      program.command("config show", "A config with everything it means, and where each value comes from",
                      {"selectivbench config show configs/example.toml --set train.lr=5e-4"}, [shown] {
                        shown->file = shipped_config("config show FILE", shown->file);
                        return show(*shown);
                      });
  arguments.positional("FILE", shown->file, true, "The run's config (TOML), or the name of a shipped one");
  add_set(arguments, shown->overrides);
  arguments.text("--json", shown->json, "FILE", "Write it as JSON, - for standard output");

  auto listed = std::make_shared<Options>();
  Arguments& list = program.command("config keys", "Every key a config can have: range, default, meaning",
                                    {"selectivbench config keys"}, [listed] { return keys(*listed); });
  list.text("--json", listed->json, "FILE", "Write it as JSON, - for standard output");
}

}  // namespace sb::cli
