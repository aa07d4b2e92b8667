// Whether the models of a comparison learned what they were trained on. On other kinds of tasks, the run's own test has
// the distribution of its training.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "findings/claims.h"

namespace sb {

struct Figures;

constexpr double usual_in_distribution = .1;  // of accuracies at points of a test axis
constexpr double usual_excess = 1;            // of squared errors: at most twice the least
constexpr double chance_errors = 4;           // standard errors above chance

// The runs of one model on one grammar or set of samples.
struct OwnTest {
  double score = 0;   // accuracy or squared error
  double error = 0;   // its standard error, the largest of the runs
  double chance = 0;  // accuracy
  // The ceiling, or the least squared error; of gaps, and where no ceiling is known, the accuracy of the n-gram.
  std::optional<double> best = {};
  bool squared = false, by_n_gram = false;
};
// Whether verdicts need it: on kinds, and at gap lengths in claims beyond the paper.
bool needs_trained_models(const Comparison& comparison);
std::optional<OwnTest> own_test(const Result& result, const Comparison& comparison);
OwnTest best_test(const std::vector<OwnTest>& runs);  // one at least
OwnTest mean_test(const std::vector<OwnTest>& runs);  // one at least

struct UntrainedModel {
  std::vector<std::string> models;  // "Transformer"; of both arms
  std::string words;                // "Transformer not trained: .710 on its own test, ceiling 1.000, and 2 more"
};
// The models that did not learn their own distribution, the worst of each arm; nullopt: all did. Arms of which the
// claim asks a low accuracy are not judged.
std::optional<UntrainedModel> untrained_model(const Comparison& comparison, const Figures& figures);
// Models on a kind that did not learn it by the usual bounds, whatever the claim allows.
std::optional<UntrainedModel> failing_model(const Comparison& comparison, const Figures& figures);

}  // namespace sb
