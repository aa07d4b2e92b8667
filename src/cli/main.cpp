#include <unistd.h>

#include <new>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/start.h"

namespace {

int run(int argc, char** argv) {
  try {
    sb::cli::Program program;
    sb::cli::add_all_commands(program);
    return program.run(argc, argv);
  } catch (const std::bad_alloc&) {
    sb::cli::complain("[memory] not enough memory to start");
    return static_cast<int>(sb::Exit::bad_input);
  }
}

}  // namespace

int main(int argc, char** argv) {
  sb::cli::settle_process();
  const int code = run(argc, argv);
#ifdef SB_INSTRUMENTED  // sanitizers and coverage report at the end
  return code;
#else
  ::_exit(code);  // everything is written; libtorch's destructors take 70 ms and may wait for its threads
#endif
}
