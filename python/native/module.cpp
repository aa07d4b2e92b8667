#include "base/version.h"
#include "native/common.h"

namespace sb::python {
namespace {

// One line each, as the program prints them: what was given is wrong, a file cannot be written, all else.
void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyObject* kind = error.code() == Exit::bad_input      ? PyExc_ValueError
                     : error.code() == Exit::cannot_write ? PyExc_OSError
                                                          : PyExc_RuntimeError;
    PyErr_SetString(kind, error.what());
  } catch (const ShuttingDown& error) {
    PyErr_SetString(PyExc_SystemExit, error.what());
  }
}

}  // namespace
}  // namespace sb::python

PYBIND11_MODULE(_native, m) {
  using namespace sb::python;
  py::register_exception_translator(&translate);
  m.attr("version") = sb::program_version();
  m.attr("commit") = sb::program_commit();
  m.attr("compiler") = sb::compiler_name();
  m.def("end_threads", &end_threads);
  m.def("forget_threads", &forget_threads);
  bind_config(m);
  bind_grammar(m);
  bind_task(m);
  bind_batches(m);
  bind_score(m);
  bind_truth(m);
  bind_results(m);
}
