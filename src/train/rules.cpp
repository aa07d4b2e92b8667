#include "train/rules.h"

#include <fmt/format.h>

#include <memory>
#include <set>

#include "base/error.h"
#include "models/declare.h"
#include "train/gpu.h"
#include "train/trainer.h"

namespace sb {
namespace {

// Sizes a network is checked with; no automaton's are refused.
constexpr int64_t any_inputs = 41, any_outputs = 1601;

void check_model(const RunConfig& config) {
  const ModelRow& row = find_model(config.model.name);
  std::string lines;
  for (const auto& [key, text] : config.model.switches) {
    try {
      if (const Switch* found = row.find(key)) found->parse(text);
    } catch (const Error& error) {
      lines += (lines.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!lines.empty()) throw Error(Exit::bad_input, lines);
  check_network(network_config(config, any_inputs, any_outputs));
}

NetworkKeys network_keys(const RunConfig& config) {
  const ModelConfig model = network_config(config, any_inputs, any_outputs);
  NetworkKeys out;
  out.width = model.mixer.width;
  for (const auto& each : find_model(model.name).switches) out.switches[each.name()] = model.mixer.text(each.name());
  return out;
}

std::vector<SwitchRow> switch_rows() {
  std::vector<SwitchRow> out;
  for (const auto& row : registry())
    for (const auto& each : row.switches)
      out.push_back({row.name, each.name(), each.initial_text(), each.range(), each.meaning()});
  return out;
}

}  // namespace

ModelRules model_rules() {
  ModelRules rules;
  rules.switches = switch_names();
  rules.table = switch_rows();
  rules.checks = {check_model};
  rules.network = network_keys;
  rules.has_gpu = has_gpu;
  return rules;
}

ModelRules run_rules() {
  ModelRules rules = model_rules();
  rules.checks.emplace_back([](const RunConfig& config) { storage_type(config.train); });
  // A suite has few grammars and many runs.
  auto sound = std::make_shared<std::set<std::string>>();
  rules.samples = [sound](const RunConfig& config) {
    const GrammarConfig& g = config.grammar.build;
    const std::string grammar =
        config.grammar.file ? config.grammar.file->sha256
                            : fmt::format("{} {} {} {} {}", g.vocab, g.ambiguities, g.depth, g.density, g.start_states);
    const std::string key =
        fmt::format("{} {} {} {} {} {}", grammar, g.seed, config.task.length, static_cast<int>(config.task.stream),
                    longest_gap(config.task.task.train), longest_gap(config.task.task.test));
    if (sound->contains(key)) return;
    make_data(config);
    sound->insert(key);
  };
  return rules;
}

}  // namespace sb
