// Ctrl-C, SIGTERM and SIGUSR2: long work asks here and ends cleanly; a second signal ends the program at once.
#pragma once
#include <string>

namespace sb::cli {

void watch_for_stop();
bool stop_requested();
void end_if_stopped(const std::string& where);  // throws Error(Exit::stopped)

}  // namespace sb::cli
