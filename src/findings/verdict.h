// Verdicts on claims, from the available runs.
//
// A comparison has an effect a - b per grammar; intervals are Student's t over grammars. With delta as the smallest
// difference that matters:
//   "a is above b":
//     supported if the 95 % interval lies above delta, contradicted if it lies below -delta, equivalent if the
//     90 % interval lies within ±delta, else undecided; below: the same with a and b exchanged;
//   "a is at least b":
//     supported if the 95 % interval lies above -delta, contradicted if it lies below -delta, else undecided;
//     at most: the same with a and b exchanged.
// A diverged or collapsed run makes its comparison undecided. A verdict is withheld, so the comparison is undecided, if
//   - it has fewer than three grammars,
//   - it is an order of fewer than six models,
//   - it is a drop between tasks whose runs have different learning rates, or compares variants of one model at
//     different ones,
//   - it is of a kind, and a model did not learn its own test, which has the distribution of its training (trained.h),
//   - all its models are at the ceiling and it is not that one accuracy is above another,
//   - another setting of a model might change it ("open settings" in docs/verdicts.md),
//   - no learning rate was chosen, and a difference that is 20 points larger or smaller would change it, or
//   - it is that one accuracy is above another, and the lower one is below the n-gram, or that one drop is larger than
//     another, and this model is below the n-gram on the task it drops to, or that an accuracy rises or falls along an
//     axis, and its model is below the n-gram everywhere on it.
// A claim is supported if every part is supported. Parts that stay contradicted under Holm's correction over all
// parts make the claim "contradicted in k of n". Without these, parts that stay equivalent make it "equivalent in k
// of n"; without these, supported parts are counted in the same way.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "findings/population.h"
#include "suites/experiment.h"

namespace sb {

constexpr double equivalence_error = .10;
constexpr double untuned_allowance = .2;  // what other rates and longer training may change where no rate was chosen
constexpr size_t least_grammars =
    3;  // of a verdict and of an interval: the spread of two values is often small by luck

// Why the interval alone does not decide.
enum class Withheld {
  no,
  few_models,
  untrained,
  few_grammars,
  at_ceiling,
  below_n_gram,
  other_rates,
  open_settings,
  untuned
};

enum class Verdict { supported, contradicted, equivalent, undecided };
const char* to_string(Verdict verdict);

// The paper's effect from its table; ± is the root of the sum of its squared ±.
struct PaperEffect {
  double effect = 0, spread = 0;
};
std::optional<PaperEffect> paper_effect(const Comparison& comparison);

struct ComparisonVerdict {
  const Comparison* comparison = nullptr;
  Verdict verdict = Verdict::undecided;
  Figures figures;
  Estimate effect;
  std::optional<Estimate> a, b;      // each arm alone, over the same grammars
  std::optional<Interval> interval;  // 95 %, within what the statistic can be; absent for fewer than three grammars
  bool exact = false;                // an exact statistic, without interval
  Withheld why = Withheld::no;
  std::string withheld = {};      // the same in words: "at the ceiling", "two grammars"
  std::string failing = {};       // of a decided comparison: models that may fail on their own test, and do
  bool too_close = false;         // not even 1,000 grammars would decide
  std::vector<std::string> weak;  // of a comparison that its interval leaves open: models below the n-gram, and where
  bool held = true;               // false: the verdict does not survive Holm's correction, and is in no count
  bool untuned = false;           // learning rates were not chosen on its kind of task; false for what is counted
  std::vector<std::string> open;  // titles of models whose settings might still change the verdict
  Verdict as_run = Verdict::undecided;  // the verdict that they withhold
  std::optional<PaperEffect> paper;     // only at the paper's scale
  std::vector<std::string> decides;     // what would decide an undecided comparison

