// Checkpoints of a run: where it goes on, and what is kept of it on the way.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "train/run_context.h"
#include "train/writer.h"

namespace sb {

class Saving {
 public:
  explicit Saving(RunContext& run) : run_(run), writer_(run.executor.beside_host()) {}

  // From the newest checkpoint that can be gone on from; from the beginning where there is none.
  void resume();
  // `written`: returns when the file is there; else it may be under way.
  void save(bool written = false);
  bool saved() const { return saved_ == run_.done; }  // there is nothing newer than the last checkpoint
  std::map<std::string, std::string> metadata() const;

  bool busy() const { return writer_.busy(); }
  void wait() { writer_.wait(); }  // until all is written
  void write_rows() { writer_.run(run_.store.rows_writing()); }

 private:
  CheckpointRules rules() const;
  std::optional<int64_t> micro_batches_of(const std::map<std::string, std::string>& metadata) const;
  void keep_split(std::optional<int64_t> before);
  int ranks() const;
  void tell_ranks(const std::map<std::string, std::string>& metadata) const;

  RunContext& run_;
  int64_t saved_ = -1;  // updates of the last checkpoint
  Writer writer_;
};

}  // namespace sb
