// Shared declarations of the native module. Each source file binds one topic. The package python/selectivbench checks
// arguments, names and documents the bindings.
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
#include "native/unlocked.h"

namespace sb::python {

void bind_config(py::module_& m);
void bind_grammar(py::module_& m);
void bind_task(py::module_& m);
void bind_batches(py::module_& m);
void bind_score(py::module_& m);
void bind_truth(py::module_& m);
void bind_results(py::module_& m);

using Shape = std::vector<py::ssize_t>;

// Array view of memory that belongs to `owner`; the view keeps the owner alive.
template <class T>
py::array_t<T> view(const T* data, const Shape& shape, py::handle owner) {
  return py::array_t<T>(shape, data, owner);
}

template <class T>
py::array_t<T> copied(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// Calls `work` with the GIL released.
template <class Work>
auto unlocked(const Work& work) {
  const Unlocked here;
  return work();
}

}  // namespace sb::python
