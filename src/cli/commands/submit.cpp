// Starts the Python package: packs a ranked mixer, or checks what others packed (python/selectivbench/submission.py).
#include <memory>

#include "cli/commands.h"
#include "cli/package.h"

namespace sb::cli {
namespace submit_command {

struct Options {
  std::string python = "python3", out, source;
  std::vector<std::string> folders;
  bool check = false, card = false;
};

Exit run(const Options& options) {
  std::vector<std::string> words{"submit"};
  if (options.check) words.emplace_back("--check");
  if (options.card) words.emplace_back("--card");
  if (!options.out.empty()) words.push_back("--out=" + options.out);
  if (!options.source.empty()) words.push_back("--source=" + options.source);
  words.emplace_back("--");
  words.insert(words.end(), options.folders.begin(), options.folders.end());
  become_package("submit", options.python, std::move(words));
}

}  // namespace submit_command

void add_submit(Program& program) {
  using namespace submit_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("submit", "Pack a ranked mixer for a pull request, or check and score packed ones again",
                      {"selectivbench submit runs/rank --source my_mixer.py --out submissions/my-mixer",
                       "selectivbench submit --check submissions/my-mixer"},
                      [options] { return run(*options); });
  arguments.positionals("DIR", options->folders, true, "Folder of a ranking; with --check or --card: submissions");
  arguments.text("--out", options->out, "DIR", "Folder to write; default: submissions/ and the mixer's name");
  arguments.text("--source", options->source, "FILE", "Source of the mixer, published with the result");
  arguments.flag("--check", options->check, "Check seals and protocol, and score the predictions again");
  arguments.flag("--card", options->card, "Check, and draw the card again: it shows ranks among the shipped models");
  arguments.text("--python", options->python, "PROGRAM", "Python interpreter with the package selectivbench");
}

}  // namespace sb::cli
