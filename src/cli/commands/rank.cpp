// Starts the Python package: a mixer in PyTorch is built, trained and ranked there (python/selectivbench/ranking.py).
#include <memory>

#include "cli/commands.h"
#include "cli/package.h"

namespace sb::cli {
namespace rank_command {

struct Options {
  std::string python = "python3", mixer, budget = "10min", out = "runs/rank", name, task, peers, device,
              residual = "post";
  std::vector<std::string> skip;
};

Exit run(const Options& options) {
  std::vector<std::string> words{"rank", options.mixer};
  const auto add = [&words](const std::string& name, const std::string& value) { words.push_back(name + "=" + value); };
  add("--budget", options.budget);
  add("--out", options.out);
  add("--residual", options.residual);
  if (!options.name.empty()) add("--name", options.name);
  if (!options.task.empty()) add("--task", options.task);
  if (!options.peers.empty()) add("--peers", options.peers);
  if (!options.device.empty()) add("--device", options.device);
  for (const auto& check : options.skip) add("--skip", check);
  become_package("rank", options.python, std::move(words));
}

}  // namespace rank_command

void add_rank(Program& program) {
  using namespace rank_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "rank", "Train a mixer written in PyTorch and rank it among the shipped models",
      {"selectivbench rank my_mixer.py:MyMixer",
       "selectivbench rank my_mixer.py:MyMixer --budget 30min --out runs/mine --python env/bin/python3"},
      [options] { return run(*options); });
  arguments.positional("FILE:NAME", options->mixer, true,
                       "Python file, and the class or function in it that is called with a width and returns a mixer");
  arguments.text("--budget", options->budget, "TIME",
                 "Total time, such as 90s, 10min or 1.5h; a budget that is too small is refused");
  arguments.text("--out", options->out, "DIR", "Folder for plan, runs and card; the same command resumes there");
  arguments.text("--name", options->name, "NAME", "Name on the card; default: the mixer's");
  arguments.text("--task", options->task, "TASK",
                 "One task, by its number or the name of its kind; default: all of the paper's tasks");
  arguments.text("--peers", options->peers, "SCALE",
                 "Scale of the shipped results, or a file of results; default: small on a GPU, else quick");
  arguments.choice("--device", options->device, {"cpu", "cuda"},
                   "Device to train on; default: cuda if torch has a GPU, else cpu");
  arguments.choice("--residual", options->residual, {"post", "pre"}, "Residual around the mixer");
  arguments.texts("--skip", options->skip, "CHECK", "Check of the mixer to leave out; can be repeated");
  arguments.text("--python", options->python, "PROGRAM", "Python interpreter with torch and the package selectivbench");
}

}  // namespace sb::cli
