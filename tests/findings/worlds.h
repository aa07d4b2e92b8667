// Result sets with a known truth, for verdicts.
#pragma once
#include <gtest/gtest.h>

#include <functional>

#include "../report/synthetic.h"
#include "findings/verdict.h"

namespace sb::test {

// The shipped claims, with every model's runs.
inline const Claims& shipped_claims() {
  static const Claims claims = [] {
    Claims all = read_claims(SB_SOURCE_DIR "/configs/experiments/claims.toml");
    all.withheld.clear();
    return all;
  }();
  return claims;
}

constexpr const char* seven =
    R"(["delta_net", "gla", "mamba", "mamba2", "gated_delta_net", "gated_delta_product", "transformer"])";

// Runs of scale small: 4.7 M parameters whatever the width.
inline std::vector<TableRun> small_runs(const std::string& grid, const std::function<void(Result&)>& change = {}) {
  const Suite suite =
      suite_of("[model]\nlayers = 8\nwidth = 256\n[grammar]\nvocab = 41\nambiguities = 40\ndepth = 40\n" + grid);
  return runs_of(suite, [&](Result& r) {
    r.params = 4'700'000;
    r.topological_entropy = 2.5;
    if (r.test) r.test->stderr_ = r.test->ceiling->stderr_ = .001;
    if (change) change(r);
  });
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

inline ScaleVerdict judged(const Rows& rows, const std::string& claim, const std::string& scale = "small") {
  const Claims& claims = shipped_claims();
  return judge(rows, claims, *claims.find(claim), *claims.scale(scale));
}

}  // namespace sb::test
