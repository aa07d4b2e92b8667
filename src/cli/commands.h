// Registration of commands: one line here and one in commands.cpp per command.
#pragma once
#include "cli/program.h"

namespace sb::cli {

void add_grammar(Program& program);
void add_generate(Program& program);
void add_show(Program& program);
void add_ceiling(Program& program);
void add_bench_data(Program& program);
void add_rank(Program& program);
void add_submit(Program& program);

void add_bench_gpu(Program& program);
void add_bench_kernels(Program& program);
void add_bench_train(Program& program);
void add_check(Program& program);
void add_config(Program& program);
void add_doctor(Program& program);
void add_eval(Program& program);
void add_experiments(Program& program);
void add_experiments_verdict(Program& program);
void add_models(Program& program);
void add_pack(Program& program);
void add_report(Program& program);
void add_suite(Program& program);
void add_table(Program& program);
void add_train(Program& program);
void add_verify(Program& program);
void add_watch(Program& program);

void add_torch_commands(Program& program);  // commands on runs; without libtorch, only those that do not need it
void add_all_commands(Program& program);

}  // namespace sb::cli
