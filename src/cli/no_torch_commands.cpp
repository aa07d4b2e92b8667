#include "cli/commands.h"

namespace sb::cli {

void add_torch_commands(Program&) {}

}  // namespace sb::cli
