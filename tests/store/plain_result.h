// A result that agrees with its config, without measurements.
#pragma once
#include "config/config_file.h"
#include "store/result.h"

namespace sb::test {

inline Result plain_result(const ResolvedConfig& config, bool diverged = false) {
  Result out;
  out.status = diverged ? "diverged" : "done";
  if (diverged) out.divergence.emplace();
  out.model = config.values.model.name;
  out.width = config.values.model.width;
  out.layers = config.values.model.layers;
  out.task = config.values.task.task.number;
  out.grammar_seed = config.values.grammar.build.seed;
  out.train_seed = config.values.train.seed;
  out.lr = config.values.train.lr;
  out.updates = config.values.train.updates;
  out.config = config_map(config.canonical);
  out.states = 1;
  return out;
}

}  // namespace sb::test
