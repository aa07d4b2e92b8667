#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "findings/arm_values.h"
#include "findings/page_text.h"
#include "findings/verdict.h"
#include "report/palette.h"

namespace sb {

std::string effect_text(const Comparison& c, double value) {
  const bool order = is_order(c.statistic);
  if (c.statistic == Statistic::excess_ratio) value = std::expm1(value);
  const std::string digits = counted(c.statistic) ? grouped(static_cast<uint64_t>(std::llround(std::abs(value))))
                             : order              ? fixed(std::abs(value), 2)
                                                  : fixed(std::abs(value) * 100, 1);
  return (value < 0 ? "−" : "+") + digits;
}

std::string unit_text(const Comparison& c) {
  switch (c.statistic) {
    case Statistic::retention:
      return c.kind.empty() ? "% of the accuracy at the trained gap" : "% of the accuracy on test";
    case Statistic::excess_error:
      return "% of the least possible squared error";
    case Statistic::excess_ratio:
      return "% of the excess error of b; a and b in % above the least squared error";
    case Statistic::slope:
      return c.over == "topological_entropy" ? "points per nat" : "points per factor 10 of " + c.over;
    case Statistic::rank_correlation:
    case Statistic::published_order:
    case Statistic::task_order:
      return "Kendall's tau";
    case Statistic::throughput:
      return "% of frames per second";
    case Statistic::gate_parameters:
    case Statistic::gates_without_keys:
      return "gate parameters per layer";
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

std::string ComparisonVerdict::words() const {
  const std::string reason = !withheld.empty() ? withheld : !held ? "not after Holm" : failing;
  return reason.empty() ? to_string(verdict) : formatted("{} ({})", to_string(verdict), reason);
}

bool ComparisonVerdict::is_decided() const {
  return !comparison->reported && !exact && held && verdict != Verdict::undecided;
}

bool ComparisonVerdict::would_decide() const {
  return !comparison->reported && held && as_run != Verdict::undecided;
}

bool ComparisonVerdict::arms_differ_in_rate() const {
  if (comparison->a.size() != 1 || comparison->b.size() != 1 ||
      comparison->a.front().model != comparison->b.front().model)
    return false;
  const auto &x = figures.a.rates, &y = figures.b.rates;
  return !x.empty() && !y.empty() &&
         std::none_of(x.begin(), x.end(), [&](const std::string& rate) { return y.contains(rate); });
}

bool ComparisonVerdict::isolates() const {
  const Arm &x = comparison->a, &y = comparison->b;
  if (x.size() != 1 || y.size() != 1 || x.front().model != y.front().model) return false;
  std::set<std::string> differ;
  const auto compare = [&](const auto& one, const auto& other) {
    for (const auto& [key, value] : one)
      if (const auto at = other.find(key); at == other.end() || at->second != value) differ.insert(key);
  };
  compare(x.front().switches, y.front().switches);
  compare(y.front().switches, x.front().switches);
  compare(x.front().keys, y.front().keys);
  compare(y.front().keys, x.front().keys);
  return differ.size() == 1;
}

std::vector<std::string> below_n_gram(const ComparisonVerdict& v) {
  const Comparison& c = *v.comparison;
  std::vector<std::string> out;
  if ((c.statistic != Statistic::accuracy && c.statistic != Statistic::drop) || c.first > 0) return out;
  const auto add = [&](const Arm& models, const ArmFigures& arm) {
    const auto below = n_gram_above(models, arm, v.figures.effects);
    if (below && share(below->accuracy) != share(below->n_gram))
      out.push_back(formatted("{} is below the n-gram on {}: {} against {}", arm_text(models),
                              c.from > 0 ? c.task_text() : c.place_text(), share(below->accuracy),
                              share(below->n_gram)));
  };
  add(c.a, v.figures.a);
  add(c.b, v.figures.b);
  return out;
}

std::vector<std::string> below_somewhere(const ComparisonVerdict& v) {
  const Comparison& c = *v.comparison;
  std::vector<std::string> out;
  if (c.statistic != Statistic::accuracy && c.statistic != Statistic::drop && c.statistic != Statistic::slope)
    return out;
  const auto add = [&](const Arm& models, const ArmFigures& arm) {
    std::vector<std::string> grammars;
    for (const auto& [unit, accuracy] : arm.accuracies)
      if (v.figures.effects.contains(unit) && accuracy < arm.n_grams.at(unit)) grammars.push_back(grammar_text(unit));
    if (models.size() == 1 && !grammars.empty())
      out.push_back(formatted("{} on {}{} {}", models.front().text(), c.unit(), grammars.size() == 1 ? "" : "s",
                              and_list(grammars)));
  };
  add(c.a, v.figures.a);
  add(c.b, v.figures.b);
  return out;
}

std::string asks_text(const Comparison& c) {
  static constexpr const char* words[] = {"above", "below", "at least", "at most"};
  const double bound = counted(c.statistic) ? 0 : c.asks == Asks::above || c.asks == Asks::at_most ? c.delta : -c.delta;
  std::string out = formatted("{} {}", words[static_cast<size_t>(c.asks)], effect_text(c, bound + c.reference));
  return bound + c.reference == 0 ? formatted("{} 0", words[static_cast<size_t>(c.asks)]) : out;
}

namespace {

// "learning rate 0.004", "learning rates 0.004 and 0.0005" of a and b; empty if an arm has several.
std::string rates_text(const Figures& f) {
  const auto &a = f.a.rates, &b = f.b.rates;
  if (a.size() != 1 || b.size() > 1) return "";
  return b.empty() || a == b ? "learning rate " + *a.begin()
                             : formatted("learning rates {} and {}", *a.begin(), *b.begin());
}

}  // namespace

std::string evidence_text(const ComparisonVerdict& v) {
  if (v.exact) return v.effect.n > 0 ? "counted" : "no runs";
  const Figures& f = v.figures;
  if (!f.found) return "no runs";
  const auto fewest = f.b.runs > 0 ? std::min(f.a.fewest, f.b.fewest) : f.a.fewest;
  const auto most = std::max(f.a.most, f.b.most);
  const std::string unit = v.comparison->unit();
  std::string out = formatted("{} {}{}", v.effect.n, unit, v.effect.n == 1 ? "" : "s");
  const std::string run = unit == "seed" ? "run" : "seed";
  if (fewest != most)
    out += formatted(", {} to {} {}s each", fewest, most, run);
  else if (most > 1 || (most == 1 && unit != "seed"))
    out += formatted(", {} {}{} each", most, run, most == 1 ? "" : "s");
  if (f.levels > 1)
    out += formatted(", {}{} levels", f.levels, f.all_levels > f.levels ? formatted(" of {}", f.all_levels) : "");
  if (const std::string rates = rates_text(f); !rates.empty()) out += ", " + rates;
  const size_t failed = f.a.failed.size() + f.b.failed.size();
  if (failed > 0) out += formatted(", {} failed", failed);
  return out;
}

std::string ScaleVerdict::marks() const {
  std::vector<std::string> out;
  if (exploratory) out.emplace_back("exploratory");
  if (untuned) out.emplace_back("untuned");
  return joined(out, ", ");
}

std::string ScaleVerdict::words() const {
  if (with_runs == 0) return has_only_unusable_runs() ? "no usable runs" : "no runs";
  // " in 1 of 6, supported in 2, undecided in 3, 6 not run"
  const auto of = [&](size_t count) {
    std::string out = formatted(" in {} of {}", count, with_runs);
    const auto add = [&out](const char* what, size_t number) {
      if (number > 0) out += formatted(", {} in {}", what, number);
    };
    if (verdict != Verdict::undecided) {
      add("supported", supported);
      if (verdict == Verdict::contradicted) add("equivalent", equivalent);
      add("undecided", with_runs - contradicted - equivalent - supported);
    }
    return with_runs < parts ? out + formatted(", {} not run", parts - with_runs) : out;
  };
  if (verdict == Verdict::contradicted) return "contradicted" + (parts > 1 ? of(contradicted) : "");
  if (verdict == Verdict::equivalent) return "equivalent" + (equivalent < parts ? of(equivalent) : "");
  if (has_one_grammar()) return formatted("undecided on one {}", comparisons.front().comparison->unit());
  if (verdict == Verdict::supported || supported == 0) return to_string(verdict);
  return "undecided, supported" + of(supported);
}

std::vector<std::string> decides_of(const ScaleVerdict& verdict) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // what, and which comparisons
  for (const auto& one : verdict.comparisons)
    for (const auto& what : one.comparison->reported ? std::vector<std::string>{} : one.decides) {
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
