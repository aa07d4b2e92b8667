#include "cli/stop.h"

#include <unistd.h>

#include <csignal>

#include "base/error.h"

namespace sb::cli {
namespace {

volatile std::sig_atomic_t requested = 0;

void on_signal(int) {
  if (requested != 0) ::_exit(static_cast<int>(Exit::stopped));
  requested = 1;
}

}  // namespace

void watch_for_stop() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR2, &action, nullptr);
}

bool stop_requested() {
  return requested != 0;
}

void end_if_stopped(const std::string& where) {
  if (stop_requested()) throw Error(Exit::stopped, "[" + where + "] stopped, nothing was written");
}

}  // namespace sb::cli
