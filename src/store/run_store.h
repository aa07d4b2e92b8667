// A run on disk: ROOT/<run id>/ with
//   config.toml, config.json   the resolved config; config.json is sealed and holds config.toml's text and digest
//   metrics.jsonl              rows without wall-clock fields: the same bytes even if the run was interrupted
//   timing.jsonl, events.out.tfevents.*   wall-clock rows, and all scalars for TensorBoard
//   checkpoint-*.safetensors   the last two, sealed
//   final.safetensors          sealed weights
//   result.json                sealed, written last: its presence means the run is over; holds digests of the others
//   lock                       the process that works on the run, or did last (run_lock.h)
//   failed.txt                 why the last attempt failed, written by its parent process; a new attempt removes it
// Every file is complete or absent, and none is a symbolic link.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "config/config_file.h"
#include "store/checkpoint.h"
#include "store/metrics.h"
#include "store/result.h"
#include "store/run_files.h"
#include "store/run_lock.h"

namespace sb {

constexpr const char* kFailureFile = "failed.txt";

class RunStore {
 public:
  // Creates the folder, takes the lock, and writes the config if it is missing, changed or worded differently. Throws
  // Error(stopped) if another process has the run; `watch` as for RunLock. Once another process has taken over the run,
  // every write throws Error(taken_over) and writes nothing.
  RunStore(const std::string& root, const ResolvedConfig& config, FileSystem& files = real_file_system(),
           LockWatch* watch = nullptr);
  RunStore(RunStore&&) = delete;  // writers refer to the lock

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const;
  bool lost() const { return lock_.lost(); }  // another process has taken over the run

  // Repaired problems of the folder, one line each: config files that were changed or are missing from a started run,
  // and entries that were not files.
  const std::vector<std::string>& restored() const { return restored_; }

  // Loads the newest intact checkpoint that satisfies `rules`, with the metrics up to it; drops later rows. nullopt:
  // start from the beginning. Damaged checkpoints and metrics are named in `warnings` and skipped. An invalid result is
  // named and removed.
  std::optional<Checkpoint> resume(std::vector<std::string>& warnings, const CheckpointRules& rules = {});

  void add(MetricRow row);         // kept in memory until save(), write_rows() or finish()
  void add_timing(MetricRow row);  // a value "wall" (seconds since 1970) dates the row of its update and phase
  const std::vector<MetricRow>& metrics() const { return rows_; }
  void write_rows() { rows_writing()(); }  // for viewers; resuming uses only the checkpoint

  // Writes the metrics, then the checkpoint that contains them: both are intact whenever the process dies.
  void save(int64_t update, const std::vector<NamedBytes>& tensors, std::map<std::string, std::string> metadata = {});
  // The same as functions that write the current state later. Call each once, from any thread, one at a time, while the
  // tensors and this object exist.
  std::function<void()> rows_writing() const;
  std::function<void()> saving(int64_t update, std::vector<NamedBytes> tensors,
                               std::map<std::string, std::string> metadata = {}) const;
  // Sets run_id and files (digests), and writes result.json. Without weights, no final.safetensors is written.
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
  std::unique_ptr<FileSystem> files_;  // checks the lock
  std::vector<MetricRow> rows_, timing_;
  std::vector<std::string> restored_;
};

}  // namespace sb
