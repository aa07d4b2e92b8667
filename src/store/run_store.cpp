#include "store/run_store.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "store/events.h"
#include "store/run_check.h"
#include "store/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr const char* metrics_tensor = "run.metrics";

std::string stored_name(const Checkpoint& checkpoint) {
  return checkpoint.file.name() + ":" + metrics_tensor;
}

std::string made_folder(const std::string& root, const std::string& run_id) {
  const std::string folder = (fs::path(root) / run_id).string();
  make_folder("run", folder);
  return folder;
}

std::string read_if_there(const std::string& path, size_t limit) {
  return is_file(path) ? read_file(path, limit) : std::string();
}

enum class Was { same, changed, missing };

Was write_if_changed(const std::string& path, const std::string& content, FileSystem& files) {
  std::string old;
  try {
    old = read_if_there(path, kMaxAutomatonBytes);
  } catch (const Error&) {
    old = "unreadable";
  }
  if (old == content) return Was::same;
  write_file_atomically(path, content, files);
  return old.empty() ? Was::missing : Was::changed;
}

// Whether a process has worked on the run; config files are written before any of these.
bool was_worked_on(const std::string& folder) {
  for (const char* name : {"metrics.jsonl", "result.json"})
    if (is_there(fs::path(folder) / name)) return true;
  return !list_checkpoints(folder).empty();
}

// Throws for symbolic links, which writing would follow out of the folder. Removes pipes and devices, which have no
// content; returns one line for each.
std::vector<std::string> clear_odd_entries(const std::string& folder, FileSystem& files) {
  std::vector<std::string> removed;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string path = entry.path().string();
    if (entry.is_symlink(failed))
      throw cannot_write("run", "cannot write " + path + ": it is a symbolic link, not a file");
    if (entry.is_regular_file(failed) || entry.is_directory(failed)) continue;
    if (files.remove(path) == 0)
      removed.push_back("[run] " + path + ": expected a file, got a pipe or device; removed");
  }
  return removed;
}

// Removes partial files of killed processes, and files that a suspended process is about to rename. Only for the lock
// owner, before it reads anything. Lists first, then checks the lock, since the files may be those of a new owner.
void remove_partial_files(const std::string& folder, const RunLock& lock, FileSystem& files) {
  std::vector<std::string> stale;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.path().filename().string().find(".partial-") != std::string::npos) stale.push_back(entry.path().string());
  if (!stale.empty()) lock.check();
  for (const auto& path : stale) files.remove(path);
}

