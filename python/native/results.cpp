#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "config/protocol.h"
#include "native/json.h"
#include "native/task.h"
#include "report/folder.h"
#include "report/names.h"
#include "report/table.h"
#include "store/evaluation_file.h"
#include "store/open_run.h"
#include "store/pack.h"
#include "store/result_parts.h"
#include "store/run_check.h"
#include "store/run_store.h"

namespace sb::python {
namespace {

// Folder, result and saved measurements of every finished run below the roots; what was left out, a line each.
py::tuple load_runs(const std::vector<std::string>& roots) {
  py::list runs;
  RunTree tree;
  FoundRuns found;
  std::vector<std::string> notes;
  {
    const Unlocked here;
    std::vector<std::string> folders;
    for (const auto& root : roots) {
      expect_folder_or_archive(root, "runs");
      FoundFolders below = find_runs(root, tree);
      folders.insert(folders.end(), below.runs.begin(), below.runs.end());
      notes.insert(notes.end(), below.notes.begin(), below.notes.end());
      for (const auto& archive : below.damaged) notes.push_back(archive.problem);
    }
    found = read_runs(folders, tree);
    notes.insert(notes.end(), found.notes.begin(), found.notes.end());
  }
  for (const auto& run : found.runs) {
    std::vector<std::string> saved;
    for (const auto& each : run.evaluations) saved.push_back(json_of<Measurement>(each));
    runs.append(py::make_tuple(run.folder, to_json(run.result).dump(), saved));
  }
  return py::make_tuple(runs, notes);
}

template <class T>
py::array array_of(const StoredTensor& tensor) {
  const Shape shape(tensor.shape.begin(), tensor.shape.end());
  return py::array_t<T>(shape, reinterpret_cast<const T*>(tensor.bytes.data()));  // copies
}

py::array to_array(const StoredTensor& tensor) {
  switch (tensor.dtype) {
    case Dtype::f32:
      return array_of<float>(tensor);
    case Dtype::f64:
      return array_of<double>(tensor);
    case Dtype::i64:
      return array_of<int64_t>(tensor);
    case Dtype::i32:
      return array_of<int32_t>(tensor);
    case Dtype::u8:
      return array_of<uint8_t>(tensor);
    default:
      break;
  }
  // Kinds that numpy lacks or few use, widened; float holds every bfloat16 and half exactly.
  const std::vector<double> wide = tensor.as_doubles();
  const std::vector<float> values(wide.begin(), wide.end());
  return py::array_t<float>(Shape(tensor.shape.begin(), tensor.shape.end()), values.data());
}

py::dict load_weights(const std::string& folder) {
  std::optional<Safetensors> file;
  {
    const Unlocked here;
    const StoredConfig identity = check_identity(folder);
    file = open_weights(folder, identity.run_id, open_result(folder));
  }
  py::dict out;
  for (const auto& tensor : file->tensors()) out[py::str(tensor.name)] = to_array(tensor);
  return out;
}

std::string table(const std::vector<std::string>& roots, const std::string& format, bool per_run) {
  const TableFormat as = parse_table_format(format);
  const Unlocked here;
  check_roots(roots, "table");
  const Rows rows = read_rows(roots);
  return per_run ? run_table(rows, as) : cell_table(rows, as);
}

// What a caller of record() declares and measured.
struct Recorded {
  int64_t params = 0;
  std::optional<int64_t> state_size;
  std::optional<std::string> test, valid;  // measurements as JSON
  std::vector<std::string> grid;
  std::string made;  // provenance as JSON
};

Result result_of(const PyTask& task, const Config& config, const Recorded& recorded) {
  Result out = result_header(config.resolved, task.data, config.resolved.values.train.updates);
  out.run_id = config.resolved.run_id;
  out.status = "done";
  out.params = recorded.params;
  out.state_size = recorded.state_size;
  out.chance = 1.0 / static_cast<double>(task.task().shape().answers);
  if (recorded.test) out.test = from_json<Measurement>(*recorded.test, "test");
  if (recorded.valid) out.valid = from_json<Measurement>(*recorded.valid, "valid");
  for (const auto& point : recorded.grid) out.grid.push_back(from_json<Measurement>(point, "grid"));
  out.made = from_json<Provenance>(recorded.made, "made");
  return parse_result(to_json(out).dump(), "the recorded result");  // held to the bounds of any other
}

bool same_tensors(const Safetensors& file, const std::vector<NamedBytes>& tensors) {
  return file.tensors().size() == tensors.size() &&
         std::all_of(tensors.begin(), tensors.end(), [&](const NamedBytes& now) {
           return std::any_of(file.tensors().begin(), file.tensors().end(), [&](const StoredTensor& before) {
             return before.name == now.name && before.shape == now.shape && dtype_name(before.dtype) == now.dtype &&
                    std::memcmp(before.bytes.data(), now.data, before.bytes.size()) == 0;
           });
         });
}

// Whether the run stands there as it would be written. Refuses to replace other numbers or weights.
bool stands(const std::string& folder, const Result& result, const std::vector<NamedBytes>& tensors) {
  if (!has_result(folder)) return false;
  const auto refuse = [&](const std::string& what) {
    return bad_input("record", printable(folder, 400) + ": has a result with other " + what +
                                   ", expected overwrite=True, another name or other hyper-parameters");
  };
  const Result before = load_result(folder);
  Result bare = before, now = result;
  bare.files.clear();
  now.files.clear();
  if (comparable_text(bare) != comparable_text(now)) throw refuse("numbers");
  if (tensors.empty()) return true;
  if (!before.files.contains("final.safetensors")) return false;
  if (!same_tensors(open_weights(folder, before.run_id, before), tensors)) throw refuse("weights");
  return true;
}

// The folder.
std::string record(const std::string& root, const PyTask& task, const Config& config, const Recorded& recorded,
                   const std::vector<std::pair<std::string, py::array>>& weights, bool overwrite) {
  std::vector<NamedBytes> tensors;
  for (const auto& [name, array] : weights) {
    const bool is_double = py::isinstance<py::array_t<double>>(array);
    tensors.push_back({name, is_double ? "F64" : "F32", {array.shape(), array.shape() + array.ndim()}, array.data()});
  }
  const Unlocked here;
  const Result result = result_of(task, config, recorded);
  RunStore store(root, config.resolved);
  if (overwrite || !stands(store.folder(), result, tensors)) store.finish(result, tensors);
  return store.folder();
}

// Packs the finished runs below a folder into an archive; what was left out, a line each.
std::vector<std::string> pack(const std::string& root, const std::string& file) {
  const Unlocked here;
  const Packed packed = pack_runs(root, file);
  write_archive(file, packed.files);
  return packed.notes;
}

// Scale and protocol of a run, by the config of its result; empty if they have no name.
std::pair<std::string, std::string> scale_and_protocol(const std::map<std::string, std::string>& config) {
  return {scale_name(config), protocol_label(config)};
}

std::string check(const std::string& folder) {
  const Unlocked here;
  const RunReport report = inspect_run(folder);
  std::string out = to_string(report.state);
  for (const auto& problem : report.problems) out += "\n" + problem;
  return out;
}

}  // namespace

void bind_results(py::module_& m) {
  py::class_<Recorded>(m, "Recorded")
      .def(py::init<>())
      .def_readwrite("params", &Recorded::params)
      .def_readwrite("state_size", &Recorded::state_size)
      .def_readwrite("test", &Recorded::test)
      .def_readwrite("valid", &Recorded::valid)
      .def_readwrite("grid", &Recorded::grid)
      .def_readwrite("made", &Recorded::made);
  m.def("load_runs", &load_runs);
  m.def("load_weights", &load_weights);
  m.def("table", &table);
  m.def("record", &record);
  m.def("pack", &pack);
  m.def("scale_and_protocol", &scale_and_protocol);
  m.def("check", &check);
}

}  // namespace sb::python
