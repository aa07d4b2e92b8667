#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/suggest.h"
#include "base/text.h"
#include "suites/suite.h"

namespace sb {

std::string axis_fault(const std::string& key, const std::vector<std::string>& switches, bool select) {
  static const std::set<std::string> never = {"model.name",      "task.kind",        "task.number", "grammar.seed",
                                              "train.seed",      "train.order_seed", "run.seed",    "run.label",
                                              "train.precision", "train.device"};
  const ConfigKey* parameter = find_config_key(key);
  std::vector<std::string> known;
  for (const auto& name : switches) known.push_back("model." + name);
  for (const auto& [kind, own] : own_keys()) known.push_back(own.name());
  if (!parameter && std::find(known.begin(), known.end(), key) == known.end()) {
    for (const auto& p : config_keys()) known.push_back(p.name());
    return formatted("unknown key '{}'{}", printable(key), did_you_mean(key, known));
  }
  const bool trains = key.starts_with("model.") || key.starts_with("train.");
  if (never.contains(key) || (select && !trains) || (parameter && !parameter->identifies))
    return formatted("expected {}, got {}",
                     select ? "a key of [model] or [train] other than seeds, names, precision and device"
                            : "a key that is part of the run id, other than seeds, names, precision and device",
                     key);
  if (!select && (key == "task.objective" || key.starts_with("model.") || key.starts_with("quirks.")))
    return formatted(
        "expected a key of [grammar], [task], [train] or [eval] whose runs have comparable results, got {}", key);
  if (!select && (key == "train.lr" || key == "train.warmup"))
    return formatted("expected a key that is not selected over, got {}", key);
  return "";
}

}  // namespace sb
