#pragma once
#include "cli/program.h"
#include "report/rows.h"

namespace sb::cli {

// With the defaults of every model's switches; without them switches are told beside the paper's alone.
void add_report(Program& program, SwitchDefaults defaults);
void add_watch(Program& program, SwitchDefaults defaults);

}  // namespace sb::cli
