#include "cli/commands.h"

namespace sb::cli {

void add_all_commands(Program& program) {
  add_grammar(program);
  add_generate(program);
  add_show(program);
  add_ceiling(program);
  add_bench_data(program);
  add_rank(program);
  add_submit(program);
  add_torch_commands(program);
}

}  // namespace sb::cli
