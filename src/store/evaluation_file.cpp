#include "store/evaluation_file.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/result_fields.h"
#include "store/run_identity.h"
#include "store/seal.h"

namespace sb {

void describe(auto& f, Described<GatePoint> auto& v) {
  f.whole("gap", v.at, 0, 100000);
  f.object("figures", v.figures);
  f.objects("decays", v.decays, 4096);
}

namespace {

namespace fs = std::filesystem;
constexpr size_t most_files = 4096;

void describe_request(auto& f, auto& v) {
  f.text("run_id", v.run_id, 64);
  f.text("split", v.split, 16);
  f.whole("samples", v.samples, 1, most_count);
  f.numbers("gaps", v.at, 0, 100000, 4096);
  f.truth("with_gates", v.with_gates);
  f.text("weights", v.weights, 16);
  f.text("weights_sha256", v.weights_sha256, 64);
  f.whole("update", v.update, 0, most_count);
  f.text("device", v.device, 16);
  f.text("precision", v.precision, 16);
}

void describe_all(auto& f, auto& v) {
  describe_request(f, v);
  f.text("model", v.model);
  f.whole("task", v.task, 0, 1000);
  f.text("objective", v.objective, 64);
  f.objects("points", v.points, 4096);
  f.objects("gates", v.gates, 4096);
  f.object("made", v.made);
}

Json json_of(const SavedEvaluation& evaluation) {
  FieldWriter writer;
  writer.out["evaluation_schema"] = evaluation_schema;
  describe_all(writer, evaluation);
  return std::move(writer.out);
}

// Writes points and their figures on separate lines.
std::string text_of(const Json& json) {
  return json_document(json, 3);
}

std::string numbers_of(const SavedEvaluation& evaluation) {
  Json json = json_of(evaluation);
  json.erase("made");
  return json_line(json);
}

EvaluatedRun run_of(const SavedEvaluation& request) {
  return {request.run_id, request.model, request.task};
}

// Whether the measurements are those that the request asks for: its split, samples, and one point per value of `at`.
bool answers_request(const SavedEvaluation& e) {
  std::vector<std::optional<int>> asked(e.at.begin(), e.at.end()), points, gates;
  if (asked.empty()) asked.emplace_back();
  for (const auto& point : e.points) points.push_back(point.at);
  for (const auto& point : e.gates) gates.push_back(point.at);
  return points == asked && gates == (e.with_gates ? asked : decltype(asked)()) &&
         std::all_of(e.points.begin(), e.points.end(), [&](const Measurement& point) {
           return point.split == e.split && point.samples == e.samples.value_or(point.samples);
         });
}

SavedEvaluation read_evaluation(const std::string& path, const EvaluatedRun& run,
                                const RunTree& tree = RunTree::disk()) {
  const std::string text = tree.read(path, kMaxResultBytes);
  if (!is_sealed(text)) throw bad_input("evaluation", printable(path, 400) + ": SHA-256 mismatch");
  SavedEvaluation out = parse_evaluation(text, path);
  const auto refused = [&](const std::string& expected, const std::string& got) {
    return bad_input("evaluation", "expected " + expected + ", got " + printable(got) + ", " + printable(path, 400));
  };
  if (out.run_id != run.run_id) throw refused("run " + printable(run.run_id), out.run_id);
  if (out.model != run.model) throw refused("the run's model " + printable(run.model), out.model);
  if (out.task != run.task) throw refused("the run's task " + std::to_string(run.task), std::to_string(out.task));
  if (!answers_request(out)) throw refused("the split, samples and points of its request", "others");
  if (evaluation_name(out) != fs::path(path).filename()) {
    throw bad_input("evaluation", printable(path, 400) + ": its name does not match its content");
  }
  return out;
}

std::vector<std::string> evaluation_paths(const std::string& folder, const RunTree& tree = RunTree::disk()) {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& name : tree.names(folder, failed))
    if (name.size() == 26 && name.starts_with("eval-") && name.ends_with(".json"))
      out.push_back((fs::path(folder) / name).string());
  return out;
}

}  // namespace

