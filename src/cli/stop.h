// Handling of Ctrl-C, SIGTERM, SIGHUP and SIGUSR2. If there is nothing to save, the first signal ends the program at
// once with Exit::stopped. While a GracefulStop exists, the signal only sets a flag; the work polls stop_requested()
// and ends cleanly. Signals within two seconds of the first count as one, since a terminal, a batch system and a parent
// process may all send a signal. A later signal ends the program at once.
#pragma once
#include <csignal>

namespace sb::cli {

// Sets the handlers, and resets inherited state: an ignored SIGCHLD, and these signals blocked. Needs only the C
// library, so that it can run before other libraries are initialised.
void watch_for_stop();

// RAII guard: there is something to save or release, so signals only request a stop. After a signal this remains so
// even when the guard is gone, since the program is about to end.
class GracefulStop {
 public:
  GracefulStop();
  ~GracefulStop();
  GracefulStop(const GracefulStop&) = delete;
  GracefulStop& operator=(const GracefulStop&) = delete;
};

bool stop_requested();
void request_stop();              // same effect as a signal
void stop_when_closed(int pipe);  // the same once the other end of the pipe is closed, i.e. its owner is gone
// Sleeps for at most `seconds`; returns true as soon as a stop is requested.
bool stop_within(double seconds);

// While true, a signal that would end the program at once waits until it is false, e.g. during a save.
void defer_exit(bool yes);

}  // namespace sb::cli
