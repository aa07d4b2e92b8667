#include "cli/commands.h"

int main(int argc, char** argv) {
  sb::cli::Program program;
  sb::cli::add_all_commands(program);
  return program.run(argc, argv);
}
