#include "train/checkpoint_manager.h"

#include "base/number.h"

namespace sb {
namespace {

// Delays the exit of the program by a signal until `call` returns.
template <class Call>
void holding_end(const TrainHooks& hooks, const Call& call) {
  const auto tell = [&](bool begins) {
    if (hooks.saving) hooks.saving(begins);
  };
  tell(true);
  try {
    call();
  } catch (...) {
    tell(false);
    throw;
  }
  tell(false);
}

}  // namespace

std::map<std::string, std::string> CheckpointManager::metadata() const {
  return {{"adam_updates", std::to_string(run_.done)},
          {"evaluated", run_.evaluated ? "1" : "0"},
          {"config", run_.resolved.canonical},
          {"model", run_.config.model.name}};
}

// Conditions that a checkpoint must meet to be restored.
CheckpointRules CheckpointManager::rules() const {
  CheckpointRules out;
  out.tensors = run_.trainer.state_layout();
  out.fault = [this](const Checkpoint& checkpoint) -> std::string {
    const auto& metadata = checkpoint.file.metadata();
    const auto field = [&](const char* key) {
      const auto found = metadata.find(key);
      return found == metadata.end() ? std::string() : found->second;
    };
    if (checkpoint.update > run_.config.train.updates) return "more updates than the run has";
    if (field("adam_updates") != std::to_string(checkpoint.update)) return "adam_updates is not its update";
    if (field("evaluated") != "0" && field("evaluated") != "1") return "evaluated is neither 0 nor 1";
    const std::string world = field("world");
    const auto count = parse_integer(world);
    if (metadata.contains("world") && (!count || *count < 1 || *count > kMaxRanks))
      return "world is no number of ranks";
    if (metadata.contains("micro_batches") && !micro_batches_of(metadata)) return "micro_batches does not divide batch";
    return "";
  };
  return out;
}

std::optional<int64_t> CheckpointManager::micro_batches_of(const std::map<std::string, std::string>& metadata) const {
  const auto found = metadata.find("micro_batches");
  const auto value = found == metadata.end() ? std::nullopt : parse_integer(found->second);
  return value && *value >= 1 && run_.config.train.batch % *value == 0 ? value : std::nullopt;
}

// Resumes with the number of micro-batches of the checkpoint (`before`) if the memory suffices: only then are the
// results byte-identical.
void CheckpointManager::keep_split(std::optional<int64_t> before) {
  Trainer& trainer = run_.trainer;
  const int64_t now = trainer.micro_batches_asked();
  if (!trainer.may_split()) {
    if (before && *before != now)
      run_.warn("train.accumulate is " + std::to_string(now) + ", the last updates were made with " +
                std::to_string(*before) + ", and the rest rounds otherwise");
    return;
  }
  // Every rank must have enough rows.
  if (before && *before > now && *before * ranks() <= run_.config.train.batch) trainer.split(*before);
  if (before && *before < now) {
    run_.warn("train.accumulate comes to " + std::to_string(now) + ", the last updates were made with " +
              std::to_string(*before) + ": the GPU has less memory free, and the rest rounds otherwise");
  } else if (!before && now > 1) {
    run_.warn("train.accumulate = auto selects " + std::to_string(now) + " because of the GPU's memory");
  }
}

int CheckpointManager::ranks() const {
  return run_.group == nullptr ? 1 : run_.group->size();
}

void CheckpointManager::tell_ranks(const std::map<std::string, std::string>& metadata) const {
  const auto found = metadata.find("world");
  const std::string before = found == metadata.end() ? "1" : found->second, now = std::to_string(ranks());
  if (before == now) return;
  run_.warn("the run has " + now + (ranks() == 1 ? " rank" : " ranks") + " now, the last updates were made with " +
            before + ", and the rest rounds otherwise");
}

void CheckpointManager::resume() {
  std::vector<std::string> warnings;
  const auto checkpoint = run_.store.resume(warnings, rules());
  for (const auto& line : warnings) run_.warn(line);
  keep_split(checkpoint ? micro_batches_of(checkpoint->file.metadata()) : std::nullopt);
  if (!checkpoint) return;
  tell_ranks(checkpoint->file.metadata());
  run_.trainer.restore(checkpoint->file);
  run_.done = saved_ = checkpoint->update;
  run_.evaluated = checkpoint->file.metadata().at("evaluated") == "1";
  run_.spent = Spent::from(checkpoint->file.metadata());
  for (const MetricRow& row : run_.store.metrics()) {
    for (const auto& [name, value] : row.values) {
      if (row.phase == "valid" && (name == "accuracy" || name == "mse")) run_.valid = value;
      if (row.phase == "train" && name == "loss") run_.loss = value;
    }
  }
}

void CheckpointManager::save(bool written) {
  auto all = metadata();
  all.merge(run_.spent_so_far().metadata());
  all["micro_batches"] = std::to_string(run_.trainer.micro_batches_asked());
  all["world"] = std::to_string(ranks());
  holding_end(run_.hooks, [&] {
    if (!writer_.is_asynchronous()) return run_.store.save(run_.done, run_.trainer.state(), std::move(all));
    writer_.wait();  // a pending write uses the buffers of the previous snapshot
    Trainer::Snapshot now = run_.trainer.snapshot();
    writer_.run([write = run_.store.saving(run_.done, std::move(now.tensors), std::move(all)),
                 arrived = std::move(now.arrived)] {
      if (arrived) arrived();
      write();
    });
    if (written) writer_.wait();
  });
  saved_ = run_.done;
}

}  // namespace sb
