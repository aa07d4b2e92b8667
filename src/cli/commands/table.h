#pragma once
#include "cli/program.h"
#include "report/rows.h"

namespace sb::cli {

// `defaults`: defaults of every model's switches; without them, switches are compared only with the paper's.
void add_table(Program& program, SwitchDefaults defaults);

}  // namespace sb::cli
