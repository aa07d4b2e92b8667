// RAII guard that releases the GIL. If a thread requests the GIL during interpreter shutdown, Python kills the thread,
// which C++ code does not survive. Therefore end_threads(), called at exit, waits for all work in progress on other
// threads and prevents new work there.
#pragma once
#include <pybind11/pybind11.h>

#include <exception>
#include <optional>

namespace sb::python {

namespace py = pybind11;

// Thrown on other threads while the interpreter shuts down. Becomes SystemExit, which ends a thread without a message:
// writing one during shutdown can abort the process.
struct ShuttingDown : std::exception {
  const char* what() const noexcept override { return "the interpreter shuts down"; }
};

class Unlocked {
 public:
  Unlocked();  // call with the GIL held; throws ShuttingDown, except on the exiting thread
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  static bool refused();  // whether the constructor would throw; needs no GIL

 private:
  std::optional<py::gil_scoped_release> unlocked_;
};

// For long work inside Unlocked, on the thread that began it. Returns true on Ctrl-C, with the Python exception set, or
// during shutdown.
bool interrupted();
// end_if_interrupted: throws if interrupted(). raise_interruption: throws that exception, with the GIL held, after
// interrupted() returned true.
void end_if_interrupted();
[[noreturn]] void raise_interruption();

void end_threads();     // call at exit: waits for other threads
void forget_threads();  // call in a forked process: the threads of its parent do not exist there

}  // namespace sb::python
