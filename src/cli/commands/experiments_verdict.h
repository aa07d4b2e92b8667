#pragma once
#include "cli/program.h"
#include "report/rows.h"

namespace sb::cli {

// Adds `experiments verdict` and `experiments findings`; the group "experiments" must exist.
void add_experiments_verdict(Program& program, SwitchDefaults defaults);

}  // namespace sb::cli
