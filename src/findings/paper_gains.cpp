#include "findings/paper_gains.h"

#include "report/statistics.h"

namespace sb {

Figures figures_of_model(const Rows& rows, const Claims& claims, const char* protocol, const std::string& model,
                         int task) {
  const Scale* scale = claims.scale("paper");
  if (scale == nullptr) return {};
  Comparison alone;
  alone.a = {ArmModel{model, {}, {}}};
  alone.task = task;
  return figures_of(rows, claims, *scale, protocol, alone);
}

double mean_of(const Figures& figures) {
  std::vector<double> accuracies;  // by grammar
  for (const auto& [unit, value] : figures.effects) accuracies.push_back(value);
  return estimate(accuracies).mean;
}

std::optional<Gain> gain_between(const std::string& model, const Figures& from, const Figures& to) {
  std::vector<double> before, after;
  for (const auto& [unit, value] : from.effects)
    if (const auto at = to.effects.find(unit); at != to.effects.end()) {
      before.push_back(value);
      after.push_back(at->second);
    }
  if (before.empty()) return std::nullopt;
  return Gain{model, estimate(before).mean, estimate(after).mean};
}

}  // namespace sb
