// How alike the levels of an axis order the models.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace sb {

// A grammar, by the averaged axes that decide it.
using Unit = std::vector<std::string>;
// A level of what a slope or an order goes over: the values of what is free, or the size.
using Level = std::vector<std::string>;
using LevelValues = std::map<Level, std::map<Unit, double>>;  // of one model

struct Orders {
  size_t levels = 0;                    // that every model has, each model at another one of its own
  std::map<Unit, double> correlations;  // by grammar: mean over pairs of levels of Kendall's tau
};

// `by_size`: levels are sizes, and those of two models go together up to the ratio `match`.
Orders orders_of(const std::vector<LevelValues>& models, bool by_size, double match);

}  // namespace sb
