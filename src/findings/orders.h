// Agreement between the rankings of models at different levels of an axis.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace sb {

// A grammar, identified by the averaged axes that determine it.
using Unit = std::vector<std::string>;
// A level of the axis of a slope or ranking: the values of the free keys, or the size.
using Level = std::vector<std::string>;
using LevelValues = std::map<Level, std::map<Unit, double>>;  // of one model

struct Orders {
  size_t levels = 0;                    // levels that every model has; no run counts for two levels
  std::map<Unit, double> correlations;  // by grammar: mean over pairs of levels of Kendall's tau
};

// `by_size`: levels are sizes, and sizes of two models match up to the ratio `match`.
Orders orders_of(const std::vector<LevelValues>& models, bool by_size, double match);

}  // namespace sb
