#include "findings/trained.h"

#include <algorithm>

#include "base/format.h"
#include "findings/arm_values.h"
#include "findings/arms.h"
#include "findings/page_text.h"
#include "findings/population.h"
#include "report/palette.h"

namespace sb {
namespace {

bool is_trained(const OwnTest& test, const Comparison& c) {
  if (test.squared) {
    const double excess = c.in_distribution.value_or(usual_excess);
    return !test.best || test.score <= *test.best * (1 + excess);
  }
  if (test.score <= test.chance + chance_errors * test.error) return false;
  if (!test.best || (c.gaps.empty() && !c.in_distribution && c.statistic != Statistic::task_order)) return true;
  const double usual = test.by_n_gram ? 0 : usual_in_distribution;
  return test.score >= *test.best - c.in_distribution.value_or(usual);
}

// `grammar` is empty if there is one or none.
std::string words_of(const std::string& model, const std::string& grammar, const OwnTest& test) {
  std::string out =
      formatted("{} not trained{}: {} on its own test", model, grammar.empty() ? "" : " on grammar " + grammar,
                test.squared ? formatted("squared error {}", share(test.score)) : share(test.score));
  if (!test.squared && test.score <= test.chance + chance_errors * test.error)
    return out + formatted(", chance {}", share(test.chance));
  return out + formatted(", {} {}", test.squared ? "least" : test.by_n_gram ? "n-gram" : "ceiling", share(*test.best));
}

// How much worse the score is than the best one.
double lack_of(const OwnTest& test) {
  return (test.squared ? -1 : 1) * (test.best.value_or(1) - test.score);
}

// The arm's models that are not trained, with the worst in words.
std::optional<UntrainedModel> worst_of(const Comparison& c, const Arm& models, const ArmFigures& arm) {
  std::optional<UntrainedModel> out;
  std::vector<std::string> names;
  double most = 0;
  for (const auto& [place, test] : arm.own_tests) {
    if (is_trained(test, c)) continue;
    const std::string title = models.size() == 1 ? models.front().text() : model_title(place.first);
    if (!contains(names, title)) names.push_back(title);
    if (out && lack_of(test) <= most) continue;
    const std::string& name = place.first;
    const Unit& unit = place.second;
    const bool several = std::any_of(arm.own_tests.begin(), arm.own_tests.end(), [&](const auto& other) {
      return other.first.first == name && other.first.second != unit;
    });
    out = {{}, words_of(title, several && c.unit() == "grammar" ? grammar_text(unit) : "", test)};
    most = lack_of(test);
  }
  if (!out) return out;
  if (names.size() > 1) out->words += formatted(", and {} more", names.size() - 1);
  out->models = std::move(names);
  return out;
}

std::optional<UntrainedModel> both(const std::optional<UntrainedModel>& a, const std::optional<UntrainedModel>& b) {
  if (!a || !b) return a ? a : b;
  UntrainedModel out{a->models, a->words + "; " + b->words};
  for (const auto& model : b->models)
    if (!contains(out.models, model)) out.models.push_back(model);
  return out;
}

}  // namespace

bool needs_trained_models(const Comparison& c) {
  if (c.kind.empty())
    return c.beyond_paper && (c.statistic == Statistic::gap_accuracy || c.statistic == Statistic::retention ||
                              c.statistic == Statistic::task_order);
  return c.statistic != Statistic::throughput && !counted(c.statistic);
}

std::optional<OwnTest> own_test(const Result& result, const Comparison& c) {
  if (!result.test) return std::nullopt;
  const Measurement& test = *result.test;
  OwnTest out{test.score(), test.stderr_, result.chance, std::nullopt, test.mse.has_value(), false};
  if (test.ceiling && !c.kind.empty()) {
    out.best = test.ceiling->score();
  } else if (result.baselines) {
    out.best = result.baselines->best_n_gram();
    out.by_n_gram = out.best.has_value();
  }
  return out;
}

OwnTest best_test(const std::vector<OwnTest>& runs) {
  return *std::max_element(runs.begin(), runs.end(),
                           [](const OwnTest& a, const OwnTest& b) { return a.score < b.score; });
}

OwnTest mean_test(const std::vector<OwnTest>& runs) {
  OwnTest out = runs.front();
  double sum = 0;
  for (const auto& run : runs) {
    sum += run.score;
    out.error = std::max(out.error, run.error);
  }
  out.score = sum / static_cast<double>(runs.size());
  return out;
}

std::optional<UntrainedModel> untrained_model(const Comparison& c, const Figures& figures) {
  for (const auto& other : c.with) return both(worst_of(c, c.a, figures.a), worst_of(other, c.a, figures.b));
  return both(c.a_may_fail ? std::nullopt : worst_of(c, c.a, figures.a),
              c.b_may_fail ? std::nullopt : worst_of(c, c.b, figures.b));
}

std::optional<UntrainedModel> failing_model(const Comparison& c, const Figures& figures) {
  if (c.kind.empty()) return std::nullopt;
  Comparison usual = c;
  usual.in_distribution.reset();
  return both(worst_of(usual, c.a, figures.a), worst_of(usual, c.b, figures.b));
}

}  // namespace sb
