// A run on disk: ROOT/<run id>/ with
//   config.toml, config.json   the resolved config; config.json is sealed and holds the digest of config.toml
//   metrics.jsonl              rows without wall-clock fields: the same bytes however often the run was interrupted
//   timing.jsonl, events.out.tfevents.*   wall-clock rows, and all scalars for TensorBoard
//   checkpoint-*.safetensors   the last two, sealed
//   final.safetensors          sealed weights
//   result.json                sealed, written last: its presence means the run is over; holds digests of the others
//   lock                       held while a process works on the run
// Every file is whole or absent.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "runs/checkpoint.h"
#include "runs/config_file.h"
#include "runs/metrics.h"
#include "runs/result.h"
#include "runs/run_lock.h"

namespace sb {

class RunStore {
 public:
  // Makes the folder, takes the lock and writes the config. Throws Error(stopped) if another process has it.
  RunStore(const std::string& root, const ResolvedConfig& config, FileSystem& files = real_file_system());

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const;

  // The newest whole checkpoint, with the metrics as they were then; later rows are forgotten. Nothing: start afresh.
  // Damaged checkpoints and metrics are named in `warnings` and passed over.
  std::optional<Checkpoint> resume(std::vector<std::string>& warnings);

  void add(MetricRow row);         // kept in memory until save() or finish()
  void add_timing(MetricRow row);  // a value "wall" (seconds since 1970) dates the events of its update
  const std::vector<MetricRow>& metrics() const { return rows_; }

  // Metrics first, then the checkpoint that carries them: whichever instant the process dies, both are whole.
  void save(int64_t update, const std::vector<NamedBytes>& tensors, std::map<std::string, std::string> metadata = {});
  // `result` becomes result.json with `run_id` and `files` (digests) filled in. No weights: no final.safetensors.
  void finish(Result result, const std::vector<NamedBytes>& weights, std::map<std::string, std::string> metadata = {});

 private:
  void write_config(const ResolvedConfig& config);
  void write_rows();

  std::string run_id_;
  std::string folder_;
  FileSystem& files_;
  RunLock lock_;
  std::vector<MetricRow> rows_, timing_;
};

// The result of a finished run. Throws bad_input that names the file if it is absent, torn or changed.
Result load_result(const std::string& folder);
// Its text: bounded and sealed, not yet read.
std::string load_result_text(const std::string& folder);
bool has_result(const std::string& folder);  // a whole one
// Folders under `root` that hold a run, sorted by name.
std::vector<std::string> find_runs(const std::string& root);
// One line for each file of the run that is missing or does not fit its digest; empty: all is well.
std::vector<std::string> verify_run(const std::string& folder);

}  // namespace sb
