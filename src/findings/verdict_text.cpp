#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/comparison_cells.h"
#include "findings/verdict.h"

namespace sb {
namespace {

std::string capital(std::string text) {
  for (auto& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return text;
}

// Remarks on the figures, shown below the comparisons.
std::vector<std::string> remarks_of(const ScaleVerdict& scale) {
  std::vector<std::string> out;
  const auto say = [&](const std::string& line) {
    if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(line);
  };
  for (const auto& one : scale.comparisons) {
    const Figures& f = one.figures;
    for (const auto& line : below_n_gram(one)) say(line);
    for (const auto* arm : {&f.a, &f.b})
      for (const auto& run : arm->repeated) say("repeated: " + run);
    for (const auto* arm : {&f.a, &f.b})
      for (const auto& run : arm->unmeasured)
        say((one.comparison->statistic == Statistic::throughput ? "shared its device: "
             : one.comparison->first > 0    ? formatted("without {} elements per sample: ", one.comparison->first)
             : one.comparison->kind.empty() ? "without these gap lengths: "
                                            : "without these points: ") +
            run);
    if (f.b.runs > 0 && f.a.swept != f.b.swept)
      say(one.comparison->name() + ": the learning rate of one arm alone was chosen among several");
    if (!f.unshared.empty())
      say(formatted("{}: only one arm was run with {}, which does not count", one.comparison->name(),
                    joined(std::vector(f.unshared.begin(), f.unshared.end()), "; ")));
    if (one.arms_differ_in_rate())
      say(one.comparison->name() + ": the variants were not run at one learning rate on all of their grammars");
  }
  if (const auto count = std::count_if(scale.comparisons.begin(), scale.comparisons.end(),
                                       [](const auto& one) { return one.figures.other_strata > 0; });
      count > 0)
    out.push_back(
        formatted("runs of other settings, such as another number of updates, were not used in {} comparison{}", count,
                  count == 1 ? "" : "s"));
  return out;
}

void add_scale(std::string& out, const ScaleVerdict& scale) {
  out += formatted("  {}, {}: {}{}\n", scale.scale->name, scale.protocol, capital(scale.words()),
                   in_brackets(scale.marks()));
  TextTable table({"comparison", "a", "b", "a − b", "asked", "95 % interval", "evidence", "verdict"}, "lrrrrrll");
  for (const auto& one : scale.comparisons) {
    const Comparison& c = *one.comparison;
    const std::string unusual = unusual_training(scale, one);
    table.row({c.name(), first_figure(one), second_figure(one),
               one.effect.n > 0 ? effect_text(c, one.effect.mean) : "–", c.reported ? "" : asks_text(c),
               interval_text(one), evidence_text(one) + (unusual.empty() ? "" : ", " + unusual), verdict_words(one)});
  }
  const std::string text = table.text();
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    out += "    " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  if (const std::string line = ceilings_text(scale); !line.empty()) out += "    " + line + "\n";
  for (const auto& line : decides_of(scale)) out += "    would decide " + line + "\n";
  for (const auto& line : lost_lines(lost_of(scale))) out += "    note: " + line + "\n";
  for (const auto& line : remarks_of(scale)) out += "    note: " + line + "\n";
}

// "undecided (quick, published; paper, published)", each verdict with the scales and protocols that have it.
std::string verdict_line(const ClaimVerdict& verdict) {
  if (verdict.scales.empty())
    return !verdict.lost.empty()      ? "undecided (no finished runs)"
           : !verdict.missing.empty() ? "undecided (no runs of some of its models)"
                                      : "undecided (no runs)";
  std::vector<std::pair<std::string, std::vector<std::string>>> places;  // by words, in the order of the scales
  for (const auto& scale : verdict.scales) {
    const std::string words = scale.words() + in_brackets(scale.marks()),
                      place = formatted("{}, {}", scale.scale->name, scale.protocol);
    auto it = std::find_if(places.begin(), places.end(), [&](const auto& each) { return each.first == words; });
    if (it == places.end()) it = places.insert(places.end(), {words, {}});
    it->second.push_back(place);
  }
  std::vector<std::string> parts;
  for (const auto& [words, where] : places) parts.push_back(formatted("{} ({})", words, joined(where, "; ")));
  return joined(parts, ", ");
}

std::vector<std::string> units_of(const ScaleVerdict& scale) {
  std::vector<std::string> out;
  for (const auto& one : scale.comparisons)
    if (const std::string unit = unit_text(*one.comparison); std::find(out.begin(), out.end(), unit) == out.end())
      out.push_back(unit);
  return out;
}

Json interval_json(const std::optional<Interval>& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json();
}

Json arm_json(const ArmFigures& arm, const std::optional<Estimate>& figure) {
  Json out;
  if (figure) {
    out["mean"] = figure->mean;
    out["interval_95"] = interval_json(figure->n < least_grammars ? std::nullopt : figure->interval(family_error));
  }
  out["runs"] = arm.runs;
  out["seeds_a_grammar"] = Json::array({arm.fewest, arm.most});
  out["params"] = arm.params;
  out["learning_rates"] = arm.rates;
  out["failed"] = arm.failed;
  if (arm.gate_parameters) out["gate_parameters"] = *arm.gate_parameters;
  return out;
}

Json lost_json(const std::vector<LostRun>& runs) {
  Json out = Json::array();
  for (const auto& run : runs) out.push_back({{"run", run.id}, {"why", to_string(run.why)}, {"what", run.words}});
  return out;
}

Json comparison_json(const ComparisonVerdict& one) {
  const Comparison& c = *one.comparison;
  Json out;
  out["comparison"] = c.name();
  out["statistic"] = to_string(c.statistic);
  out["verdict"] = to_string(one.verdict);
  out["withheld"] = one.withheld;
  out["held"] = one.held;  // after Holm's correction
  out["asks"] = to_string(c.asks);
  out["delta"] = c.delta;
  out["reference"] = c.reference;
  out["reported"] = c.reported;
  out["effect"] = one.effect.n > 0 ? Json(one.effect.mean) : Json();
  out["sd"] = one.effect.sd ? Json(*one.effect.sd) : Json();
  out["interval_95"] = interval_json(one.interval);
  out["interval_90"] = one.interval ? interval_json(one.effect.interval(equivalence_error)) : Json();
  out["exact"] = one.exact;
  out["grammars"] = one.exact ? Json() : Json(one.effect.n);  // the effective sample size
  out["a"] = arm_json(one.figures.a, one.a);
  if (!c.b.empty()) out["b"] = arm_json(one.figures.b, one.b);
  out["paper_effect"] = one.paper ? Json(one.paper->effect) : Json();
  out["decides"] = one.decides;
  return out;
}

}  // namespace

std::string verdict_text(const Experiment& experiment, const std::vector<ClaimVerdict>& verdicts, const Rows& rows) {
  std::string out = one_line(experiment.title.empty() ? experiment.name : experiment.title) + "\n";
  if (!experiment.sentence.empty()) out += one_line(experiment.sentence) + "\n";
  TextTable lines({}, "ll");
  for (const auto& verdict : verdicts) lines.row({one_line(verdict.claim->title), verdict_line(verdict)});
  out += "\n" + lines.text();
  for (const auto& verdict : verdicts) {
    out += formatted("\n{} ({}): {}\n", one_line(verdict.claim->title), verdict.claim->id,
                     one_line(verdict.claim->sentence));
    if (verdict.scales.empty()) {
      out += formatted("  UNDECIDED: no {}runs of {} at {}\n", verdict.lost.empty() ? "" : "finished ",
                       verdict.lost.empty() && !verdict.missing.empty() ? "some of its models" : "it",
                       verdict.only_scale.empty() ? "any scale" : "scale " + verdict.only_scale);
      for (const auto& line : verdict.missing) out += "    missing: " + one_line(line) + "\n";
    }
    for (const auto& line : lost_lines(verdict.lost)) out += "    note: " + line + "\n";
    for (const auto& scale : verdict.scales) {
      add_scale(out, scale);
      const bool grammars = scale.comparisons.front().comparison->unit() == "grammar";
      out += formatted("    in {}; the unit is the {} are averaged within each\n", joined(units_of(scale), "; "),
                       grammars ? "grammar: seeds" : "grammar.seed, which draws the samples: runs");
    }
  }
  if (std::any_of(verdicts.begin(), verdicts.end(), [](const auto& verdict) {
        return std::any_of(verdict.scales.begin(), verdict.scales.end(), [](const auto& s) { return s.untuned; });
      }))
    out +=
        "\nuntuned: the learning rate of a model was not chosen by accuracy on valid, which favours models for which "
        "it was\n";
  // Diverged and collapsed runs are named by the comparisons that they belong to.
  out += "\n" + counts_of(rows) + "\n";
  for (const auto& line : absent_runs(rows, 3)) out += one_line(line) + "\n";
  for (const auto& line : above_ceiling(rows)) out += "WRONG: " + one_line(line) + "\n";
  return out;
}

Json verdict_json(const Experiment& experiment, const std::vector<ClaimVerdict>& verdicts, const Rows& rows) {
  Json out;
  out["experiment"] = experiment.name;
  out["claims"] = Json::array();
  for (const auto& verdict : verdicts) {
    Json claim;
    claim["id"] = verdict.claim->id;
    claim["sentence"] = verdict.claim->sentence;
    claim["scales"] = Json::array();
    for (const auto& scale : verdict.scales) {
      Json one;
      one["scale"] = scale.scale->name;
      one["protocol"] = scale.protocol;
      one["verdict"] = to_string(scale.verdict);
      one["exploratory"] = scale.exploratory;
      one["untuned"] = scale.untuned;
      one["parts"] = scale.parts;
      one["with_runs"] = scale.with_runs;
      one["supported"] = scale.supported;
      one["contradicted"] = scale.contradicted;
      one["equivalent"] = scale.equivalent;
      one["comparisons"] = Json::array();
      for (const auto& comparison : scale.comparisons) one["comparisons"].push_back(comparison_json(comparison));
      one["remarks"] = remarks_of(scale);
      one["without_figure"] = lost_json(lost_of(scale));
      claim["scales"].push_back(std::move(one));
    }
    if (verdict.scales.empty()) {
      claim["without_figure"] = lost_json(verdict.lost);
      claim["missing"] = verdict.missing;
    }
    out["claims"].push_back(std::move(claim));
  }
  out["runs"] = rows.runs.size();
  out["diverged"] = static_cast<size_t>(std::count(rows.standing.begin(), rows.standing.end(), Standing::diverged));
  out["above_ceiling"] = above_ceiling(rows);
  out["notes"] = rows.notes;
  return out;
}

}  // namespace sb
