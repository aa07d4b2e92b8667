// The runs behind a comparison, found by their resolved configs, never by folder names.
//
// A stratum is the groups whose configs agree in everything but the model, quirks, the label, what changes rounding or
// the times of evaluation alone, and what the comparison frees: arms are compared within one only. Of several strata
// the one with the most grammars in common is taken, then the one with more updates, then the first; the others are
// counted. Of several sizes of an arm the largest pair within the scale's ratio of parameters is taken. None of this
// looks at an accuracy.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "findings/claims.h"
#include "findings/lost_runs.h"
#include "findings/orders.h"
#include "findings/statistics.h"

namespace sb {

struct ArmFigures {
  std::map<Unit, double> values;  // of the statistic, by grammar
  // Of the same measurements, where every run has one.
  std::map<Unit, double> n_grams, ceilings;
  size_t runs = 0;
  size_t fewest = 0, most = 0;          // runs a grammar (seeds of initialisation and order)
  std::vector<std::string> diverged;    // runs of the chosen setting, in words
  std::vector<std::string> collapsed;   // runs in the means that learnt nothing, in words
  std::vector<std::string> unmeasured;  // runs without the gap lengths asked for
  std::vector<int64_t> params;          // of the networks, a model and level each
  std::optional<int64_t> gate_parameters;
  bool swept = false;  // its learning rate was chosen among several
};

struct Figures {
  bool found = false;  // a stratum with every arm
  ArmFigures a, b;
  std::map<Unit, double> effects;    // a - b by grammar; a where there is no b
  std::vector<std::string> missing;  // runs that are not there, in words
  std::vector<LostRun> lost;         // runs of the population, at any setting, that are there without a figure
  std::vector<std::string> notes;
  size_t levels = 0;  // of slope and rank_correlation
  size_t other_strata = 0;
  int64_t updates = 0;  // of the stratum
};

Figures figures_of(const Rows& rows, const Claims& claims, const Scale& scale, const Comparison& comparison);

}  // namespace sb
