#pragma once
#include "cli/program.h"
#include "config/config_file.h"

namespace sb::cli {

// `rules`: the rules of models with which `eval` resolves configs; without them, networks are not compared.
void add_check(Program& program, ModelRules rules);

}  // namespace sb::cli
