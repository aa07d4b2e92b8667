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

template <class Fields, class T>
requires std::is_same_v<std::remove_const_t<T>, GatePoint>
void describe(Fields& f, T& v) {
  f.whole("gap", v.gap, 0, 100000);
  f.object("figures", v.figures);
  f.objects("decays", v.decays, 4096);
}

namespace {

namespace fs = std::filesystem;
constexpr size_t most_files = 4096;

template <class Fields, class T>
void describe_request(Fields& f, T& v) {
  f.text("run_id", v.run_id, 64);
  f.text("split", v.split, 16);
  f.whole("samples", v.samples, 1, most_count);
  f.numbers("gaps", v.gaps, 0, 100000, 4096);
  f.truth("with_gates", v.with_gates);
  f.text("weights", v.weights, 16);
  f.text("weights_sha256", v.weights_sha256, 64);
  f.whole("update", v.update, 0, most_count);
  f.text("device", v.device, 16);
  f.text("precision", v.precision, 16);
}

template <class Fields, class T>
void describe_all(Fields& f, T& v) {
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

SavedEvaluation read_evaluation(const std::string& path, const std::string& run_id,
                                const RunTree& tree = RunTree::disk()) {
  const std::string text = tree.read(path, kMaxResultBytes);
  if (!is_sealed(text)) throw bad_input("evaluation", printable(path, 400) + ": SHA-256 mismatch");
  SavedEvaluation out = parse_evaluation(text, path);
  if (out.run_id != run_id) {
    throw bad_input("evaluation", "expected run " + printable(run_id) + ", got " + printable(out.run_id) + ", " +
                                      printable(path, 400));
  }
  if (evaluation_name(out) != fs::path(path).filename()) {
    throw bad_input("evaluation", printable(path, 400) + ": expected the evaluation that its name gives, got another");
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
    read_evaluation(path, request.run_id);
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
    if (numbers_of(read_evaluation(path, evaluation.run_id)) == numbers_of(evaluation)) return path;
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

std::vector<SavedEvaluation> load_evaluations(const std::string& folder, const std::string& run_id,
                                              std::vector<std::string>* problems, const RunTree& tree) {
  std::vector<SavedEvaluation> out;
  for (const auto& path : evaluation_paths(folder, tree)) {
    try {
      out.push_back(read_evaluation(path, run_id, tree));
    } catch (const Error& error) {
      if (!problems) throw;
      problems->emplace_back(error.what());
    }
  }
  return out;
}

std::vector<SavedEvaluation> load_evaluations(const std::string& folder, std::vector<std::string>* problems) {
  if (evaluation_paths(folder).empty()) return {};
  return load_evaluations(folder, check_identity(folder).run_id, problems);
}

}  // namespace sb