// Updates that may have a checkpoint, from the last metric row: metrics are written just before their checkpoint. There
// are two, since rows of training count updates from 0, and rows of evaluations from 1.
std::vector<int64_t> updates_spoken_of(const std::string& metrics) {
  try {
    const std::string text = read_if_there(metrics, kMaxMetricsBytes);
    const size_t end = text.find_last_not_of('\n');
    if (end == std::string::npos) return {};
    const size_t before = text.rfind('\n', end);
    const auto rows =
        parse_metrics(std::string_view(text).substr(before == std::string::npos ? 0 : before + 1), metrics);
    return {rows.back().update, rows.back().update + 1};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

RunStore::RunStore(const std::string& root, const ResolvedConfig& config, FileSystem& files, LockWatch* watch)
    : run_id_(config.run_id),
      folder_(made_folder(root, config.run_id)),
      lock_(path("lock"), watch),
      files_(std::make_unique<FencedFiles>(files, lock_)) {
  restored_ = clear_odd_entries(folder_, *files_);
  remove_partial_files(folder_, lock_, *files_);
  forget_failure();
  write_config(config);
}

std::string RunStore::path(const std::string& name) const {
  return (fs::path(folder_) / name).string();
}

void RunStore::write_config(const ResolvedConfig& config) {
  const std::string copy = "automaton.json";
  const bool worked_on = was_worked_on(folder_);
  StoredConfig stored;
  stored.run_id = run_id_;
  stored.toml = config_toml(config, false, copy);
  stored.canonical = config.canonical;
  stored.updates = config.values.train.updates;
  const auto mend = [&](const std::string& name, const std::string& content, const std::string& source,
                        bool whole = false) {
    const Was was = write_if_changed(path(name), content, *files_);
    if (was == Was::changed && !whole) restored_.push_back("[run] " + path(name) + ": was modified; rewritten");
    if (was == Was::missing && worked_on)
      restored_.push_back("[run] " + path(name) + ": was missing; restored from " + source);
  };
  const std::string asked = "the config of this command";
  if (const auto& automaton = config.values.grammar.file) {
    stored.automaton_digest = sha256_hex(automaton->text);
    mend(copy, automaton->text, asked);
  }
  const std::string sealed = stored_config_text(stored);
  const auto holds = [&](const char* name, const std::string& content) {
    try {
      return read_if_there(path(name), kMaxConfigFileBytes) == content;
    } catch (const Error&) {
      return false;
    }
  };
  const bool json = holds("config.json", sealed), toml = holds("config.toml", stored.toml);
  // The same run may have been requested with another label or with other values of keys without effect. Config files
  // that agree with each other were not tampered with.
  const auto before = stored_before();
  const bool whole = before && holds("config.toml", before->toml);
  mend("config.toml", stored.toml, json ? "config.json" : asked, whole);
  mend("config.json", sealed, toml ? "config.toml" : asked, before.has_value());
}

// The existing config.json, if it is intact and of this run.
std::optional<StoredConfig> RunStore::stored_before() const {
  try {
    StoredConfig found = read_stored_config(folder_);
    if (found.run_id == run_id_) return found;
  } catch (const Error&) {
  }
  return std::nullopt;
}

// Removes an invalid result, e.g. one whose weights were changed: the run is then not finished.
void RunStore::drop_result(std::vector<std::string>& warnings) {
  if (!is_there(path("result.json"))) return;
  const RunReport report = inspect_run(folder_, CheckScope::result);
  if (report.result_stands && report.run_id == run_id_) return;
  for (const auto& problem : report.problems) warnings.push_back(problem + "; the run is done again");
  if (report.problems.empty()) warnings.push_back("[run] " + path("result.json") + ": of another run; done again");
  if (files_->remove(path("result.json")) != 0)
    throw cannot_write("run", "cannot remove " + path("result.json") + ": " + std::strerror(errno));
}

std::optional<Checkpoint> RunStore::resume(std::vector<std::string>& warnings, const CheckpointRules& rules) {
  drop_result(warnings);
  rows_.clear();
  timing_.clear();
  CheckpointRules all = rules;
  all.fault = [&](const Checkpoint& checkpoint) -> std::string {
    const auto* stored = checkpoint.file.find(metrics_tensor);
    if (!stored || stored->dtype != Dtype::u8) return std::string("no metrics in it");
    const std::string_view text(reinterpret_cast<const char*>(stored->bytes.data()), stored->bytes.size());
    rows_ = parse_metrics(text, stored_name(checkpoint));
    for (const auto& row : rows_)
      if (row.update > checkpoint.update) return "metrics of update " + std::to_string(row.update);
    return rules.fault ? rules.fault(checkpoint) : "";
  };
  auto checkpoint = load_newest_checkpoint(folder_, run_id_, warnings, all, updates_spoken_of(path("metrics.jsonl")));
  if (!checkpoint) {
    rows_.clear();
    return std::nullopt;
  }
  keep_timing(warnings);
  return checkpoint;
}

// Restores the times of the metric rows in the checkpoint. Rows after it are made again.
void RunStore::keep_timing(std::vector<std::string>& warnings) {
  std::set<std::pair<int64_t, std::string>> undated;
  for (const auto& row : rows_) undated.emplace(row.update, row.phase);
  try {
    const std::string text = read_if_there(path("timing.jsonl"), kMaxMetricsBytes);
    for (auto& row : parse_metrics(text, path("timing.jsonl")))
      if (undated.erase({row.update, row.phase}) > 0) timing_.push_back(std::move(row));
  } catch (const Error& error) {
    warnings.emplace_back(error.what());
  }
}

void RunStore::forget_failure() {
  if (is_there(path(kFailureFile))) files_->remove(path(kFailureFile));
}

void RunStore::add(MetricRow row) {
  rows_.push_back(std::move(row));
}
void RunStore::add_timing(MetricRow row) {
  timing_.push_back(std::move(row));
}

std::function<void()> RunStore::rows_writing() const {
  return [this, rows = rows_, timing = timing_] {
    write_file_atomically(path("metrics.jsonl"), metric_lines(rows), *files_);
    write_file_atomically(path("timing.jsonl"), metric_lines(timing), *files_);
    write_file_atomically(path("events.out.tfevents.0.selectivbench"), encode_events(rows, timing), *files_);
  };
}

std::function<void()> RunStore::saving(int64_t update, std::vector<NamedBytes> tensors,
                                       std::map<std::string, std::string> metadata) const {
  metadata["run_id"] = run_id_;
  return [this, update, tensors = std::move(tensors), metadata = std::move(metadata), rows = rows_,
          write_rows = rows_writing()] {
    write_rows();
    const std::string text = metric_lines(rows);
    std::vector<NamedBytes> all = tensors;
    all.push_back({metrics_tensor, "U8", {static_cast<int64_t>(text.size())}, text.data()});
    save_checkpoint(folder_, update, all, metadata, *files_);
  };
}

void RunStore::save(int64_t update, const std::vector<NamedBytes>& tensors,
                    std::map<std::string, std::string> metadata) {
  saving(update, tensors, std::move(metadata))();
}

void RunStore::finish(Result result, const std::vector<NamedBytes>& weights,
                      std::map<std::string, std::string> metadata) {
  write_rows();
  result.run_id = run_id_;
  result.files = {{"metrics.jsonl", sha256_hex(metric_lines(rows_))}};
  if (!weights.empty()) {
    metadata["run_id"] = run_id_;
    result.files["final.safetensors"] =
        write_sealed_safetensors(path("final.safetensors"), weights, std::move(metadata), *files_);
  }
  write_file_atomically(path("result.json"), sealed_json(result_text(result)), *files_);
  forget_failure();  // left by an earlier attempt of another process
}

}  // namespace sb
