// What a claim comes to on the runs that are there. It holds where every comparison holds, and does not hold where one
// does not. A comparison holds where its interval lies beyond the margin, does not hold where it lies on the other
// side, and is undecided where the margin is inside: 95 % intervals of paired differences over grammars (Student's t),
// Holm's correction over the comparisons of the claim at one scale, those without runs included.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "findings/population.h"

namespace sb {

constexpr double family_error = .05;

enum class Verdict { holds, does_not_hold, undecided };
const char* to_string(Verdict verdict);  // "holds", "does not hold", "undecided"

struct ComparisonVerdict {
  const Comparison* comparison = nullptr;
  Verdict verdict = Verdict::undecided;
  Figures figures;
  Estimate effect;
  std::optional<Estimate> a, b;      // the arms by themselves, over the same grammars
  std::optional<Interval> interval;  // corrected; absent for fewer than two grammars
  double error = family_error;       // of that interval
  bool exact = false;                // counted, not measured: neither interval nor correction
  std::optional<double> paper;       // the paper's effect, from its table
  std::vector<std::string> decides;  // what would decide it, where it is undecided
};

struct ScaleVerdict {
  const Scale* scale = nullptr;
  Verdict verdict = Verdict::undecided;
  bool tested = false;  // some comparison has runs
  std::vector<ComparisonVerdict> comparisons;
};

struct ClaimVerdict {
  const Claim* claim = nullptr;
  std::vector<ScaleVerdict> scales;  // those with finished runs; empty: there are none
  std::vector<LostRun> lost;         // runs of a claim without these, whatever their scale
};

ScaleVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const Scale& scale);
// At every scale that has a run of one of its comparisons, or at this one alone.
ClaimVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const std::string& scale = {});

// Runs whose accuracy is above the ceiling of their own test by more than four standard errors: something is wrong with
// them. A line each.
std::vector<std::string> above_ceiling(const Rows& rows);
// How many runs there are, how many of them diverged, how many left no figure, and the first of these; empty where
// there are none.
std::vector<std::string> counts_of(const Rows& rows);

// Effect, ends and margin as people read them: points of accuracy, or the statistic's own unit.
std::string effect_text(const Comparison& comparison, double value);
std::string interval_text(const ComparisonVerdict& verdict);  // "[+1.2, +3.4]" or "–"
std::string evidence_text(const ComparisonVerdict& verdict);  // "4 grammars, 1 seed each"
// What would decide the undecided ones, a line each: "task 1: a - b: …", or "10 comparisons: …" where many lack the
// same.
std::vector<std::string> decides_of(const ScaleVerdict& verdict);
std::string unit_text(const Comparison& comparison);        // "points", "points a nat", …
std::vector<LostRun> lost_of(const ScaleVerdict& verdict);  // of all its comparisons

std::string verdict_text(const ExperimentClaims& experiment, const std::vector<ClaimVerdict>& verdicts,
                         const Rows& rows);
Json verdict_json(const ExperimentClaims& experiment, const std::vector<ClaimVerdict>& verdicts, const Rows& rows);

}  // namespace sb
