// The runs behind a comparison, found by their resolved configs, never by folder names.
//
// A stratum is the groups of one protocol whose configs agree in everything but the model, the label, what changes
// rounding or the times of evaluation alone, and what the comparison frees: arms are compared within one only. Learning
// rate, residual and convolution are the protocol's for each model, so they may differ between arms. Of several strata
// the one with the most grammars in common is taken, then the one with more updates, then the first; the others are
// counted. Of several sizes of an arm the largest pair within the scale's ratio of parameters is taken. None of this
// looks at a test accuracy.
//
// Diverged and collapsed runs enter no mean.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "findings/claims.h"
#include "findings/lost_runs.h"
#include "findings/orders.h"
#include "report/statistics.h"

namespace sb {

struct ArmFigures {
  std::map<Unit, double> values;    // of the statistic, by grammar
  std::map<Unit, double> ceilings;  // of the same measurements, if every run has one
  size_t runs = 0;
  size_t fewest = 0, most = 0;          // runs per grammar (seeds of initialisation and order)
  std::vector<std::string> failed;      // diverged or collapsed runs of the chosen setting, in words: to repeat
  std::vector<std::string> unmeasured;  // runs without the gap lengths asked for
  std::vector<int64_t> params;          // of the networks, one per model and level
  std::vector<std::string> variants;    // residual and convolution of these, if the config has them
  std::optional<int64_t> gate_parameters;
  bool swept = false;  // its learning rate was chosen among several
};

struct Figures {
  bool found = false;  // a stratum with every arm
  ArmFigures a, b;
  std::map<Unit, double> effects;    // a - b by grammar; a if there is no b
  std::vector<std::string> missing;  // runs that are not there, in words
  std::vector<LostRun> lost;         // runs of the population, at any setting, that have no figure
  size_t levels = 0;                 // of slope, drop and rank_correlation
  size_t other_strata = 0;
  int64_t updates = 0;  // of the stratum
};

Figures figures_of(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& protocol,
                   const Comparison& comparison);

}  // namespace sb
