#include "native/unlocked.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace sb::python {
namespace {

constexpr auto kExitPatience = std::chrono::milliseconds(2);

// Of the process, as the interpreter lock is.
int working = 0;  // Unlocked there are; read and written with the lock held
std::atomic<bool> ending = false;
std::atomic<std::thread::id> ending_thread;

}  // namespace

bool Unlocked::refused() {
  return ending && ending_thread.load() != std::this_thread::get_id();
}

Unlocked::Unlocked() {
  if (refused()) throw ShuttingDown();
  ++working;
  unlocked_.emplace();
}

Unlocked::~Unlocked() {
  unlocked_.reset();
  --working;
}

bool interrupted() {
  if (Unlocked::refused()) return true;
  const py::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}

void end_if_interrupted() {
  if (!interrupted()) return;
  if (Unlocked::refused()) throw ShuttingDown();
  const py::gil_scoped_acquire lock;
  throw py::error_already_set();
}

void raise_interruption() {
  if (PyErr_Occurred() == nullptr) throw ShuttingDown();
  throw py::error_already_set();
}

void end_threads() {
  ending_thread = std::this_thread::get_id();
  ending = true;
  while (working > 0) {
    {
      const py::gil_scoped_release unlocked;
      std::this_thread::sleep_for(kExitPatience);
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

void forget_threads() {
  working = 0;
}

}  // namespace sb::python
