// Computes the part of a resolved config that can change a number: the text from which the run id is made.

#include <map>

#include "base/format.h"
#include "base/json.h"
#include "config/automaton_file.h"
#include "config/config_file.h"
#include "config/gaps_keys.h"

namespace sb {
namespace {

// Whether the key is part of the id. A key without effect because of other values is not.
bool has_part(const ResolvedConfig& config, const ConfigKey& p) {
  const bool unused = (p.name() == "task.kind" && config.values.task.kind == kGapsKind) ||
                      (p.name() == "grammar.automaton" && config.values.grammar.automaton.empty()) ||
                      (p.name() == "train.order_seed" && config.values.train.order_seed == 0) ||
                      (p.name() == "train.schedule" && config.values.train.schedule.empty()) ||
                      (p.name() == "train.position_stretch" && config.values.train.position_stretch == 1);
  return p.identifies && !unused && !silenced(config.values, p);
}

}  // namespace

bool silenced(const RunConfig& values, const ConfigKey& p) {
  if (!p.task_kind.empty() && p.task_kind != values.task.kind) return true;
  if (p.section == "grammar" && p.key != "seed" && p.key != "automaton") return !values.grammar.automaton.empty();
  return is_silenced_gap_key(values.task.task, p);
}

std::set<std::string> idle_keys(const RunConfig& values) {
  const TrainSection& t = values.train;
  const EvalSection& e = values.eval;
  std::set<std::string> out = {
      "quirks.padding_correct"};  // samples have exactly task.length elements, so none is only padding
  if (e.points.empty()) out.insert("eval.grid_samples");
  if (t.accumulate == 1 || t.accumulate == kAutomatic) out.insert("quirks.sum_accumulated");
  if (t.warmup == 0) out.insert("quirks.first_lr_zero");
  if (values.model.dropout == 0) out.insert("train.dropout_until");
  if (values.grammar.automaton.empty() && values.grammar.build.ambiguities == 0) out.insert("grammar.depth");
  out.merge(idle_gap_keys(values.task.task));
  return out;
}

std::string canonical_json(const ResolvedConfig& config, const ModelRules& rules) {
  std::map<std::string, std::map<std::string, std::string>> sections;
  RunConfig defaults, values = config.values;
  // accumulate = "auto" changes only rounding, so it has the id of accumulate = 1.
  for (RunConfig* each : {&defaults, &values}) {
    if (each->train.accumulate == kAutomatic) each->train.accumulate = 1;
  }
  // All values that mean "evaluate only at the end" get one spelling: the default if it means the same, else 0.
  const int64_t updates = values.train.updates;
  if (values.eval.every == 0 || values.eval.every >= updates)
    values.eval.every = updates <= defaults.eval.every ? defaults.eval.every : 0;
  for (const auto& p : config_keys()) {
    if (!has_part(config, p)) continue;
    const bool automaton = p.name() == "grammar.automaton";
    sections[p.section][p.key] =
        automaton ? json_quoted(automaton_identity(*config.values.grammar.file))
                  : json_text(p.get(config.keys_without_effect.contains(p.name()) ? defaults : values));
  }
  const TaskRow& task = find_task(values.task.kind);
  for (const auto& [key, value] : values.task.keys) {
    const auto file = values.task.files.find(key);
    sections["task"][key] =
        file == values.task.files.end() ? json_text(config_value(value)) : json_quoted(file->second->sha256);
  }
  if (task.name != kGapsKind && task.axis)
    sections["eval"][task.axis->key] = formatted("[{}]", joined(values.eval.points, ","));
  const NetworkKeys network = rules.network ? rules.network(config.values)
                                            : NetworkKeys{config.values.model.width, config.values.model.switches};
  sections["model"]["width"] = std::to_string(network.width);
  for (const auto& [key, text] : network.switches) sections["model"]["switch " + key] = json_quoted(text);
  std::string out = formatted("{{\"format\":{}", config_format);
  for (const auto& [section, keys] : sections) {
    std::vector<std::string> members;
    for (const auto& [key, text] : keys) members.push_back(formatted("{}:{}", json_quoted(key), text));
    out += formatted(",{}:{{{}}}", json_quoted(section), joined(members, ","));
  }
  return out + "}";
}

}  // namespace sb
