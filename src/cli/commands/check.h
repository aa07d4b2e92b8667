#pragma once
#include "cli/program.h"
#include "config/config_file.h"

namespace sb::cli {

// With the rules of models, which `eval` resolves configs by; without them networks are not compared.
void add_check(Program& program, ModelRules rules);

}  // namespace sb::cli
