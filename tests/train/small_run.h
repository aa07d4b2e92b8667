// Runs small enough for a test: a grammar of a dozen states, a network of two narrow layers.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"
#include "config/config_file.h"
#include "store/run_store.h"
#include "train/trainer.h"

namespace sb::test {

inline const std::vector<std::string>& paper_models() {
  static const std::vector<std::string> names = {
      "delta_net", "gla", "mamba", "mamba2", "gated_delta_net", "gated_delta_product", "transformer"};
  return names;
}

inline ResolvedConfig small_config(const std::vector<std::string>& overrides = {}) {
  Settings settings = parse_settings(R"(
grammar = {vocab = 6, ambiguities = 2, depth = 3}
task = {number = 1, length = 20}
model = {name = "gated_delta_net", width = 16, layers = 2, dropout = 0.2}
train = {updates = 12, batch = 4, warmup = 3}
eval = {every = 4, valid_samples = 10, test_samples = 12, grid_samples = 6, ceiling_samples = 12, batch = 5}
)",
                                     "small.toml");
  add_overrides(settings, overrides);
  return resolve(settings, {}, "small.toml");
}

// Sets a learning rate that no config may ask for.
inline void diverge(ResolvedConfig& config) {
  config.values.train.lr = 1e30;
  const size_t at = config.canonical.find("\"lr\":") + 5;
  config.canonical.replace(at, config.canonical.find_first_of(",}", at) - at, "1e+30");
  config.run_id = sha256_hex(config.canonical).substr(0, 16);
}

inline RunStatus work(const ResolvedConfig& config, const std::string& root, const TrainHooks& hooks = {},
                      FileSystem& files = real_file_system()) {
  PreparedRun run(config);
  RunStore store(root, config, files);
  return train(run, store, hooks);
}

inline std::string content(const std::string& root, const ResolvedConfig& config, const std::string& name) {
  return read_file(root + "/" + config.run_id + "/" + name, size_t{1} << 30);
}

// What must not depend on interruptions, threads or jobs.
inline std::vector<std::string> lasting_bytes(const std::string& root, const ResolvedConfig& config) {
  return {content(root, config, "metrics.jsonl"), content(root, config, "final.safetensors"),
          comparable_text(load_result(root + "/" + config.run_id))};
}

}  // namespace sb::test
