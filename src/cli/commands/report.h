#pragma once
#include <string>

#include "cli/program.h"
#include "report/rows.h"

namespace sb::cli {

// `defaults`: defaults of every model's switches; without them, switches are compared only with the paper's.
void add_report(Program& program, SwitchDefaults defaults);
// Writes the page of a folder's runs, like `report FOLDER --out OUT`.
void write_report(const std::string& folder, const std::string& out, const SwitchDefaults& defaults);
void add_watch(Program& program, SwitchDefaults defaults);

}  // namespace sb::cli
