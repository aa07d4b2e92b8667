#include "cli/commands.h"

namespace sb::cli {

void add_torch_commands(Program& program) {
  add_table(program);
  add_report(program);
  add_watch(program);
  add_check(program);
  add_pack(program);
  program.group("experiments", "The paper's claims, tested on runs");
  add_experiments_verdict(program);
  program.absent({"doctor", "models", "verify", "config", "train", "eval", "suite", "experiments run",
                  "experiments queue", "bench kernels", "bench gpu", "bench train"},
                 "requires a program built with libtorch; `make program` in a checkout builds it");
}

}  // namespace sb::cli
