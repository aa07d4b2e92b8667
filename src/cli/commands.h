// Every command adds itself with one line here and one in commands.cpp.
#pragma once
#include "cli/program.h"

namespace sb::cli {

void add_grammar(Program& program);
void add_generate(Program& program);
void add_show(Program& program);
void add_ceiling(Program& program);
void add_bench_data(Program& program);

void add_all_commands(Program& program);

}  // namespace sb::cli
