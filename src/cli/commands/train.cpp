#include <memory>

#include "base/number.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/shipped.h"
#include "cli/training.h"
#include "runs/run_store.h"

namespace sb::cli {
namespace {

struct Options {
  std::string file, root;
  std::vector<std::string> overrides;
  int threads = 0;
};

std::string outcome(const Json& result) {
  const std::string name = result.at("model").get<std::string>() + ", task " + result.at("task").dump();
  if (result.at("status") == "diverged") {
    const Json& d = result.at("diverged");
    return name + ": diverged at update " + d.at("update").dump() + ", layer " + d.at("layer").dump() + ", " +
           d.at("tensor").get<std::string>() + "\n";
  }
  std::string out = name + ": test accuracy " + fixed(result.at("test").at("accuracy").get<double>(), 4);
  if (result.contains("ceiling")) out += ", ceiling " + fixed(result.at("ceiling").get<double>(), 4);
  out += ", chance " + fixed(result.at("chance").get<double>(), 4) + "\n";
  if (result.contains("grid")) {
    for (const auto& point : result.at("grid")) {
      out += "  gap " + point.at("gap").dump() + ": " + fixed(point.at("accuracy").get<double>(), 4) + "\n";
    }
  }
  return out;
}

Exit run(const Options& options) {
  const ResolvedConfig config = resolve_config(options.file, options.overrides, model_rules());
  use_threads(options.threads);
  const Exit code = work_on(config, options.root, false);
  const std::string folder = options.root + "/" + config.run_id;
  if (code == Exit::done) print(outcome(load_result(folder)));
  print(folder + "\n");
  return code;
}

}  // namespace

void add_train(Program& program) {
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("train", "Train and test one model; the same command after an interruption goes on where it was",
                      {"selectivbench train configs/example.toml",
                       "selectivbench train configs/example.toml --set model.name=mamba2 --set run.seed=2"},
                      [options] {
                        options->file = shipped_config("train FILE", options->file);
                        return run(*options);
                      });
  arguments.positional("FILE", options->file, true, "The run's config (TOML), or the name of a shipped one");
  add_set(arguments, options->overrides);
  add_root(arguments, options->root, "runs");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
