// Result sets with a known truth, for verdicts.
#pragma once
#include <gtest/gtest.h>

#include <functional>

#include "../report/synthetic.h"
#include "findings/protocol.h"
#include "findings/verdict.h"

namespace sb::test {

inline const Claims& shipped_claims() {
  static const Claims claims = read_claims(SB_SOURCE_DIR "/configs/experiments/claims.toml");
  return claims;
}

constexpr const char* seven =
    R"(["delta_net", "gla", "mamba", "mamba2", "gated_delta_net", "gated_delta_product", "transformer"])";

// Runs of a scale and of the corrected protocol, with this many parameters whatever the width.
inline std::vector<TableRun> scale_runs(const std::string& name, int64_t params, const std::string& grid,
                                        const std::function<void(Result&)>& change = {}) {
  const Scale& scale = *shipped_claims().scale(name);
  std::string text = "[model]\nlayers = 8\nwidth = 256\ndropout = 0\n[grammar]\n";
  for (const char* key : {"vocab", "ambiguities", "depth"})
    if (const auto it = scale.keys.find(std::string("grammar.") + key); it != scale.keys.end())
      text += std::string(key) + " = " + it->second + "\n";
  return runs_of(suite_of(text + grid), [&](Result& r) {
    r.params = params;
    r.topological_entropy = 2.5;
    if (r.test) r.test->stderr_ = r.test->ceiling->stderr_ = .001;
    if (change) change(r);
  });
}
inline std::vector<TableRun> small_runs(const std::string& grid, const std::function<void(Result&)>& change = {}) {
  return scale_runs("small", 4'700'000, grid, change);
}
inline std::vector<TableRun> paper_runs(const std::string& grid, const std::function<void(Result&)>& change = {}) {
  return scale_runs("paper", 85'000'000, grid, change);
}

// Turns a run of the corrected protocol into one of the published protocol.
inline void make_published(Result& r) {
  r.run_id = sha256_hex(r.run_id).substr(0, 16);
  for (const char* quirk : {"first_lr_zero", "delta_bf16", "sum_accumulated"})
    r.config["quirks." + std::string(quirk)] = "true";
  r.config["model.dropout"] = "0.2";
  r.config["train.dropout_until"] = "78";
  r.config["model.residual"] = r.model == "transformer" ? "\"double\"" : "\"post\"";
}

inline void set_accuracy(Result& r, double accuracy) {
  r.test->accuracy = accuracy;
  if (r.valid) r.valid->accuracy = accuracy;
}

inline Rows rows_from(std::vector<TableRun> runs) {
  return make_rows(std::move(runs), Axes{});
}

// +-.004 by grammar, the same for all models, and +-.002 by run.
inline double wobble(const Result& r) {
  return .008 * (noise_of("g" + std::to_string(r.grammar_seed)) - .5) + .004 * (noise_of(r.run_id) - .5);
}

// Tasks 1, 2 and 3, accuracies by model and task.
inline std::vector<TableRun> table_runs(const std::function<double(const Result&)>& truth,
                                        const std::string& seeds = "[1, 2, 3, 4]", const std::string& models = seven) {
  return small_runs("[grid]\ntask.number = [1, 2, 3]\nmodel.name = " + models + "\nrun.seed = " + seeds + "\n",
                    [&](Result& r) { set_accuracy(r, truth(r) + wobble(r)); });
}

inline double as_in_the_paper(const Result& r) {
  return paper_table(r.model, r.task)->accuracy;
}

inline ScaleVerdict judged(const Rows& rows, const std::string& claim, const std::string& scale = "small",
                           const std::string& protocol = corrected_protocol) {
  const Claims& claims = shipped_claims();
  return judge(rows, claims, *claims.find(claim), *claims.scale(scale), protocol);
}

}  // namespace sb::test
