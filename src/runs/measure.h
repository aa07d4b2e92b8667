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
// The n-gram beside a run: what to count, and where counts are kept.
struct BaselineRequest {
  int64_t train_samples = 0;  // that the run saw; as many are counted as memory allows
  int64_t valid_samples = 0, test_samples = 0;
  int threads = 0;
  std::string root;                 // folder of counts shared with other runs (baseline_file.h); empty: none
  std::function<bool()> stop = {};  // true: throws Stopped
  std::function<void(const std::string&)> warning = {};
};
// Nothing where the objective is not `state`, nor where counting fails: the warning says why.
std::optional<BaselineFigures> measured_baselines(const RunData& data, const BaselineRequest& request);
// "accuracy 0.7600 ± 0.0200 over 10 samples, KL 0.1000, ceiling 0.9380 ± 0.0030 over 20 samples".
std::string accuracy_text(const Measurement& measurement, bool with_loss = false);
std::vector<std::string> quirk_names(const Quirks& quirks);  // those that are on

}  // namespace sb
