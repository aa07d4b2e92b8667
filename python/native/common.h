// What the files of the Python module share. Each of them binds one topic; the package in python/selectivbench checks
// arguments, names and documents them.
#pragma once
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sb::python {

namespace py = pybind11;

void bind_config(py::module_& m);
void bind_grammar(py::module_& m);
void bind_task(py::module_& m);
void bind_batches(py::module_& m);
void bind_score(py::module_& m);
void bind_truth(py::module_& m);
void bind_results(py::module_& m);

using Shape = std::vector<py::ssize_t>;

// Memory of `owner` as an array that keeps the owner alive.
template <class T>
py::array_t<T> view(const T* data, const Shape& shape, py::handle owner) {
  return py::array_t<T>(shape, data, owner);
}

template <class T>
py::array_t<T> copied(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// For work without the interpreter lock, on the thread that was called: raises what Ctrl-C asks for.
inline void end_if_interrupted() {
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}
// The same as an answer: true leaves the exception set.
inline bool interrupted() {
  const py::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}

}  // namespace sb::python
