#include "runs/run_store.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/sha256.h"
#include "runs/events.h"
#include "runs/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr const char* metrics_tensor = "run.metrics";
constexpr size_t anything = std::numeric_limits<size_t>::max();

std::string make_folder(const std::string& root, const std::string& run_id) {
  const fs::path folder = fs::path(root) / run_id;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw cannot_write("run", "cannot make " + folder.string() + ": " + failed.message());
  return folder.string();
}

std::string read_if_there(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? read_file(path, anything) : std::string();
}

void write_if_changed(const std::string& path, const std::string& content, FileSystem& files) {
  if (read_if_there(path) != content) write_file_atomically(path, content, files);
}

// What a killed process left of a file it was writing. Only the holder of the lock may call this.
void remove_partial_files(const std::string& folder, FileSystem& files) {
  std::vector<std::string> stale;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.path().filename().string().find(".partial-") != std::string::npos) stale.push_back(entry.path().string());
  for (const auto& path : stale) files.remove(path);
}

std::string file_digest(const std::string& path) {
  return sha256_hex(read_file(path, anything));
}

}  // namespace

RunStore::RunStore(const std::string& root, const ResolvedConfig& config, FileSystem& files)
    : run_id_(config.run_id), folder_(make_folder(root, config.run_id)), files_(files), lock_(path("lock")) {
  remove_partial_files(folder_, files_);
  write_config(config);
}

std::string RunStore::path(const std::string& name) const {
  return (fs::path(folder_) / name).string();
}

void RunStore::write_config(const ResolvedConfig& config) {
  const std::string copy = "automaton.json";
  if (const auto& automaton = config.values.grammar.file) write_if_changed(path(copy), automaton->text, files_);
  const std::string toml = config_toml(config, false, copy);
  write_if_changed(path("config.toml"), toml, files_);
  std::string json = "{\n  \"run_id\": " + json_quoted(run_id_) +
                     ",\n  \"config_toml_sha256\": " + json_quoted(sha256_hex(toml)) +
                     ",\n  \"canonical\": " + config.canonical + "\n}";
  write_if_changed(path("config.json"), sealed_json(json), files_);
}

std::optional<Checkpoint> RunStore::resume(std::vector<std::string>& warnings) {
  rows_.clear();
  timing_.clear();
  auto checkpoint = load_newest_checkpoint(folder_, run_id_, warnings);
  if (!checkpoint) return std::nullopt;
  const auto bytes = checkpoint->file.at(metrics_tensor).bytes;
  rows_ = parse_metrics({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, metrics_tensor);
  try {
    for (auto& row : parse_metrics(read_if_there(path("timing.jsonl")), path("timing.jsonl")))
      if (row.update <= checkpoint->update) timing_.push_back(std::move(row));
  } catch (const Error& error) {
    warnings.emplace_back(error.what());
  }
  return checkpoint;
}

void RunStore::add(MetricRow row) {
  rows_.push_back(std::move(row));
}
void RunStore::add_timing(MetricRow row) {
  timing_.push_back(std::move(row));
}

void RunStore::write_rows() {
  std::map<int64_t, double> wall;
  for (const auto& row : timing_)
    for (const auto& [name, value] : row.values)
      if (name == "wall") wall[row.update] = value;
  write_file_atomically(path("metrics.jsonl"), metric_lines(rows_), files_);
  write_file_atomically(path("timing.jsonl"), metric_lines(timing_), files_);
  write_file_atomically(path("events.out.tfevents.0.selectivbench"), encode_events(rows_, wall), files_);
}

void RunStore::save(int64_t update, const std::vector<NamedBytes>& tensors,
                    std::map<std::string, std::string> metadata) {
  write_rows();
  const std::string text = metric_lines(rows_);
  std::vector<NamedBytes> all = tensors;
  all.push_back({metrics_tensor, "U8", {static_cast<int64_t>(text.size())}, text.data()});
  metadata["run_id"] = run_id_;
  save_checkpoint(folder_, update, all, std::move(metadata), files_);
}

void RunStore::finish(Result result, const std::vector<NamedBytes>& weights,
                      std::map<std::string, std::string> metadata) {
  write_rows();
  result.run_id = run_id_;
  result.files = {{"metrics.jsonl", sha256_hex(metric_lines(rows_))}};
  if (!weights.empty()) {
    metadata["run_id"] = run_id_;
    const std::string content = sealed_safetensors(weights, std::move(metadata));
    write_file_atomically(path("final.safetensors"), content, files_);
    result.files["final.safetensors"] = sha256_hex(content);
  }
  write_file_atomically(path("result.json"), sealed_json(result_text(result)), files_);
}

bool has_result(const std::string& folder) {
  try {
    load_result(folder);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string load_result_text(const std::string& folder) {
  const std::string path = (fs::path(folder) / "result.json").string();
  std::string text = read_file(path, largest_result);
  if (!is_sealed(text)) throw bad_input("result", path + ": its bytes do not fit its sha256");
  return text;
}

Result load_result(const std::string& folder) {
  return parse_result(load_result_text(folder), (fs::path(folder) / "result.json").string());
}

std::vector<std::string> find_runs(const std::string& root) {
  std::vector<std::string> folders;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root, failed))
    if (fs::is_regular_file(entry.path() / "config.json", failed)) folders.push_back(entry.path().string());
  if (fs::is_regular_file(fs::path(root) / "config.json", failed)) folders.push_back(root);
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<std::string> verify_run(const std::string& folder) {
  std::vector<std::string> problems;
  const auto attempt = [&](const auto& check) {
    try {
      check();
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    } catch (const nlohmann::json::exception&) {
      problems.push_back("[run] " + folder + ": a sealed file lacks a field");
    }
  };
  const auto expect = [&](const std::string& name, const std::string& digest) {
    const std::string path = (fs::path(folder) / name).string();
    if (file_digest(path) != digest) throw check_failed("run", path + ": its bytes do not fit its digest");
  };
  attempt([&] {
    const std::string path = (fs::path(folder) / "config.json").string();
    const std::string text = read_file(path, anything);
    if (!is_sealed(text)) throw check_failed("run", path + ": its bytes do not fit its sha256");
    expect("config.toml", nlohmann::json::parse(text).at("config_toml_sha256").get<std::string>());
  });
  attempt([&] {
    const auto result = load_result(folder);
    for (const auto& [name, digest] : result.files) expect(name, digest);
  });
  for (const auto& stored : list_checkpoints(folder)) attempt([&] { load_sealed_safetensors(stored.path); });
  return problems;
}

}  // namespace sb
