// Converts evaluations to parts of a result. threads 0: all cores; results do not depend on it.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/config_file.h"
#include "config/data.h"
#include "store/result.h"
#include "tasks/evaluate.h"

namespace sb {

// The part of a result that follows from config and data, without measurements.
Result result_header(const ResolvedConfig& run, const RunData& data, int64_t updates);
// Includes breakdowns if the evaluation has them and `breakdowns` is true.
Measurement measurement(const Evaluation& evaluation, Split split, const Task& task,
                        const std::optional<TestPoint>& point, bool breakdowns);
// The ceiling of a task on a split, for its metric. nullopt if `samples` is 0, the best answers are unknown, or no
// element of the samples has an answer. Throws Stopped if `stop` returns true.
std::optional<CeilingFigure> measured_ceiling(const Task& task, Split split, int64_t samples, int threads,
                                              const std::function<bool()>& stop = {});
// Request for the n-gram baseline of a run.
struct BaselineRequest {
  int64_t train_samples = 0;  // that the run saw; counted up to the memory limit
  int64_t valid_samples = 0, test_samples = 0;
  int threads = 0;
  std::string root;                 // folder of the cache shared with other runs (baseline_file.h); empty: none
  std::function<bool()> stop = {};  // true: throws Stopped
  std::function<void(const std::string&)> warning = {};
};
// nullopt if n-grams cannot name the task's answers, or if counting fails: the warning says why.
std::optional<BaselineFigures> measured_baselines(const RunData& data, const BaselineRequest& request);
// "accuracy 0.7600 (s.e. 0.0200) over 10 samples, KL 0.1000, ceiling 0.9380 (s.e. 0.0030) over 20 samples".
// With squared error: "mean squared error 0.2 …, bound 0.1 …".
std::string accuracy_text(const Measurement& measurement, bool with_loss = false);
std::vector<std::string> quirk_names(const Quirks& quirks);  // those that are on

}  // namespace sb
