#include "findings/orders.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/number.h"
#include "report/statistics.h"

namespace sb {
namespace {

using Column = std::vector<const std::map<Unit, double>*>;  // one level, by model

double size_of(const Level& level) {
  return parse_finite(level.front()).value_or(1);
}

// For every model, the level that matches `level` of the first model: the same one, or the nearest size within `match`.
Column across_models(const std::vector<LevelValues>& models, const Level& level, bool by_size, double match) {
  Column out;
  for (const auto& model : models) {
    const std::map<Unit, double>* nearest = nullptr;
    double least = match;
    for (const auto& [other, units] : model) {
      const double p = by_size ? size_of(level) : 1, q = by_size ? size_of(other) : 1;
      const double ratio = by_size ? std::max(p, q) / std::min(p, q) : other == level ? 1 : 1e300;
      if (ratio > least) continue;
      least = ratio;
      nearest = &units;
    }
    if (nearest) out.push_back(nearest);
  }
  return out;
}

std::optional<double> mean_correlation(const std::vector<Column>& levels, const Unit& unit) {
  std::vector<std::vector<double>> orders;
  for (const auto& level : levels) {
    orders.emplace_back();
    for (const auto* model : level) {
      const auto it = model->find(unit);
      if (it == model->end()) return std::nullopt;
      orders.back().push_back(it->second);
    }
  }
  double sum = 0;
  size_t pairs = 0;
  for (size_t i = 0; i < orders.size(); ++i)
    for (size_t j = 0; j < i; ++j, ++pairs) {
      const auto tau = rank_correlation(orders[i], orders[j]);
      if (!tau) return std::nullopt;
      sum += *tau;
    }
  return sum / static_cast<double>(pairs);
}

}  // namespace

Orders orders_of(const std::vector<LevelValues>& models, bool by_size, double match) {
  std::vector<Level> firsts;
  for (const auto& [level, units] : models.front()) firsts.push_back(level);
  if (by_size)
    std::stable_sort(firsts.begin(), firsts.end(),
                     [](const Level& a, const Level& b) { return size_of(a) > size_of(b); });
  std::vector<Column> levels;
  std::set<const std::map<Unit, double>*> taken;
  for (const auto& level : firsts) {
    Column found = across_models(models, level, by_size, match);
    // A run that is used for two levels would agree with itself.
    if (found.size() != models.size() ||
        std::any_of(found.begin(), found.end(), [&](const auto* each) { return taken.contains(each); }))
      continue;
    taken.insert(found.begin(), found.end());
    levels.push_back(std::move(found));
  }
  Orders out;
  out.levels = levels.size();
  if (out.levels < 2) return out;
  for (const auto& [unit, value] : *levels.front().front())
    if (const auto mean = mean_correlation(levels, unit)) out.correlations[unit] = *mean;
  return out;
}

}  // namespace sb