  bool failed() const { return !figures.a.failed.empty() || !figures.b.failed.empty(); }
  bool has_runs() const { return effect.n > 0 || failed(); }  // on a grammar common to all arms
  bool is_decided() const;           // counts, with a verdict from runs that survives Holm's correction
  bool would_decide() const;         // counts, and its verdict is withheld although it survives Holm's correction
  bool arms_differ_in_rate() const;  // variants of one model, without a common learning rate
  bool isolates() const;             // its arms are one model and differ in one switch or key
  std::string words() const;         // "undecided (at the ceiling)", "supported (not after Holm)"
};

// The rule for one comparison; ignores failed runs.
Verdict verdict_of(const Comparison& comparison, const Estimate& effect);

// A claim at one scale under one protocol.
struct ScaleVerdict {
  const Scale* scale = nullptr;
  std::string protocol;
  Verdict verdict = Verdict::undecided;
  size_t parts = 0, with_runs = 0;                         // comparisons of the claim, and those with runs
  size_t supported = 0, contradicted = 0, equivalent = 0;  // the last two after Holm's correction
  bool tested = false;                                     // some comparison, including reported ones, has runs
  bool untuned = false;                                    // a comparison with runs is
  std::string marks() const;                               // "exploratory, untuned", either or ""
  bool exploratory = false;                                // the claim says so for this scale
  std::vector<ComparisonVerdict> comparisons;

  bool has_only_unusable_runs() const;
  bool has_one_grammar() const;  // no comparison with runs has the two grammars that an interval needs
  bool is_counted() const;       // all figures are exact: no run was trained for them
  // Whether a comparison that counts is open, and not only for want of grammars.
  bool needs_more_than_grammars() const;
  std::string words() const;  // "contradicted in 2 of 12"
};
// Sets counts and verdict from the comparisons.
void conclude(ScaleVerdict& verdict);

struct ClaimVerdict {
  const Claim* claim = nullptr;
  std::vector<ScaleVerdict> scales;  // scales with finished runs
  std::vector<LostRun> lost;         // if `scales` is empty: lost runs of the claim at any scale
  std::vector<std::string> missing;  // if `scales` is empty: what comparisons lack that have runs of some arm
  std::string only_scale;            // the only scale that was judged; empty: all
};

ScaleVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const Scale& scale,
                   const std::string& protocol);
// Judges the claim at every scale, or only at `scale`, under every protocol that has a run of one of its comparisons.
ClaimVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const std::string& scale = {});

std::string counts_of(const Rows& rows);  // "21 runs; 0 diverged, 1 collapsed"
// Lines that name runs, and say how many more there are: runs excluded from means, and runs without a result.
std::vector<std::string> failed_runs(const Rows& rows, size_t most_named);
std::vector<std::string> absent_runs(const Rows& rows, size_t most_named);
std::vector<std::string> protocol_counts(const Rows& rows);  // runs by protocol, one line each

// Effects and interval ends for people: in points of accuracy, or in the unit of the statistic.
std::string effect_text(const Comparison& comparison, double value);
std::string interval_text(const ComparisonVerdict& verdict);  // "[+1.2, +3.4]" or "–"
std::string evidence_text(const ComparisonVerdict& verdict);  // "4 grammars, 1 seed each"
// Accuracies of the model and of the n-gram on these grammars if the arm's only model is below the n-gram: it may be
// trained badly.
struct BelowNGram {
  double accuracy = 0, n_gram = 0;
};
std::optional<BelowNGram> n_gram_above(const Arm& models, const ArmFigures& arm,
                                       const std::map<Unit, double>& grammars);
// "Gated DeltaNet on grammar 1" for each arm of one model that is below the n-gram on some of the grammars.
std::vector<std::string> below_somewhere(const ComparisonVerdict& verdict);
// Arms below the n-gram, one line each.
std::vector<std::string> below_n_gram(const ComparisonVerdict& verdict);
std::string asks_text(const Comparison& comparison);  // "above +1.0", "at least −1.0"
// What would decide the undecided comparisons, one line each: "task 1: a − b: …", or "10 comparisons: …" if many lack
// the same.
std::vector<std::string> decides_of(const ScaleVerdict& verdict);
std::string unit_text(const Comparison& comparison);        // "points", "points per nat", …
std::vector<LostRun> lost_of(const ScaleVerdict& verdict);  // of all its comparisons

std::string verdict_text(const Experiment& experiment, const std::vector<ClaimVerdict>& verdicts, const Rows& rows);
Json verdict_json(const Experiment& experiment, const std::vector<ClaimVerdict>& verdicts, const Rows& rows);

}  // namespace sb
