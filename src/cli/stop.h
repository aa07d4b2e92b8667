// Ctrl-C, SIGTERM, SIGHUP and SIGUSR2: long work asks here and ends cleanly. Signals within two seconds of the first
// are one (a terminal, a batch system and a parent process may all send theirs); a later one ends the program at once.
#pragma once
#include <csignal>
#include <string>

namespace sb::cli {

// Also undoes what was inherited: SIGCHLD ignored, and these signals blocked.
void watch_for_stop();
sigset_t stop_signals();
bool stop_requested();
void request_stop();                            // as a signal would
void stop_when_closed(int pipe);                // and where the other end of this pipe is closed: its holder is gone
void end_if_stopped(const std::string& where);  // throws Error(Exit::stopped)
// Sleeps at most this long; true as soon as a stop was asked for.
bool stop_within(double seconds);

// While `yes`, a signal that would end the program at once waits until it is false: a save is under way.
void hold_end(bool yes);

}  // namespace sb::cli
