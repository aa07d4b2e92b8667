#include "native/task.h"

namespace sb::python {
namespace {

// The same grammar and samples at another point of the test axis: nothing is built twice.
std::shared_ptr<PyTask> at(const PyTask& task, int point) {
  const auto& axis = task.row().axis;
  if (!axis) throw bad_input("task", "the kind of task " + task.row().name + " has no test axis");
  if (point < axis->least || point > axis->most)
    throw bad_input("task", axis->name + ", expected " + std::to_string(axis->least) + ".." +
                                std::to_string(axis->most) + ", got " + std::to_string(point));
  auto out = std::make_shared<PyTask>(task);
  out->point = point;
  out->data.task = task.task().at(Split::test, point);
  return out;
}

std::shared_ptr<PyTask> make_py_task(std::shared_ptr<const Config> config, std::optional<int> point) {
  const Unlocked here;
  auto out = std::make_shared<PyTask>();
  out->data = make_data(config->resolved.values, &end_if_interrupted);
  out->config = std::move(config);
  return point ? at(*out, *point) : out;
}

// The task that update `update` trains on.
std::shared_ptr<PyTask> of_update(const PyTask& task, int64_t update) {
  auto out = std::make_shared<PyTask>(task);
  out->data.task = task.data.train_task(update);
  return out;
}

// First updates of the tasks of train.schedule; [0] without one.
std::vector<int64_t> stages(const PyTask& task) {
  std::vector<int64_t> out;
  for (const TrainingStage& stage : task.data.stages) out.push_back(stage.first);
  return out.empty() ? std::vector<int64_t>{0} : out;
}

// Amplitude of the noise; of another kind than gaps, as its samples have it.
double noise(const PyTask& task) {
  const TaskSection& section = task.config->resolved.values.task;
  if (section.kind == kGapsKind) return section.task.noise;
  Batch one;
  task.task().fill(Split::test, 0, 1, one);
  return one.noise;
}

}  // namespace

void bind_task(py::module_& m) {
  m.def("task_kinds", [] {  // by name: whether it is scored by squared error
    std::map<std::string, bool> out;
    for (const TaskRow& row : task_registry()) out[row.name] = row.loss == Loss::squared_error;
    return out;
  });
  py::class_<PyTask, std::shared_ptr<PyTask>>(m, "Task")
      .def(py::init(&make_py_task))
      .def_property_readonly("config", [](const PyTask& t) { return std::const_pointer_cast<Config>(t.config); })
      .def_readonly("point", &PyTask::point)
      .def_property_readonly("number", [](const PyTask& t) { return t.config->resolved.values.task.task.number; })
      .def_property_readonly("kind", [](const PyTask& t) { return t.row().name; })
      .def_property_readonly("axis",
                             [](const PyTask& t) {
                               return t.row().axis ? std::optional(std::pair(t.row().axis->name, t.row().axis->key))
                                                   : std::nullopt;
                             })
      .def_property_readonly("objective", [](const PyTask& t) { return t.task().objective(); })
      .def_property_readonly("noise", &noise)
      .def_property_readonly("squared_error",
                             [](const PyTask& t) { return t.task().shape().loss == Loss::squared_error; })
      .def_property_readonly("dense", [](const PyTask& t) { return t.task().shape().dense; })
      .def_property_readonly("channels", [](const PyTask& t) { return t.task().shape().channels; })
      .def_property_readonly("answers", [](const PyTask& t) { return t.task().shape().answers; })
      .def_property_readonly("length", [](const PyTask& t) { return t.task().shape().elements; })
      .def_property_readonly("states", [](const PyTask& t) { return t.task().states(); })
      .def_property_readonly("text", [](const PyTask& t) { return t.task().canonical_text(); })
      .def("longest", [](const PyTask& t, const std::string& split) { return t.task().max_frames(parse_split(split)); })
      .def("at", &at)
      .def_property_readonly("stages", &stages)
      .def("of_update", &of_update);
}

}  // namespace sb::python
