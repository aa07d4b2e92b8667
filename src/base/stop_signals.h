// The signals that ask the program to stop.
#pragma once
#include <csignal>

namespace sb {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR2};

inline sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals) sigaddset(&set, signal);
  return set;
}

}  // namespace sb
