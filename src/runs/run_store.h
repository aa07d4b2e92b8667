// A run on disk: ROOT/<run id>/ with
//   config.toml, config.json   the resolved config; config.json is sealed and holds config.toml's text and digest
//   metrics.jsonl              rows without wall-clock fields: the same bytes however often the run was interrupted
//   timing.jsonl, events.out.tfevents.*   wall-clock rows, and all scalars for TensorBoard
//   checkpoint-*.safetensors   the last two, sealed
//   final.safetensors          sealed weights
//   result.json                sealed, written last: its presence means the run is over; holds digests of the others
//   lock                       who works on the run, or did last (run_lock.h)
//   failed.txt                 why the last attempt failed, put there by who started it; a new attempt removes it
// Every file is whole or absent, and none is a symbolic link.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "runs/checkpoint.h"
#include "runs/config_file.h"
#include "runs/metrics.h"
#include "runs/result.h"
#include "runs/run_check.h"
#include "runs/run_lock.h"

namespace sb {

constexpr const char* kFailureFile = "failed.txt";

class RunStore {
 public:
  // Makes the folder, takes the lock, and writes the config where it is missing, changed or of other words. Throws
  // Error(stopped) if another process has the run; `watch` as for RunLock. Whatever writes later throws
  // Error(taken_over), and writes nothing, once another has taken the run over.
  RunStore(const std::string& root, const ResolvedConfig& config, FileSystem& files = real_file_system(),
           LockWatch* watch = nullptr);
  RunStore(RunStore&&) = delete;  // what writes refers to the lock

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const;
  bool lost() const { return lock_.lost(); }  // another process has the run by now

  // What was wrong in the folder and is mended: files of the config that were changed, or missing from a run that was
  // worked on, entries that were no files. One line each.
  const std::vector<std::string>& restored() const { return restored_; }

  // The newest whole checkpoint that `rules` let pass, with the metrics as they were then; later rows are forgotten.
  // Nothing: start afresh. Damaged checkpoints and metrics are named in `warnings` and passed over; a result that
  // does not stand is named and removed.
  std::optional<Checkpoint> resume(std::vector<std::string>& warnings, const CheckpointRules& rules = {});

  void add(MetricRow row);         // kept in memory until save() or finish()
  void add_timing(MetricRow row);  // a value "wall" (seconds since 1970) dates the row of its update and phase
  const std::vector<MetricRow>& metrics() const { return rows_; }
  void write_rows() { rows_writing()(); }  // for those who watch; resuming goes by the checkpoint

  // Metrics first, then the checkpoint that carries them: whichever instant the process dies, both are whole.
  void save(int64_t update, const std::vector<NamedBytes>& tensors, std::map<std::string, std::string> metadata = {});
  // Each as a function that writes what there is now, to be called once, from any thread, one at a time, as long as the
  // tensors' bytes and this last.
  std::function<void()> rows_writing() const;
  std::function<void()> saving(int64_t update, std::vector<NamedBytes> tensors,
                               std::map<std::string, std::string> metadata = {}) const;
  // Sets run_id and files (digests), and writes result.json. No weights: no final.safetensors.
  void finish(Result result, const std::vector<NamedBytes>& weights, std::map<std::string, std::string> metadata = {});

 private:
  void write_config(const ResolvedConfig& config);
  std::optional<StoredConfig> stored_before() const;
  void drop_result(std::vector<std::string>& warnings);
  void keep_timing(std::vector<std::string>& warnings);
  void forget_failure();

  std::string run_id_;
  std::string folder_;
  RunLock lock_;
  std::unique_ptr<FileSystem> files_;  // behind the lock
  std::vector<MetricRow> rows_, timing_;
  std::vector<std::string> restored_;
};

}  // namespace sb
