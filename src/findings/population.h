// Finds the runs of a comparison by their resolved configs, never by folder names.
//
// A stratum is a set of groups of one protocol. Their configs may differ only in the model, the label, keys that affect
// only rounding or evaluation times, and the free keys of the comparison. Arms are compared only within a stratum.
// Learning rate, residual and convolution are chosen by the protocol per model, so they may differ between arms.
//
// Of several strata, the one with the most common grammars is used, then the one with more updates, then the first; the
// others are counted. Of several sizes of an arm, the largest pair within the scale's ratio of parameters is used. None
// of these choices depends on a test accuracy.
//
// Diverged and collapsed runs are excluded from every mean.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "findings/claims.h"
#include "findings/lost_runs.h"
#include "findings/orders.h"
#include "findings/trained.h"
#include "report/statistics.h"

namespace sb {

constexpr double near_ceiling = .02;

struct ArmFigures {
  std::map<Unit, double> values;    // of the statistic, by grammar
  std::map<Unit, double> ceilings;  // of the same measurements, if every run has a ceiling
  // Of the test, if the runs have baselines; for a drop, of the task that models drop to; for a slope, of the best
  // level.
  std::map<Unit, double> accuracies, n_grams;
  size_t runs = 0;
  size_t fewest = 0, most = 0;          // runs per grammar (seeds of initialisation and order)
  std::vector<std::string> failed;      // diverged or collapsed runs of the chosen setting, to be repeated; in words
  std::vector<std::string> repeated;    // runs at a lower learning rate that stand for failed ones; in words
  double chance = 0;                    // that was subtracted from the values
  std::set<Unit> too_few;               // grammars with fewer runs than the best is taken of
  std::vector<std::string> unmeasured;  // runs without the requested gap lengths, or, for speeds, a device of their own
  std::vector<int64_t> params;          // of the networks, one per model and level
  std::optional<int64_t> gate_parameters;
  bool swept = false;                                         // all learning rates were selected from several
  std::set<std::string> rates;                                // learning rates of the settings that count
  std::map<std::pair<std::string, Unit>, OwnTest> own_tests;  // by model and grammar, if verdicts need them
};

struct Figures {
  bool found = false;   // a stratum has every arm
  bool partly = false;  // none has, but there are runs of some arm
  ArmFigures a, b;
  std::map<Unit, double> effects;              // a - b by grammar; a if there is no b
  std::vector<std::map<Unit, double>> models;  // without b: each model's share of `effects`
  std::vector<std::string> missing;            // missing runs, in words
  std::vector<LostRun> lost;                   // runs of the population, at any setting, without a figure
  size_t levels = 0;                           // of slope, drop and rank_correlation
  size_t all_levels = 0;                       // of a slope: also those left out, which have fewer grammars
  size_t other_strata = 0;
  bool at_ceiling = false;  // all models, for a drop on the task that they fall from, are within near_ceiling of it
  int64_t updates = 0;      // of the stratum
  int64_t states = 0;       // of its grammars
  int64_t layers = 0;       // of its networks; 0 if they differ
  std::set<std::string> unshared;  // chosen settings of one arm that do not count, because the other was not run so
};

Figures figures_of(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& protocol,
                   const Comparison& comparison);

}  // namespace sb
