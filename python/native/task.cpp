#include "native/task.h"

namespace sb::python {
namespace {

// The same grammar and samples, other test gaps: nothing is built twice.
std::shared_ptr<PyTask> at_gap(const PyTask& task, int gap) {
  auto out = std::make_shared<PyTask>(task);
  out->gap = gap;
  out->data.task_config = with_gap(task.data.task_config, Split::test, gap);
  out->data.task = make_task(out->data, out->data.task_config);
  return out;
}

std::shared_ptr<PyTask> make_py_task(std::shared_ptr<const Config> config, std::optional<int> gap) {
  const Unlocked here;
  auto out = std::make_shared<PyTask>();
  out->data = make_data(config->resolved.values, &end_if_interrupted);
  out->config = std::move(config);
  return gap ? at_gap(*out, *gap) : out;
}

}  // namespace

void bind_task(py::module_& m) {
  py::class_<PyTask, std::shared_ptr<PyTask>>(m, "Task")
      .def(py::init(&make_py_task))
      .def_property_readonly("config", [](const PyTask& t) { return std::const_pointer_cast<Config>(t.config); })
      .def_readonly("gap", &PyTask::gap)
      .def_property_readonly("number", [](const PyTask& t) { return t.data.task_config.number; })
      .def_property_readonly("objective", [](const PyTask& t) { return to_string(t.data.task_config.objective); })
      .def_property_readonly("noise", [](const PyTask& t) { return t.data.task_config.noise; })
      .def_property_readonly("channels", [](const PyTask& t) { return t.task().shape().channels; })
      .def_property_readonly("answers", [](const PyTask& t) { return t.task().shape().answers; })
      .def_property_readonly("length", [](const PyTask& t) { return t.task().shape().elements; })
      .def_property_readonly("states", [](const PyTask& t) { return t.data.language->states(); })
      .def_property_readonly("text", [](const PyTask& t) { return t.task().canonical_text(); })
      .def("longest", [](const PyTask& t, const std::string& split) { return t.task().max_frames(parse_split(split)); })
      .def("at_gap", &at_gap);
}

}  // namespace sb::python
