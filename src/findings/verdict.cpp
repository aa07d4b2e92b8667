#include "findings/verdict.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

// Of the paper's table, where both arms are its networks.
std::optional<double> paper_effect(const Comparison& c) {
  if (c.statistic != Statistic::accuracy || c.against_chance || c.b.empty() || !c.keys.empty()) return std::nullopt;
  const auto figure = [&](const Arm& arm) -> std::optional<double> {
    if (arm.size() != 1 || !arm.front().switches.empty() || !arm.front().quirks.empty()) return std::nullopt;
    const auto found = paper_table(arm.front().model, c.task);
    return found ? std::optional(found->accuracy) : std::nullopt;
  };
  const auto a = figure(c.a), b = figure(c.b);
  return a && b ? std::optional(*a - *b) : std::nullopt;
}

std::vector<double> values_of(const std::map<Unit, double>& by_unit) {
  std::vector<double> out;
  for (const auto& [unit, value] : by_unit) out.push_back(value);
  return out;
}

Verdict beyond(const Comparison& c, const Interval& interval) {
  if (interval.low > c.margin) return c.above ? Verdict::holds : Verdict::does_not_hold;
  if (interval.high < c.margin) return c.above ? Verdict::does_not_hold : Verdict::holds;
  return Verdict::undecided;
}

ComparisonVerdict begin(const Rows& rows, const Claims& claims, const Scale& scale, const Comparison& comparison) {
  ComparisonVerdict out;
  out.comparison = &comparison;
  out.figures = figures_of(rows, claims, scale, comparison);
  out.paper = paper_effect(comparison);
  if (comparison.statistic == Statistic::gate_parameters) {
    const auto &a = out.figures.a.gate_parameters, &b = out.figures.b.gate_parameters;
    out.exact = true;
    if (!a || !b) return out;
    out.effect.n = 1;
    out.effect.mean = static_cast<double>(*a - *b);
    if (out.effect.mean != comparison.margin)
      out.verdict = (out.effect.mean > comparison.margin) == comparison.above ? Verdict::holds : Verdict::does_not_hold;
    return out;
  }
  out.effect = estimate(values_of(out.figures.effects));
  if (!out.figures.a.values.empty()) out.a = estimate(values_of(out.figures.a.values));
  if (!out.figures.b.values.empty()) out.b = estimate(values_of(out.figures.b.values));
  return out;
}

// What is missing, or how many grammars the spread asks for.
void say_what_decides(ComparisonVerdict& v) {
  if (v.verdict != Verdict::undecided) return;
  v.decides = v.figures.missing;
  if (v.exact) return;
  if (!v.figures.found) return;
  if (v.effect.n < 2) {
    v.decides.push_back(formatted("{} more grammar{} that every model compared has run: an interval needs two",
                                  2 - v.effect.n, v.effect.n == 1 ? "" : "s"));
  } else if (const auto needed = v.effect.needed(v.comparison->margin, v.error); needed && *needed > v.effect.n) {
    v.decides.push_back(formatted("{} more grammar{}, {} in all, if effect and spread stay as they are",
                                  *needed - v.effect.n, *needed - v.effect.n == 1 ? "" : "s", *needed));
  } else {
    v.decides.push_back("no number of grammars up to 1,000: the effect is too near to the margin");
  }
}

Verdict together(const std::vector<ComparisonVerdict>& all) {
  const auto any = [&](Verdict what) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.verdict == what; });
  };
  if (any(Verdict::does_not_hold)) return Verdict::does_not_hold;
  return any(Verdict::undecided) ? Verdict::undecided : Verdict::holds;
}

std::string points(double share) {
  return formatted("{}{}", share < 0 ? "-" : "+", fixed(std::abs(share) * 100, 1));
}

}  // namespace

const char* to_string(Verdict verdict) {
  static constexpr const char* names[] = {"holds", "does not hold", "undecided"};
  return names[static_cast<size_t>(verdict)];
}

ScaleVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const Scale& scale) {
  ScaleVerdict out;
  out.scale = &scale;
  std::vector<std::optional<double>> p;
  std::vector<size_t> family;
  for (const auto& comparison : claim.comparisons) {
    out.comparisons.push_back(begin(rows, claims, scale, comparison));
    const ComparisonVerdict& one = out.comparisons.back();
    out.tested |= one.figures.found;
    if (one.exact) continue;
    family.push_back(out.comparisons.size() - 1);
    p.push_back(one.effect.p_against(comparison.margin));
  }
  const auto steps = holm(p, family_error);
  for (size_t i = 0; i < family.size(); ++i) {
    ComparisonVerdict& one = out.comparisons[family[i]];
    one.error = steps[i].error;
    one.interval = one.effect.interval(one.error);
    if (one.interval && steps[i].decided) one.verdict = beyond(*one.comparison, *one.interval);
  }
  for (auto& one : out.comparisons) say_what_decides(one);
  out.verdict = together(out.comparisons);
  return out;
}

ClaimVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const std::string& scale) {
  ClaimVerdict out;
  out.claim = &claim;
  for (const auto& each : claims.scales) {
    if (!scale.empty() && each.name != scale) continue;
    ScaleVerdict one = judge(rows, claims, claim, each);
    const auto lost = lost_of(one);
    out.lost.insert(out.lost.end(), lost.begin(), lost.end());
    if (one.tested || !scale.empty()) out.scales.push_back(std::move(one));
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

std::vector<std::string> above_ceiling(const Rows& rows) {
  std::vector<std::string> out;
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    const TableRun& run = rows.runs[i];
    for (const auto& [point, m] : points_of(run)) {
      if (!m->ceiling || m->samples < 2 || m->ceiling->samples < 2) continue;  // one sample has no standard error
      const double error = std::hypot(m->stderr_, m->ceiling->stderr_);
      // Where the ceiling is not exact the best causal model lies between it and its upper bound.
      const double most = std::max(m->ceiling->accuracy, m->ceiling->upper_bound);
      if (m->accuracy <= most + 4 * error) continue;
      out.push_back(
          formatted("{}, task {}{}, {}: accuracy {} is above its ceiling {} by more than 4 standard errors ({})",
                    printable(run.result.model), run.result.task, point.gap ? formatted(", gap {}", *point.gap) : "",
                    seeds_text(rows, i), fixed(m->accuracy, 4), fixed(most, 4), printable(run.result.run_id)));
    }
  }
  return out;
}

std::vector<std::string> counts_of(const Rows& rows) {
  constexpr size_t most_named = 20;
  std::vector<std::string> diverged, collapsed, out;
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    if (rows.standing[i] == Standing::diverged) {
      const LostRun run = diverged_run(rows, i);
      diverged.push_back(formatted("{} ({})", run.words, run.id));
    } else if (auto words = collapsed_run(rows, i)) {
      collapsed.push_back(std::move(*words));
    }
  }
  if (!rows.runs.empty())
    out.push_back(formatted("{} run{}, {} of them diverged", grouped(rows.runs.size()),
                            rows.runs.size() == 1 ? "" : "s", diverged.size()));
  const auto name = [&](const std::string& what, const std::vector<std::string>& names) {
    for (size_t i = 0; i < std::min(names.size(), most_named); ++i) out.push_back(formatted("{}: {}", what, names[i]));
    if (names.size() > most_named)
      out.push_back(formatted("{}: {} more, {} in all", what, names.size() - most_named, names.size()));
  };
  name("diverged, in no mean", diverged);
  name("collapsed, in the means", collapsed);
  using Why = LostRun::Why;
  for (const Why why : {Why::unfinished, Why::damaged, Why::untested, Why::other_schema}) {
    std::vector<std::string> names;
    for (const auto& absent : rows.absent)
      if (const LostRun run = lost_run(absent); run.why == why)
        names.push_back(run.words.empty() ? run.id : formatted("{} ({})", run.words, run.id));
    name(to_string(why), names);
  }
  return out;
}

std::string effect_text(const Comparison& c, double value) {
  if (c.statistic == Statistic::gate_parameters)
    return (value < 0 ? "-" : "+") + grouped(static_cast<uint64_t>(std::llround(std::abs(value))));
  if (c.statistic == Statistic::rank_correlation)
    return formatted("{}{}", value < 0 ? "-" : "+", fixed(std::abs(value), 2));
  return points(value);
}

std::string unit_text(const Comparison& c) {
  switch (c.statistic) {
    case Statistic::retention:
      return "% of the accuracy at the trained gap";
    case Statistic::slope:
      return c.over == "topological_entropy" ? "points a nat" : "points a factor 10 of " + c.over;
    case Statistic::rank_correlation:
      return "Kendall's tau";
    case Statistic::gate_parameters:
      return "gate parameters a layer";
    default:
      return "points";
  }
}

std::string interval_text(const ComparisonVerdict& v) {
  if (v.exact) return v.effect.n > 0 ? "exact" : "–";
  if (!v.interval) return "–";
  return formatted("[{}, {}]", effect_text(*v.comparison, v.interval->low),
                   effect_text(*v.comparison, v.interval->high));
}

std::string evidence_text(const ComparisonVerdict& v) {
  if (v.exact) return v.effect.n > 0 ? "counted" : "no runs";
  const Figures& f = v.figures;
  if (!f.found) return "no runs";
  const auto fewest = f.b.runs > 0 ? std::min(f.a.fewest, f.b.fewest) : f.a.fewest;
  const auto most = std::max(f.a.most, f.b.most);
  std::string out = formatted("{} grammar{}", v.effect.n, v.effect.n == 1 ? "" : "s");
  if (most > 0)
    out += fewest == most ? formatted(", {} seed{} each", most, most == 1 ? "" : "s")
                          : formatted(", {} to {} seeds each", fewest, most);
  if (f.levels > 1) out += formatted(", {} levels", f.levels);
  const size_t diverged = f.a.diverged.size() + f.b.diverged.size();
  if (diverged > 0) out += formatted(", {} diverged", diverged);
  const size_t collapsed = f.a.collapsed.size() + f.b.collapsed.size();
  if (collapsed > 0) out += formatted(", {} collapsed", collapsed);
  return out;
}

std::vector<std::string> decides_of(const ScaleVerdict& verdict) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // what, and which comparisons
  for (const auto& one : verdict.comparisons)
    for (const auto& what : one.decides) {
      auto it = std::find_if(found.begin(), found.end(), [&](const auto& each) { return each.first == what; });
      if (it == found.end()) it = found.insert(found.end(), {what, {}});
      it->second.push_back(one.comparison->name());
    }
  std::vector<std::string> out;
  for (const auto& [what, names] : found)
    out.push_back((names.size() == 1 ? names.front() : formatted("{} comparisons", names.size())) + ": " + what);
  return out;
}

}  // namespace sb
