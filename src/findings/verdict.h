// Verdicts on claims, from the runs that are there.
//
// A comparison has an effect a - b per grammar; intervals are Student's t over grammars. With delta the smallest
// difference that matters:
//   "a is above b":     supported if the 95 % interval lies above delta, contradicted if it lies below -delta,
//   equivalent
//                       if the 90 % interval lies within ±delta, else undecided; below: the same with a and b
//                       exchanged;
//   "a is at least b":  supported if the 95 % interval lies above -delta, contradicted if it lies below -delta, else
//                       undecided; at most: the same with a and b exchanged.
// A diverged or collapsed run makes its comparison undecided. A claim is supported if every part is. Parts that stay
// contradicted under Holm's correction over the parts with runs make it "contradicted in k of n"; without these, parts
// that stay equivalent make it "equivalent in k of n".
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "findings/population.h"

namespace sb {

constexpr double equivalence_error = .10;

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
  std::optional<Estimate> a, b;      // the arms by themselves, over the same grammars
  std::optional<Interval> interval;  // 95 %; absent for fewer than two grammars
  bool exact = false;                // counted, not measured: no interval
  std::optional<PaperEffect> paper;  // only at the paper's scale
  std::vector<std::string> decides;  // what would decide it, if it is undecided

  bool failed() const { return !figures.a.failed.empty() || !figures.b.failed.empty(); }
  bool has_runs() const { return effect.n > 0 || failed(); }  // on a grammar that every arm has
};

// The rule for one comparison, without regard to failed runs.
Verdict verdict_of(const Comparison& comparison, const Estimate& effect);

// A claim at one scale under one protocol.
struct ScaleVerdict {
  const Scale* scale = nullptr;
  std::string protocol;
  Verdict verdict = Verdict::undecided;
  size_t parts = 0, with_runs = 0;                         // comparisons of the claim, and those with runs
  size_t supported = 0, contradicted = 0, equivalent = 0;  // the last two after Holm
  bool tested = false;                                     // some comparison, reported ones too, has runs
  std::vector<ComparisonVerdict> comparisons;

  std::string words() const;  // "contradicted in 2 of 12"
};
// Sets counts and verdict from the comparisons.
void conclude(ScaleVerdict& verdict);

struct ClaimVerdict {
  const Claim* claim = nullptr;
  std::vector<ScaleVerdict> scales;  // those with finished runs; empty: there are none
  std::vector<LostRun> lost;         // runs of a claim without these, whatever their scale
};

ScaleVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const Scale& scale,
                   const std::string& protocol);
// At every scale, or at this one alone, under every protocol that has a run of one of its comparisons.
ClaimVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const std::string& scale = {});

// Runs whose accuracy is above the ceiling of their own test by more than four standard errors: something is wrong with
// them. A line each.
std::vector<std::string> above_ceiling(const Rows& rows);
// How many runs there are, how many of them diverged, how many left no figure, and the first of these; empty if there
// are none.
std::vector<std::string> counts_of(const Rows& rows);

// Effects and their ends as people read them: points of accuracy, or the statistic's own unit.
std::string effect_text(const Comparison& comparison, double value);
std::string interval_text(const ComparisonVerdict& verdict);  // "[+1.2, +3.4]" or "–"
std::string evidence_text(const ComparisonVerdict& verdict);  // "4 grammars, 1 seed each"
std::string asks_text(const Comparison& comparison);          // "above +1.0", "at least −1.0"
// What would decide the undecided ones, a line each: "task 1: a − b: …", or "10 comparisons: …" if many lack the same.
std::vector<std::string> decides_of(const ScaleVerdict& verdict);
std::string unit_text(const Comparison& comparison);        // "points", "points per nat", …
std::vector<LostRun> lost_of(const ScaleVerdict& verdict);  // of all its comparisons

std::string verdict_text(const ExperimentClaims& experiment, const std::vector<ClaimVerdict>& verdicts,
                         const Rows& rows);
Json verdict_json(const ExperimentClaims& experiment, const std::vector<ClaimVerdict>& verdicts, const Rows& rows);

}  // namespace sb
