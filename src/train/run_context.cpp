#include "train/run_context.h"

#include "base/number.h"
#include "tasks/evaluate.h"

namespace sb {

double seconds_since(RunContext::Clock::time_point began) {
  return std::chrono::duration<double>(RunContext::Clock::now() - began).count();
}

std::map<std::string, std::string> Spent::metadata() const {
  return {{"spent_train_seconds", shortest(train_seconds)},
          {"spent_total_seconds", shortest(total_seconds)},
          {"spent_frames", shortest(frames)}};
}

Spent Spent::from(const std::map<std::string, std::string>& metadata) {
  const auto field = [&](const char* key) {
    const auto found = metadata.find(key);
    const auto value = found == metadata.end() ? std::nullopt : parse_finite(found->second);
    return value && *value >= 0 && *value < 1e12 ? *value : 0;
  };
  return {field("spent_train_seconds"), field("spent_total_seconds"), field("spent_frames")};
}

RunContext::RunContext(PreparedRun& run, RunStore& run_store, const TrainHooks& run_hooks)
    : resolved(run.config),
      config(run.config.values),
      store(run_store),
      hooks(run_hooks),
      data(run.data),
      trainer(run.trainer),
      executor(*run.executor),
      group(run.group),
      prepared(run.seconds) {}

Spent RunContext::spent_so_far() const {
  Spent out = spent;
  out.total_seconds += prepared + seconds_since(began);
  return out;
}

void RunContext::report(const std::string& phase) const {
  const char* metric = data.task->shape().loss == Loss::squared_error ? "squared error" : "accuracy";
  if (hooks.progress) hooks.progress({phase, done, config.train.updates, loss, valid, metric});
}

void RunContext::announce(const std::string& phase) const {
  if (asked_to_stop()) throw Stopped{};
  report(phase);
}

void RunContext::warn(const std::string& line) const {
  if (hooks.warning) hooks.warning(line);
}

}  // namespace sb
