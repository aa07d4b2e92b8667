#pragma once
#include "cli/program.h"
#include "report/rows.h"

namespace sb::cli {

// `experiments verdict` and `experiments findings`; the group "experiments" comes first.
void add_experiments_verdict(Program& program, SwitchDefaults defaults);

}  // namespace sb::cli
