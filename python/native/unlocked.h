// Work without the interpreter lock. A thread that asks for the lock while Python shuts down is ended on the spot,
// which C++ does not survive; so before that (end_threads, at exit) what other threads have under way is waited for,
// and nothing more of theirs begins.
#pragma once
#include <pybind11/pybind11.h>

#include <optional>

namespace sb::python {

namespace py = pybind11;

class Unlocked {
 public:
  Unlocked();  // with the lock held; throws where Python shuts down and this is another thread
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  static bool refused();  // whether the constructor would throw; needs no lock

 private:
  std::optional<py::gil_scoped_release> unlocked_;
};

// For long work inside Unlocked, on the thread that began it: true where Ctrl-C asks for its end, which leaves the
// exception set, or where Python shuts down.
bool interrupted();
// The same as an exception; and that exception, with the lock held, after interrupted() was true.
void end_if_interrupted();
[[noreturn]] void raise_interruption();

void end_threads();     // before Python shuts down: waits
void forget_threads();  // in a process that was forked off: those of its parent are not there

}  // namespace sb::python
