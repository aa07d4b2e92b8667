#include "findings/verdict.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "findings/protocol.h"
#include "findings/tuning.h"
#include "report/palette.h"

namespace sb {
namespace {

std::vector<double> values_of(const std::map<Unit, double>& by_unit) {
  std::vector<double> out;
  for (const auto& [unit, value] : by_unit) out.push_back(value);
  return out;
}

constexpr size_t least_models = 6;  // in an order; fewer models often agree by chance

bool one_sided(Asks asks) {
  return asks == Asks::at_least || asks == Asks::at_most;
}

// The effect minus its reference, negated if needed so that the claim asks for a larger value.
Estimate turned(const Comparison& c, Estimate effect) {
  effect.mean -= c.reference;
  if (c.asks == Asks::below || c.asks == Asks::at_most) effect.mean = -effect.mean;
  return effect;
}

// Variance of Kendall's tau between two unrelated orders of `models` models. The models are a sample too, and more
// grammars do not reduce this variance.
double chance_variance(size_t models) {
  const auto m = static_cast<double>(models);
  return models < 2 ? 0 : 2 * (2 * m + 5) / (9 * m * (m - 1));
}

// Clips the interval to what a difference of accuracies, or a rank correlation, can be.
Interval within_range(Statistic statistic, const Interval& interval) {
  const bool shares =
      statistic == Statistic::accuracy || statistic == Statistic::gap_accuracy || statistic == Statistic::seen_gain;
  if (!shares && !is_order(statistic)) return interval;
  return {std::clamp(interval.low, -1.0, 1.0), std::clamp(interval.high, -1.0, 1.0)};
}

// The model with the lower accuracy, with the larger drop, or of the slope, if it is below the n-gram; empty otherwise.
std::string weak_model(const ComparisonVerdict& v) {
  const Statistic statistic = v.comparison->statistic;
  const bool slope = statistic == Statistic::slope;
  if (!slope && ((statistic != Statistic::accuracy && statistic != Statistic::drop) || !v.a || !v.b)) return "";
  const bool a = slope || (statistic == Statistic::drop ? v.a->mean > v.b->mean : v.a->mean < v.b->mean);
  const Arm& models = a ? v.comparison->a : v.comparison->b;
  return n_gram_above(models, a ? v.figures.a : v.figures.b, v.figures.effects) ? model_title(models.front().model)
                                                                                : "";
}

// Withholds the verdict if the interval alone does not decide.
void withhold(ComparisonVerdict& v, Verdict by_interval) {
  const Comparison& c = *v.comparison;
  const auto say = [&v](Withheld why, std::string words) {
    v.why = why;
    v.withheld = std::move(words);
  };
  if (is_order(c.statistic) && c.a.size() < least_models)
    return say(Withheld::few_models, formatted("{} models", c.a.size()));
  if (const auto untrained = untrained_model(c, v.figures)) return say(Withheld::untrained, untrained->words);
  if (v.effect.n > 0 && v.effect.n < least_grammars && v.figures.at_ceiling && c.statistic == Statistic::accuracy &&
      !one_sided(c.asks) && std::abs(v.effect.mean) < c.delta)  // more grammars could show equality at most
    return say(Withheld::at_ceiling, "at the ceiling");
  if (v.effect.n == 2) return say(Withheld::few_grammars, formatted("two {}s", c.unit()));
  if (by_interval == Verdict::undecided) return;
  const bool follows = by_interval == Verdict::equivalent || one_sided(c.asks) || c.statistic != Statistic::accuracy;
  if (v.figures.at_ceiling && follows && by_interval != Verdict::contradicted)
    return say(Withheld::at_ceiling, "at the ceiling");
  if (c.statistic == Statistic::drop && (v.figures.a.rates.size() > 1 || v.figures.b.rates.size() > 1))
    return say(Withheld::other_rates, "learning rates of the tasks differ");
  if (v.arms_differ_in_rate()) return say(Withheld::other_rates, "learning rates differ");
  if (by_interval == Verdict::equivalent || one_sided(c.asks)) return;
  if (const std::string weak = weak_model(v); !weak.empty()) say(Withheld::below_n_gram, weak + " below the n-gram");
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
  if (is_order(comparison.statistic)) out.effect.other_variance = chance_variance(comparison.a.size());
  if (!out.figures.a.values.empty()) out.a = estimate(values_of(out.figures.a.values));
  if (!out.figures.b.values.empty()) out.b = estimate(values_of(out.figures.b.values));
  if (const auto interval = out.effect.interval(family_error); interval && out.effect.n >= least_grammars)
    out.interval = within_range(comparison.statistic, *interval);
  out.untuned = is_untuned(rows, claims, scale, comparison, out.figures);
  if (out.failed()) return out;
  const Verdict by_interval = verdict_of(comparison, out.effect);
  withhold(out, by_interval);
  if (out.why == Withheld::no && by_interval != Verdict::undecided && scale.name == claims.choice_scale &&
      protocol == corrected_protocol) {
    out.open = open_models(rows, claims, comparison, out.figures, out.effect, by_interval);
    if (!out.open.empty()) {
      out.why = Withheld::open_settings;
      out.as_run = by_interval;
      out.withheld = formatted("{} as run; settings of {} open", to_string(by_interval), joined(out.open, " and "));
    }
  }
  if (out.why == Withheld::no && by_interval != Verdict::undecided && out.untuned &&
      rates_matter(comparison, out.effect, by_interval)) {
    out.why = Withheld::untuned;
    out.as_run = by_interval;
    out.withheld = formatted("{} as run; learning rates not chosen", to_string(by_interval));
  }
  if (out.why == Withheld::no) out.verdict = by_interval;
  if (out.verdict != Verdict::undecided)
    if (const auto failing = failing_model(comparison, out.figures)) out.failing = failing->words;
  return out;
}

constexpr const char* chosen_rates = "learning rates chosen on valid for every model (--sweep)";

// What a withheld verdict needs; empty if it needs more grammars, or is not withheld.
std::string need_of(const ComparisonVerdict& v) {
  const Comparison& c = *v.comparison;
  switch (v.why) {
    case Withheld::few_models:
      return formatted("more models than {}: so few can agree by chance", c.a.size());
    case Withheld::untrained: {
      const auto models = untrained_model(c, v.figures)->models;
      return formatted("longer training or other settings of {}, until {} own test", joined(models, " and "),
                       models.size() == 1 ? "it learns its" : "they learn their");
    }
    case Withheld::at_ceiling:
      return formatted("a {}: the models are at the ceiling of this one",
                       c.kind.empty() ? "larger grammar" : "harder task");
    case Withheld::below_n_gram:
      return "better settings for the model below the n-gram";
    case Withheld::other_rates:
      return c.statistic == Statistic::drop ? "runs of both tasks with one learning rate on all grammars"
                                            : "runs of both variants with one learning rate on all grammars";
    case Withheld::open_settings:
      if (c.statistic == Statistic::gap_accuracy)
        return formatted("settings of {} chosen by accuracy at longer gaps", joined(v.open, " and "));
      return formatted("{} with the settings that are best on tasks 1 and 3 of the choices' grammar",
                       joined(v.open, " and "));
    case Withheld::untuned:
      return chosen_rates;
    case Withheld::no:
    case Withheld::few_grammars:
      break;
  }
  return "";
}

// Lists what would decide the comparison: runs to repeat, missing runs, or the number of grammars needed.
void say_what_decides(ComparisonVerdict& v) {
  if (!v.held)
    v.decides.push_back(formatted("more {}s, so that it holds after Holm's correction", v.comparison->unit()));
  if (v.verdict != Verdict::undecided) return;
  for (const auto* arm : {&v.figures.a, &v.figures.b})
    for (const auto& run : arm->failed) v.decides.push_back("repeat the run at a lower learning rate: " + run);
  v.decides.insert(v.decides.end(), v.figures.missing.begin(), v.figures.missing.end());
  if (v.exact || !v.figures.found || v.failed()) return;
  const Comparison& c = *v.comparison;
  if (const std::string need = need_of(v); !need.empty()) {
    v.decides.push_back(need);
    return;
  }
  if (v.untuned && depends_on_rates(c) && std::abs(v.effect.mean) < untuned_allowance)
    v.decides.emplace_back(chosen_rates);
  if (v.effect.n >= least_grammars && !one_sided(c.asks)) v.weak = below_somewhere(v);
  if (!v.weak.empty())
    v.decides.push_back(
        formatted("models above the n-gram, by other settings, longer training or shorter test samples: {}",
                  joined(v.weak, "; ")));
  if (v.effect.n < least_grammars) {
    const size_t more = least_grammars - v.effect.n;
    v.decides.push_back(
        formatted("at least {} more {}{} on which all compared models are run, because a verdict needs three", more,
                  c.unit(), more == 1 ? "" : "s"));
    return;
  }
  const double mean = turned(c, v.effect).mean;
  const bool small = !one_sided(c.asks) && std::abs(mean) < c.delta;
  const double bound = !one_sided(c.asks) && mean > 0 ? c.delta : -c.delta;
  const auto needed = turned(c, v.effect).needed(bound, small ? equivalence_error : family_error);
  if (v.effect.n == least_grammars)
    v.decides.push_back(formatted("more {}s; three are too few to estimate how many", c.unit()));
  else if (needed && *needed > v.effect.n)
    v.decides.push_back(formatted("{} more {}{}, {} in all, if effect and spread stay as they are",
                                  *needed - v.effect.n, c.unit(), *needed - v.effect.n == 1 ? "" : "s", *needed));
  else {
    v.too_close = true;
    v.decides.push_back(
        formatted("not even 1,000 {}s: the effect is too close to the smallest difference that matters", c.unit()));
  }
}

void add_missing(std::vector<std::string>& out, const ScaleVerdict& verdict) {
  for (const auto& one : verdict.comparisons)
    for (const auto& what : one.figures.missing)
      if (one.figures.partly && std::find(out.begin(), out.end(), what) == out.end()) out.push_back(what);
}

}  // namespace

std::optional<BelowNGram> n_gram_above(const Arm& models, const ArmFigures& arm,
                                       const std::map<Unit, double>& grammars) {
  std::vector<double> accuracies, n_grams;
  for (const auto& [unit, accuracy] : arm.accuracies)
    if (grammars.contains(unit)) {
      accuracies.push_back(accuracy);
      n_grams.push_back(arm.n_grams.at(unit));
    }
  if (n_grams.empty() || models.size() != 1) return std::nullopt;
  const BelowNGram out{estimate(accuracies).mean, estimate(n_grams).mean};
  return out.accuracy < out.n_gram ? std::optional(out) : std::nullopt;
}

const char* to_string(Verdict verdict) {
  static constexpr const char* names[] = {"supported", "contradicted", "equivalent", "undecided"};
  return names[static_cast<size_t>(verdict)];
}

std::optional<PaperEffect> paper_effect(const Comparison& c) {
  const bool drop = c.statistic == Statistic::drop;
  if (!c.kind.empty() || (c.statistic != Statistic::accuracy && !drop) || c.against_chance || c.b.empty() ||
      c.first > 0 || !c.keys.empty() || !c.claim_keys.empty() || !c.claim_keys_at.empty())
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
  bool all = true;
  std::vector<ComparisonVerdict*> family;  // with the parts without runs, so that running them takes no verdict back
  std::vector<std::optional<double>> with, against, outside;
  for (auto& one : out.comparisons) {
    out.tested |= one.figures.found;
    if (one.comparison->reported) continue;
    ++out.parts;
    all &= one.verdict == Verdict::supported;
    out.with_runs += one.has_runs();
    if (one.exact) {
      out.supported += one.verdict == Verdict::supported;
      out.contradicted += one.verdict == Verdict::contradicted;
      continue;
    }
    const Comparison& c = *one.comparison;
    const Estimate wanted = turned(c, one.effect);
    const double bound = one_sided(c.asks) ? -c.delta : c.delta;
    const auto p = [&one](bool asked, const auto& make) {
      return asked && one.has_runs() ? make() : std::optional(1.0);
    };
    family.push_back(&one);
    with.push_back(p(wanted.mean > bound, [&] { return wanted.p_against(bound); }));
    against.push_back(p(wanted.mean < -c.delta, [&] { return wanted.p_against(-c.delta); }));
    outside.push_back(p(!one_sided(c.asks), [&] { return wanted.p_outside(c.delta); }));
  }
  const auto count = [&](Verdict verdict, const std::vector<std::optional<double>>& p) {
    const auto steps = holm(p, family_error);
    size_t held = 0;
    for (size_t i = 0; i < family.size(); ++i) {
      ComparisonVerdict& one = *family[i];
      if (one.verdict != verdict && one.as_run != verdict) continue;
      one.held = steps[i].decided;
      held += one.held && one.verdict == verdict;
    }
    return held;
  };
  out.contradicted += count(Verdict::contradicted, against);
  out.equivalent += count(Verdict::equivalent, outside);
  // A claim that asks for all of its parts needs no correction for their number; a count of some parts does.
  all &= out.parts > 0;
  out.supported = all ? out.parts : out.supported + count(Verdict::supported, with);
  out.verdict = out.contradicted > 0 ? Verdict::contradicted
                : all                ? Verdict::supported
                : out.equivalent > 0 ? Verdict::equivalent
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

bool ScaleVerdict::needs_more_than_grammars() const {
  return std::any_of(comparisons.begin(), comparisons.end(), [](const ComparisonVerdict& one) {
    return !one.comparison->reported &&
           (one.too_close || !one.weak.empty() || (one.why != Withheld::no && one.why != Withheld::few_grammars));
  });
}

bool ScaleVerdict::is_counted() const {
  return !comparisons.empty() &&
         std::all_of(comparisons.begin(), comparisons.end(), [](const ComparisonVerdict& one) { return one.exact; });
}

ScaleVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const Scale& scale,
                   const std::string& protocol) {
  ScaleVerdict out;
  out.scale = &scale;
  out.protocol = protocol;
  out.exploratory = contains(claim.exploratory, scale.name);
  for (const auto& comparison : claim.comparisons)
    if (comparison.only_scale.empty() || comparison.only_scale == scale.name)
      out.comparisons.push_back(begin(rows, claims, scale, protocol, comparison));
  conclude(out);
  for (auto& one : out.comparisons) {
    out.untuned |= one.untuned && one.has_runs();
    say_what_decides(one);
  }
  return out;
}

ClaimVerdict judge(const Rows& rows, const Claims& claims, const Claim& claim, const std::string& scale) {
  ClaimVerdict out;
  out.claim = &claim;
  out.only_scale = scale;
  std::set<std::string> own;
  for (const auto& comparison : claim.comparisons) own.merge(keys_beside_protocol(comparison));
  std::vector<std::string> protocols = protocols_of(rows, own);
  for (const auto& each : protocols_of(rows))
    if (std::find(protocols.begin(), protocols.end(), each) == protocols.end()) protocols.push_back(each);
  for (const auto& each : claims.scales) {
    if (!scale.empty() && each.name != scale) continue;
    for (const auto& protocol : protocols) {
      ScaleVerdict one = judge(rows, claims, claim, each, protocol);
      const auto lost = lost_of(one);
      out.lost.insert(out.lost.end(), lost.begin(), lost.end());
      add_missing(out.missing, one);
      if (one.tested) out.scales.push_back(std::move(one));
    }
  }
  if (!out.scales.empty()) {
    out.lost.clear();
    out.missing.clear();
  }
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
