// Accuracies of one model at the paper's scale, and changes between the columns of the results table.
#pragma once
#include <optional>
#include <string>

#include "findings/population.h"

namespace sb {

constexpr double order_gap = .01;  // models whose accuracies differ by less have no order

struct Gain {
  std::string model;
  double from = 0, to = 0;
  double size() const { return to - from; }
};

// The accuracies of one model on one task at the paper's scale.
Figures figures_of_model(const Rows& rows, const Claims& claims, const char* protocol, const std::string& model,
                         int task);
double mean_of(const Figures& figures);  // over grammars
// From one to the other, over the grammars that both have.
std::optional<Gain> gain_between(const std::string& model, const Figures& from, const Figures& to);

}  // namespace sb
