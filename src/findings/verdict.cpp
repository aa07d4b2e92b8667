#include "findings/verdict.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "findings/protocol.h"

namespace sb {
namespace {

std::vector<double> values_of(const std::map<Unit, double>& by_unit) {
  std::vector<double> out;
  for (const auto& [unit, value] : by_unit) out.push_back(value);
  return out;
}

bool one_sided(Asks asks) {
  return asks == Asks::at_least || asks == Asks::at_most;
}

// The effect minus its reference, negated if needed so that the claim asks for a larger value.
Estimate turned(const Comparison& c, Estimate effect) {
  effect.mean -= c.reference;
  if (c.asks == Asks::below || c.asks == Asks::at_most) effect.mean = -effect.mean;
  return effect;
}

double mean_of(const std::map<Unit, double>& by_unit) {
  return estimate(values_of(by_unit)).mean;
}

// Variance of Kendall's tau between two unrelated orders of so many models: the models are a sample too, and more
// grammars do not make it larger.
double chance_variance(size_t models) {
  const auto m = static_cast<double>(models);
  return models < 2 ? 0 : 2 * (2 * m + 5) / (9 * m * (m - 1));
}

// Whether both arms lie within two deltas of the ceiling. Such arms cannot differ by much, whatever the models are, so
// "equivalent" and "at least" would follow from the task and not from the models.
bool is_at_ceiling(const ComparisonVerdict& v) {
  if (v.comparison->statistic != Statistic::accuracy || !v.a || !v.b) return false;
  const auto close = [&](const ArmFigures& arm, const Estimate& figure) {
    return !arm.ceilings.empty() && figure.mean > mean_of(arm.ceilings) - 2 * v.comparison->delta;
  };
  return close(v.figures.a, *v.a) && close(v.figures.b, *v.b);
}

ComparisonVerdict begin(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& protocol,
                        const Comparison& comparison) {
  ComparisonVerdict out;
  out.comparison = &comparison;
  out.figures = figures_of(rows, claims, scale, protocol, comparison);
  if (scale.name == "paper") out.paper = paper_effect(comparison);
  if (counted(comparison.statistic)) {
    const auto &a = out.figures.a.gate_parameters, &b = out.figures.b.gate_parameters;
    out.exact = true;
    if (!a || !b) return out;
    out.effect.n = 1;
    out.effect.mean = static_cast<double>(*a - *b);
    const double wanted = turned(comparison, out.effect).mean;
    if (wanted != 0) out.verdict = wanted > 0 ? Verdict::supported : Verdict::contradicted;
    return out;
  }
  out.effect = estimate(values_of(out.figures.effects));
  if (comparison.statistic == Statistic::published_order)
    out.effect.other_variance = chance_variance(comparison.a.size());
  if (!out.figures.a.values.empty()) out.a = estimate(values_of(out.figures.a.values));
  if (!out.figures.b.values.empty()) out.b = estimate(values_of(out.figures.b.values));
  out.interval = out.effect.interval(family_error);
  if (!out.failed()) out.verdict = verdict_of(comparison, out.effect);
  const bool follows =
      out.verdict == Verdict::equivalent || (out.verdict == Verdict::supported && one_sided(comparison.asks));
  out.at_ceiling = follows && is_at_ceiling(out);
  if (out.at_ceiling) out.verdict = Verdict::undecided;
  return out;
}

// Lists what would decide the comparison: runs to repeat, missing runs, or the number of grammars needed.
void say_what_decides(ComparisonVerdict& v) {
  if (v.verdict != Verdict::undecided) return;
  for (const auto* arm : {&v.figures.a, &v.figures.b})
    for (const auto& run : arm->failed) v.decides.push_back("repeat the run at a lower learning rate: " + run);
  v.decides.insert(v.decides.end(), v.figures.missing.begin(), v.figures.missing.end());
  if (v.exact || !v.figures.found || v.failed()) return;
  const Comparison& c = *v.comparison;
  if (v.at_ceiling) {
    v.decides.push_back("a larger grammar: both arms are at the ceiling of this one");
    return;
  }
  if (v.effect.n < 2) {
    v.decides.push_back(formatted("at least {} more grammar{} that every model compared has run: an interval needs two",
                                  2 - v.effect.n, v.effect.n == 1 ? "" : "s"));
    return;
  }
  const double mean = turned(c, v.effect).mean;
  const bool small = !one_sided(c.asks) && std::abs(mean) < c.delta;
  const double bound = !one_sided(c.asks) && mean > 0 ? c.delta : -c.delta;
  const auto needed = turned(c, v.effect).needed(bound, small ? equivalence_error : family_error);
  if (needed && *needed > v.effect.n)
    v.decides.push_back(formatted("{} more grammar{}, {} in all, if effect and spread stay as they are",
                                  *needed - v.effect.n, *needed - v.effect.n == 1 ? "" : "s", *needed));
  else
    v.decides.push_back("not even 1,000 grammars: the effect is too close to the smallest difference that matters");
}

}  // namespace

const char* to_string(Verdict verdict) {
  static constexpr const char* names[] = {"supported", "contradicted", "equivalent", "undecided"};
  return names[static_cast<size_t>(verdict)];
}

std::optional<PaperEffect> paper_effect(const Comparison& c) {
  const bool drop = c.statistic == Statistic::drop;
  if ((c.statistic != Statistic::accuracy && !drop) || c.against_chance || c.b.empty() || !c.keys.empty())
    return std::nullopt;
  PaperEffect out;
  double squares = 0;
  // The figure of an arm on a task, with this sign; false: the paper has none.
  const auto add = [&](const Arm& arm, int task, double sign) {
    if (arm.size() != 1 || !arm.front().switches.empty() || !arm.front().keys.empty()) return false;
    const auto figure = paper_table(arm.front().model, task);
    if (!figure) return false;
    out.effect += sign * figure->accuracy;
    squares += figure->spread * figure->spread;
    return true;
  };
  const double sign = drop ? -1 : 1;
  if (!add(c.a, c.task, sign) || !add(c.b, c.task, -sign)) return std::nullopt;
  if (drop && (!add(c.a, c.from, 1) || !add(c.b, c.from, -1))) return std::nullopt;
  out.spread = std::sqrt(squares);
  return out;
}

Verdict verdict_of(const Comparison& c, const Estimate& effect) {
  const Estimate wanted = turned(c, effect);
  const auto interval = wanted.interval(family_error), narrow = wanted.interval(equivalence_error);
  if (!interval || !narrow) return Verdict::undecided;
  if (interval->low > (one_sided(c.asks) ? -c.delta : c.delta)) return Verdict::supported;
  if (interval->high < -c.delta) return Verdict::contradicted;
  if (!one_sided(c.asks) && narrow->low > -c.delta && narrow->high < c.delta) return Verdict::equivalent;
  return Verdict::undecided;
}

void conclude(ScaleVerdict& out) {
  out.parts = out.with_runs = out.supported = out.contradicted = out.equivalent = 0;
  std::vector<const ComparisonVerdict*> family;
  std::vector<std::optional<double>> against, outside;  // p of "not contradicted" and of "not equivalent"
  for (const auto& one : out.comparisons) {
    out.tested |= one.figures.found;
    if (one.comparison->reported) continue;
    ++out.parts;
    out.supported += one.verdict == Verdict::supported;
    if (!one.has_runs()) continue;
    ++out.with_runs;
    if (one.exact) {
      out.contradicted += one.verdict == Verdict::contradicted;
      continue;
    }
    const Comparison& c = *one.comparison;
    const Estimate wanted = turned(c, one.effect);
    family.push_back(&one);
    against.push_back(wanted.mean < -c.delta ? wanted.p_against(-c.delta) : std::optional(1.0));
    outside.push_back(one_sided(c.asks) ? std::optional(1.0) : wanted.p_outside(c.delta));
  }
  const auto contradicted = holm(against, family_error), equivalent = holm(outside, family_error);
  for (size_t i = 0; i < family.size(); ++i) {
    out.contradicted += family[i]->verdict == Verdict::contradicted && contradicted[i].decided;
    out.equivalent += family[i]->verdict == Verdict::equivalent && equivalent[i].decided;
  }
  out.verdict = out.contradicted > 0                          ? Verdict::contradicted
                : out.parts > 0 && out.supported == out.parts ? Verdict::supported
                : out.equivalent > 0                          ? Verdict::equivalent
                                                              : Verdict::undecided;
}

bool ScaleVerdict::has_only_unusable_runs() const {
  return with_runs == 0 && std::any_of(comparisons.begin(), comparisons.end(), [](const ComparisonVerdict& one) {
           return !one.figures.a.unmeasured.empty() || !one.figures.b.unmeasured.empty();
         });
}

bool ScaleVerdict::has_one_grammar() const {
  return with_runs > 0 && std::all_of(comparisons.begin(), comparisons.end(), [](const ComparisonVerdict& one) {
           return one.effect.n == 0 || (one.effect.n == 1 && !one.exact);
         });
}

std::string ScaleVerdict::words() const {
  if (with_runs == 0) return has_only_unusable_runs() ? "no usable runs" : "no runs";
  const auto of = [&](size_t count, size_t all) { return formatted(" in {} of {}", count, all); };
  if (verdict == Verdict::contradicted) return "contradicted" + (parts > 1 ? of(contradicted, with_runs) : "");
  if (verdict == Verdict::equivalent) return "equivalent" + (equivalent < parts ? of(equivalent, with_runs) : "");
  if (has_one_grammar()) return "undecided on one grammar";
  if (verdict == Verdict::supported || supported == 0) return to_string(verdict);
  return "undecided, supported" + of(supported, parts);
}

ScaleVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const Scale& scale,
                   const std::string& protocol) {
  ScaleVerdict out;
  out.scale = &scale;
  out.protocol = protocol;
  for (const auto& comparison : claim.comparisons)
    out.comparisons.push_back(begin(rows, claims, scale, protocol, comparison));
  for (auto& one : out.comparisons) say_what_decides(one);
  conclude(out);
  return out;
}

ClaimVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const std::string& scale) {
  ClaimVerdict out;
  out.claim = &claim;
  std::set<std::string> own;
  for (const auto& comparison : claim.comparisons)
    for (const auto* arm : {&comparison.a, &comparison.b})
      for (const auto& model : *arm)
        for (const auto& [key, value] : model.keys) own.insert(key);
  std::vector<std::string> protocols = protocols_of(rows, own);
  for (const auto& each : protocols_of(rows))
    if (std::find(protocols.begin(), protocols.end(), each) == protocols.end()) protocols.push_back(each);
  for (const auto& each : claims.scales) {
    if (!scale.empty() && each.name != scale) continue;
    for (const auto& protocol : protocols) {
      ScaleVerdict one = judge(rows, claims, claim, each, protocol);
      const auto lost = lost_of(one);
      out.lost.insert(out.lost.end(), lost.begin(), lost.end());
      if (one.tested) out.scales.push_back(std::move(one));
    }
  }
  if (!out.scales.empty()) out.lost.clear();
  return out;
}

std::vector<LostRun> lost_of(const ScaleVerdict& verdict) {
  std::vector<LostRun> out;
  for (const auto& one : verdict.comparisons)
    for (const auto& run : one.figures.lost)
      if (std::find(out.begin(), out.end(), run) == out.end()) out.push_back(run);
  return out;
}

}  // namespace sb
