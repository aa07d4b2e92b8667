#pragma once
#include "cli/program.h"
#include "report/rows.h"

namespace sb::cli {

// The table with the defaults of every model's switches; without them they are told beside the paper's alone.
void add_table(Program& program, SwitchDefaults defaults);

}  // namespace sb::cli
