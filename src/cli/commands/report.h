#pragma once
#include <string>

#include "cli/program.h"
#include "report/rows.h"

namespace sb::cli {

// With the defaults of every model's switches; without them switches are told beside the paper's alone.
void add_report(Program& program, SwitchDefaults defaults);
// The page of a folder's runs, as `report FOLDER --out OUT` makes it.
void write_report(const std::string& folder, const std::string& out, const SwitchDefaults& defaults);
void add_watch(Program& program, SwitchDefaults defaults);

}  // namespace sb::cli
