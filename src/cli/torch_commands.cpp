#include "cli/commands.h"
#include "train/rules.h"

namespace sb::cli {

void add_torch_commands(Program& program) {
  add_doctor(program);
  add_models(program);
  add_verify(program);
  add_config(program);
  add_train(program);
  add_eval(program);
  add_suite(program);
  add_experiments(program);
  add_table(program, defaults_of(model_rules()));
  add_report(program, defaults_of(model_rules()));
  add_watch(program, defaults_of(model_rules()));
  add_check(program, model_rules());
  add_pack(program);
  add_experiments_verdict(program, defaults_of(model_rules()));
  add_bench_kernels(program);
  add_bench_gpu(program);
  add_bench_train(program);
}

}  // namespace sb::cli
