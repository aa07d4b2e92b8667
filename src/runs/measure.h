// What evaluations found, as the parts of a result. threads 0: all cores; no influence on results.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runs/config_file.h"
#include "runs/data.h"
#include "runs/result.h"
#include "tasks/evaluate.h"

namespace sb {

// The part of a result that follows from config and data: what a run is, before anything was measured.
Result result_header(const ResolvedConfig& run, const RunData& data, int64_t updates);
// Breakdowns where the evaluation has them and `breakdowns` asks for them.
Measurement measurement(const Evaluation& evaluation, Split split, const TaskConfig& task, std::optional<int> gap,
                        bool breakdowns);
// The ceiling of one task, its objective and a split; nothing where `samples` is 0 or the task has no oracle.
// `stop` true: throws Stopped.
std::optional<CeilingFigure> measured_ceiling(const RunData& data, const TaskConfig& task, Split split, int64_t samples,
                                              int threads, const std::function<bool()>& stop = {});
// Table learner and n-grams on the run's task, learnt from what it saw of it, within a budget of frames; nothing where
// the objective is not `state`, nor where they fail: `warning` is told why. `stop` true: throws Stopped.
std::optional<BaselineFigures> measured_baselines(const RunData& data, int64_t samples_seen, int64_t test_samples,
                                                  int threads, const std::function<bool()>& stop = {},
                                                  const std::function<void(const std::string&)>& warning = {});
// "accuracy 0.7600 ± 0.0200 over 10 samples, KL 0.1000, ceiling 0.9380 ± 0.0030 over 20 samples".
std::string accuracy_text(const Measurement& measurement, bool with_loss = false);
std::vector<std::string> quirk_names(const Quirks& quirks);  // those that are on

}  // namespace sb
