// Writes a run's checkpoints and resumes from them.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "train/run_context.h"
#include "train/writer.h"

namespace sb {

class CheckpointManager {
 public:
  explicit CheckpointManager(RunContext& run) : run_(run), writer_(run.executor.is_asynchronous()) {}

  // Restores the newest valid checkpoint; without one, the run starts from the beginning.
  void resume();
  // Saves a checkpoint. `written`: waits until the file is written; otherwise it may still be in progress on return.
  void save(bool written = false);
  bool saved() const { return saved_ == run_.done; }  // whether the last checkpoint has the latest update
  std::map<std::string, std::string> metadata() const;

  bool busy() const { return writer_.busy(); }
  void wait() { writer_.wait(); }  // until all files are written
  void write_rows() { writer_.run(run_.store.rows_writing()); }

 private:
  CheckpointRules rules() const;
  std::optional<int64_t> micro_batches_of(const std::map<std::string, std::string>& metadata) const;
  void keep_split(std::optional<int64_t> before);
  int ranks() const;
  void tell_ranks(const std::map<std::string, std::string>& metadata) const;

  RunContext& run_;
  int64_t saved_ = -1;  // update count of the last checkpoint
  Writer writer_;
};

}  // namespace sb
