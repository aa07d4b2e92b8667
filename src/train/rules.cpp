#include "train/rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/model_facts.h"
#include "config/data.h"
#include "kernels/dropout_stream.h"
#include "models/match.h"
#include "train/gpu.h"
#include "train/trainer.h"

namespace sb {
namespace {

// Input and output sizes for checking a network: those of the paper's grammar.
constexpr int64_t any_inputs = 41, any_outputs = 1601;

void check_each_switch(const RunConfig& config) {
  const auto names = model_names();
  if (std::find(names.begin(), names.end(), config.model.name) == names.end()) return;
  std::string lines;
  for (const auto& [key, text] : config.model.switches) {
    try {
      check_switch_of(find_model(config.model.name), key, text);
    } catch (const Error& error) {
      lines += (lines.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!lines.empty()) throw Error(Exit::bad_input, lines);
}

void check_model(const RunConfig& config) {
  check_network(network_config(config, any_inputs, any_outputs));
}

void check_positions(const RunConfig& config) {
  const auto names = model_names();
  if (config.train.position_stretch == 1 || std::find(names.begin(), names.end(), config.model.name) == names.end())
    return;
  if (!find_model(config.model.name).traits.has_positions)
    throw bad_input("train.position_stretch", formatted("{} has no positions, expected 1, got {}", config.model.name,
                                                        config.train.position_stretch));
}

NetworkKeys network_keys(const RunConfig& config) {
  const ModelConfig model = network_config(config, any_inputs, any_outputs);
  NetworkKeys out;
  out.width = model.mixer.width;
  for (const auto& each : find_model(model.name).switches) out.switches[each.name()] = model.mixer.text(each.name());
  return out;
}

// Keys without effect on this model: quirks of other models.
std::vector<std::string> unread_keys(const RunConfig& config) {
  std::vector<std::string> out;
  if (!model_facts(config.model.name).published_in_bf16) out.emplace_back("quirks.delta_bf16");
  return out;
}

SizeFound solve_size(const RunConfig& config, const SizeMatch& asked, const TaskSize& task) {
  MatchRequest request;
  request.model = config.model.name;
  request.switches = config.model.switches;
  request.layers = config.model.layers;
  request.residual = config.model.residual;
  request.inputs = task.channels;
  request.outputs = task.answers;
  request.length = std::max<int64_t>(1, std::llround(task.train_frames));
  request.size = asked.by == MatchedSize::params ? parameters_of : asked.by == MatchedSize::state ? state_of : flops_of;
  request.target = asked.target;
  request.step = asked.step;
  request.solve_states = asked.by == MatchedSize::state;
  std::optional<SizeFound> found;
  if (const auto nearest = nearest_width(request))
    found = SizeFound{nearest->config.mixer.width, nearest->d_state, nearest->size};
  if (const std::string fault = size_fault(asked, found); !fault.empty())
    throw bad_input("suite.match", config.model.name + ": " + fault);
  return *found;
}

// Caches the sizes, since a suite asks for a few networks many times. Seeds, rates and labels do not matter.
std::function<SizeFound(const RunConfig&, const SizeMatch&)> remembered_sizes() {
  auto known = std::make_shared<std::map<std::string, SizeFound>>();
  return [known](const RunConfig& config, const SizeMatch& asked) {
    const TaskSize task = size_of_task(config);
    std::string key =
        formatted("{} {} {} {} {} {} {} {}", to_string(asked.by), asked.target, asked.step, config.model.name,
                  config.model.layers, to_string(config.model.residual), task.channels, task.answers);
    if (asked.by == MatchedSize::flops) key += formatted(" {}", task.train_frames);
    for (const auto& [name, value] : config.model.switches) key += formatted("\n{}={}", name, value);
    const auto found = known->find(key);
    if (found != known->end()) return found->second;
    return known->emplace(key, solve_size(config, asked, task)).first->second;
  };
}

// Makes the task at every point that the config tests, so that impossible points are rejected before training.
void check_points(const RunConfig& config, const Task& task) {
  for (const int point : config.eval.points) {
    try {
      task.at(Split::test, point);
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
      const std::string line = error.what();  // "[where] what"
      throw bad_input("eval." + find_task(config.task.kind).axis->key, line.substr(line.find(']') + 2));
    }
  }
}

std::vector<SwitchRow> switch_rows() {
  std::vector<SwitchRow> out;
  for (const auto& row : registry())
    for (const auto& each : row.switches)
      out.push_back({row.name, each.name(), each.initial_text(), each.range(), each.meaning()});
  return out;
}

}  // namespace

void check_dropout(const RunConfig& config) {
  if (config.model.dropout == 0) return;
  const int64_t frames = size_of_task(config).max_train_frames;
  int64_t channels = config.model.width;
  try {
    channels = network_config(config, any_inputs, any_outputs).mixer.width;
  } catch (const Error&) {  // reported by check_model
  }
  std::string lines;
  const auto most = [&](const char* where, const char* what, int64_t number, int64_t bound) {
    if (number <= bound) return;
    lines += formatted("{}[{}] {} under dropout, expected at most {}, got {}", lines.empty() ? "" : "\n", where, what,
                       bound, number);
  };
  most("task.length", "frames of the longest training sample", frames, kDropoutFrames);
  most("model.width", "channels", channels, kDropoutChannels);
  if (!lines.empty()) throw Error(Exit::bad_input, lines);
}

ModelRules model_rules() {
  ModelRules rules;
  rules.switches = switch_names();
  rules.table = switch_rows();
  rules.each_switch = check_each_switch;
  rules.checks = {check_model, check_positions};
  rules.network = network_keys;
  rules.unread = unread_keys;
  rules.has_gpu = has_gpu;
  rules.match = remembered_sizes();
  return rules;
}

ModelRules run_rules() {
  ModelRules rules = model_rules();
  rules.checks.emplace_back([](const RunConfig& config) { storage_type(config.train); });
  rules.checks.emplace_back(check_dropout);
  // Caches tasks that passed, since a suite has few tasks and many runs.
  auto sound = std::make_shared<std::set<std::string>>();
  rules.samples = [sound](const RunConfig& config) {
    const std::string key = data_identity(config);
    if (sound->contains(key)) return;
    const RunData data = make_data(config);
    check_points(config, *data.task);
    sound->insert(key);
  };
  return rules;
}

}  // namespace sb
