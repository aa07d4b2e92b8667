#include "cli/run_costs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runs/schema.h"

namespace sb::cli {
namespace {

constexpr std::array kLearning = {
    "grammar.seed",  "train.seed",  "train.updates",        "train.lr",  "train.warmup",
    "train.clip",    "train.beta1", "train.beta2",          "train.eps", "train.weight_decay",
    "model.dropout", "run.seed",    "run.checkpoint_every", "run.label"};

std::string likeness(const ResolvedConfig& run) {
  std::string out;
  for (const auto& parameter : config_keys()) {
    if (std::find(kLearning.begin(), kLearning.end(), parameter.name()) != kLearning.end()) continue;
    out += parameter.name() + "=" + toml_text(parameter.get(run.values)) + "\n";
  }
  for (const auto& [name, value] : run.values.model.switches) out += name + "=" + value + "\n";
  return out;
}

std::string kind(const ResolvedConfig& run) {
  std::string out = run.values.model.name + "\n";
  for (const auto& parameter : config_keys())
    if (parameter.section == "task") out += toml_text(parameter.get(run.values)) + "\n";
  return out;
}

double scale(const ResolvedConfig& run, double flops) {
  return static_cast<double>(run.values.train.batch) * flops;
}

}  // namespace

void RunCosts::learn(const ResolvedConfig& run, double flops, double seconds) {
  const auto updates = static_cast<double>(run.values.train.updates);
  if (!(seconds > 0) || !std::isfinite(seconds) || updates <= 0) return;
  const auto add = [](Mean& mean, double value) {
    mean.sum += value;
    ++mean.count;
  };
  add(like_[likeness(run)], seconds / updates);
  if (scale(run, flops) > 0) add(scaled_[kind(run)], seconds / updates / scale(run, flops));
}

std::optional<double> RunCosts::seconds(const ResolvedConfig& run, double flops) const {
  const auto updates = static_cast<double>(run.values.train.updates);
  if (const auto like = like_.find(likeness(run)); like != like_.end()) return like->second.value() * updates;
  if (const auto other = scaled_.find(kind(run)); other != scaled_.end() && scale(run, flops) > 0)
    return other->second.value() * updates * scale(run, flops);
  return std::nullopt;
}

}  // namespace sb::cli
