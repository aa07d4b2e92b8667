// Results as runs of a resolved config would leave them, with accuracies made up from their settings.
#pragma once
#include <cmath>
#include <functional>
#include <string>

#include "../config/model_rules.h"
#include "base/sha256.h"
#include "report/rows.h"
#include "suites/suite.h"

namespace sb::test {

// A number in [0, 1) that depends on the text alone.
inline double noise_of(const std::string& text) {
  return static_cast<double>(std::stoull(sha256_hex(text).substr(0, 12), nullptr, 16)) /
         static_cast<double>(1ULL << 48);
}

inline Measurement measured(const std::string& split, double accuracy, double ceiling, int64_t samples = 100) {
  Measurement m;
  m.split = split;
  m.samples = samples;
  m.accuracy = accuracy;
  m.ceiling = CeilingFigure{};
  m.ceiling->accuracy = ceiling;
  m.ceiling->upper_bound = ceiling + .005;
  m.ceiling->samples = samples;
  return m;
}

inline Result result_of(const ResolvedConfig& run) {
  const RunConfig& c = run.values;
  Result r;
  r.run_id = run.run_id;
  r.status = "done";
  r.model = c.model.name;
  r.task = c.task.kind == kGapsKind ? c.task.task.number : 0;
  r.objective = to_string(c.task.task.objective);
  r.precision = to_string(c.train.precision);
  r.device = to_string(c.train.device);
  r.config = config_map(run.canonical);
  r.label = c.run.label;
  r.run_seed = c.run.seed;
  r.grammar_seed = c.grammar.build.seed;
  r.train_seed = c.train.seed;
  r.width = c.model.width;
  r.layers = c.model.layers;
  r.params = int64_t{c.model.width} * c.model.width * c.model.layers;
  if (c.model.name != "transformer") r.state_size = 128 * c.model.width;
  r.updates = c.train.updates;
  r.states = 145;
  r.lr = c.train.lr;
  r.chance = 1 / 145.0;
  const double level = .5 + .4 * noise_of(run.canonical);
  r.test = measured("test", level, .99, c.eval.test_samples);
  r.valid = measured(c.quirks.select_on_test ? "test" : "valid", level + .02 * noise_of(run.run_id + "v") - .01, .99);
  const auto& axis = find_task(c.task.kind).axis;
  for (const int point : c.eval.points) {
    r.grid.push_back(measured("test", level / (1 + point / 20.0), .98));
    r.grid.back().at = point;
    if (axis && axis->name != "gap") r.grid.back().axis = axis->name;
  }
  return r;
}

inline std::vector<TableRun> runs_of(const Suite& suite, const std::function<void(Result&)>& change = {}) {
  std::vector<TableRun> out;
  for (const auto& run : suite.runs) {
    out.push_back({"runs/" + run.run_id, result_of(run), {}});
    if (change) change(out.back().result);
  }
  return out;
}

inline Suite suite_of(const std::string& text) {
  return parse_suite(text, "suite.toml", {}, rules());
}

inline Suite shipped(const std::string& name) {
  return read_suite(SB_SOURCE_DIR "/configs/" + name, {}, rules());
}

inline Rows rows_of(const Suite& suite, const std::function<void(Result&)>& change = {}) {
  return make_rows(runs_of(suite, change), axes_of(suite));
}

}  // namespace sb::test
