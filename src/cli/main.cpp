#include <new>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/start.h"

int main(int argc, char** argv) {
  sb::cli::settle_process();
  try {
    sb::cli::Program program;
    sb::cli::add_all_commands(program);
    return program.run(argc, argv);
  } catch (const std::bad_alloc&) {
    sb::cli::complain("[memory] not enough to start");
    return static_cast<int>(sb::Exit::bad_input);
  }
}
