// Ctrl-C, SIGTERM, SIGHUP and SIGUSR2. As long as there is nothing to save, the first one ends the program at once with
// Exit::stopped. While a GracefulStop exists it is only noted, and work asks for it (stop_requested) and ends cleanly.
// Signals within two seconds of the first then count as one (a terminal, a batch system and a parent process may all
// send theirs); a later one ends the program at once.
#pragma once
#include <csignal>

namespace sb::cli {

// Sets the handlers. Also undoes what was inherited: SIGCHLD ignored, and these signals blocked. Needs no library but
// the C library, so that it can run before any other is initialised.
void watch_for_stop();
sigset_t stop_signals();

// RAII guard: there is something to save or to give back, so signals ask for a stop. They still do after it where one
// came meanwhile: the program is on its way out.
class GracefulStop {
 public:
  GracefulStop();
  ~GracefulStop();
  GracefulStop(const GracefulStop&) = delete;
  GracefulStop& operator=(const GracefulStop&) = delete;
};

bool stop_requested();
void request_stop();              // as a signal would
void stop_when_closed(int pipe);  // as a signal would, once the other end of this pipe is closed: its holder is gone
// Sleeps at most this long; true as soon as a stop was asked for.
bool stop_within(double seconds);

// While `yes`, a signal that would end the program at once waits until it is false: a save is under way.
void hold_end(bool yes);

}  // namespace sb::cli