std::string evaluation_text(const SavedEvaluation& evaluation) {
  return text_of(json_of(evaluation));
}

SavedEvaluation parse_evaluation(std::string_view text, const std::string& file) {
  const nlohmann::json parsed = parse_bounded(text, kMaxResultBytes, "evaluation", file);
  FieldReader reader(parsed, "evaluation", file);
  int schema = 0;
  reader.whole("evaluation_schema", schema, 0, 1'000'000);
  if (schema != evaluation_schema) {
    throw OtherSchema(schema, evaluation_schema,
                      "[evaluation] schema " + std::to_string(schema) + ", this program reads " +
                          std::to_string(evaluation_schema) + ", " + printable(file, 400));
  }
  SavedEvaluation out;
  describe_all(reader, out);
  return out;
}

std::string evaluation_name(const SavedEvaluation& evaluation) {
  FieldWriter writer;
  writer.out["evaluation_schema"] = evaluation_schema;
  describe_request(writer, evaluation);
  // The digest of these bytes names existing files: never change the format.
  const std::string text = writer.out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return "eval-" + sha256_hex(text).substr(0, 16) + ".json";
}

std::string evaluation_fault(const std::string& folder, const SavedEvaluation& request) {
  const std::string path = (fs::path(folder) / evaluation_name(request)).string();
  std::error_code failed;
  const fs::file_status there = fs::symlink_status(path, failed);
  if (!fs::exists(there)) return "";
  if (!fs::is_regular_file(there))
    throw bad_input("eval", printable(path, 400) + ": expected a file, got a link, a folder or a pipe");
  try {
    read_evaluation(path, run_of(request));
  } catch (const OtherSchema&) {
    throw;
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string save_evaluation(const std::string& folder, const SavedEvaluation& evaluation, FileSystem& files) {
  const std::string path = (fs::path(folder) / evaluation_name(evaluation)).string();
  std::error_code failed;
  const bool there = fs::exists(fs::symlink_status(path, failed));
  if (there && evaluation_fault(folder, evaluation).empty()) {
    if (numbers_of(read_evaluation(path, run_of(evaluation))) == numbers_of(evaluation)) return path;
    throw check_failed(
        "eval", "the same request gave other numbers before; remove the file to replace them, " + printable(path, 400));
  }
  if (!there && evaluation_paths(folder).size() >= most_files) {
    throw bad_input("eval",
                    "expected at most " + std::to_string(most_files) + " saved evaluations, " + printable(folder, 400));
  }
  write_file_atomically(path, sealed_json(evaluation_text(evaluation)), files);
  return path;
}

EvaluatedRun evaluated_run(const std::string& run_id, const std::map<std::string, std::string>& config) {
  const auto value = [&](const char* key) {
    const auto found = config.find(key);
    return found == config.end() ? Json() : Json::parse(found->second, nullptr, false);
  };
  const Json model = value("model.name"), task = value("task.number");
  return {run_id, model.is_string() ? model.get<std::string>() : "", task.is_number_integer() ? task.get<int>() : 0};
}

std::vector<SavedEvaluation> load_evaluations(const std::string& folder, const EvaluatedRun& run,
                                              std::vector<std::string>* problems, const RunTree& tree) {
  std::vector<SavedEvaluation> out;
  for (const auto& path : evaluation_paths(folder, tree)) {
    try {
      out.push_back(read_evaluation(path, run, tree));
    } catch (const Error& error) {
      if (!problems) throw;
      problems->emplace_back(error.what());
    }
  }
  return out;
}

std::vector<SavedEvaluation> load_evaluations(const std::string& folder, std::vector<std::string>* problems) {
  if (evaluation_paths(folder).empty()) return {};
  const StoredConfig identity = check_identity(folder);
  return load_evaluations(folder, evaluated_run(identity.run_id, config_map(identity.canonical)), problems);
}

}  // namespace sb
