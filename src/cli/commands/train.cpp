#include <memory>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/shipped.h"
#include "cli/training.h"
#include "store/result_parts.h"
#include "store/run_store.h"
#include "suites/suite.h"

namespace sb::cli {
namespace train_command {

struct Options {
  std::string asked, file, root;
  std::vector<std::string> overrides;
  int threads = 0;
};

std::string outcome(const Result& result) {
  const std::string name = printable(result.model) + ", task " + task_name(result);
  if (result.divergence) {
    const DivergenceFigure& d = *result.divergence;
    return name + ": diverged at update " + std::to_string(d.update) + ", layer " + std::to_string(d.layer) + ", " +
           printable(d.tensor) + "\n";
  }
  std::string out = name;
  out += result.test ? ": test " + accuracy_text(*result.test) : ": no test accuracy, the output was not finite";
  out += (result.test && result.test->mse ? "" : ", chance " + fixed(result.chance, 4)) + "\n";
  for (const auto& point : result.grid) {
    out += "  " + printable(point.axis_name()) + " " + std::to_string(point.at.value_or(0)) + ": " +
           accuracy_text(point) + "\n";
  }
  return out;
}

Exit run(const Options& options) {
  const RankPlace place = rank_place(process_environment());
  const bool without_gpus = gpus_are_hidden();
  see_own_gpu(place);
  if (restore_config(options.file)) complain("warning: " + options.file + ": was modified; rewritten from config.json");
  const std::string text = read_config_text(options.file);
  if (is_suite(text, options.file))
    throw bad_input("train FILE",
                    "expected the config of one run, got a suite; use `suite " + printable(options.asked, 200) + "`");
  ModelRules rules = run_rules();
  rules.shipped = shipped_folder();
  const ResolvedConfig config =
      with_gpu(place, [&] { return resolve_config_text(text, options.file, options.overrides, rules); });
  if (place.rank == 0)
    for (const auto& note : config.notes) complain("note: " + note);
  if (!without_gpus) expect_gpu(config, place);
  tell_unusable_gpu({config});
  use_threads(options.threads, place.local_world_size);
  const Exit code = place.grouped ? work_together(config, options.root, place) : work_on(config, options.root, false);
  if (place.rank != 0) return code;
  const std::string folder = options.root + "/" + config.run_id;
  if (code == Exit::done) print(outcome(load_result(folder)));
  print(one_line(folder) + "\n");
  return code;
}

}  // namespace train_command

void add_train(Program& program) {
  using namespace train_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "train",
      "Train and test one model; after an interruption the same command resumes. Under torchrun or srun, several "
      "processes train the run together (docs/ranks.md)",
      {"selectivbench train configs/example.toml",
       "selectivbench train configs/example.toml --set model.name=mamba2 --set run.seed=2",
       "torchrun --no_python --nproc_per_node 2 selectivbench train configs/example.toml"},
      [options] {
        options->asked = options->file;
        options->file = shipped_config("train FILE", options->file);
        return run(*options);
      });
  arguments.positional("FILE", options->file, true, "Config of the run (TOML file), or the name of a shipped config");
  add_set(arguments, options->overrides);
  add_root(arguments, options->root, "runs");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
