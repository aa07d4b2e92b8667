#include "findings/comparison_cells.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

namespace sb {
namespace {

std::string arm_figure(const Comparison& c, const ArmFigures& arm, const std::optional<Estimate>& figure) {
  if (arm.gate_parameters) return grouped(static_cast<uint64_t>(*arm.gate_parameters));
  if (!figure || figure->n == 0) return "–";
  if (is_excess(c.statistic)) return signed_points(figure->mean);
  if (c.statistic == Statistic::throughput) return grouped(static_cast<uint64_t>(figure->mean + .5));
  if (c.statistic == Statistic::slope || is_order(c.statistic) || c.statistic == Statistic::drop)
    return effect_text(c, figure->mean);
  return share(figure->mean + arm.chance);
}

}  // namespace

std::string where_text(const ScaleVerdict& stratum) {
  return formatted("{}, {}", stratum.protocol, stratum.scale->name);
}

std::string other_layers(const ScaleVerdict& stratum, const ComparisonVerdict& one) {
  const auto usual = stratum.scale->keys.find("model.layers");
  const int64_t own = one.figures.layers;
  if (own == 0 || usual == stratum.scale->keys.end() || plain_value(usual->second) == std::to_string(own)) return "";
  return formatted("{} layer{}", own, own == 1 ? "" : "s");
}

std::string unusual_training(const ScaleVerdict& stratum, const ComparisonVerdict& one) {
  const auto usual = stratum.scale->results.find("train.updates");
  const int64_t updates = one.figures.updates;
  std::vector<std::string> parts;
  if (one.comparison->keys_at(stratum.scale->name).contains("grammar.vocab") && one.figures.states > 0)
    parts.push_back(formatted("{} states", one.figures.states));
  if (const std::string layers = other_layers(stratum, one); !layers.empty()) parts.push_back(layers);
  if (updates != 0 && (usual == stratum.scale->results.end() || usual->second != std::to_string(updates)))
    parts.push_back(formatted("{} updates", grouped(static_cast<uint64_t>(updates))));
  return joined(parts, ", ");
}

std::string where_text(const ScaleVerdict& stratum, const ComparisonVerdict& one) {
  const std::string unusual = unusual_training(stratum, one);
  return where_text(stratum) + (unusual.empty() ? "" : ", " + unusual);
}

std::string first_figure(const ComparisonVerdict& one) {
  return arm_figure(*one.comparison, one.figures.a, one.a);
}

std::string second_figure(const ComparisonVerdict& one) {
  const Comparison& c = *one.comparison;
  if (c.against_chance && one.a && one.a->n > 0) return formatted("chance {}", share(one.figures.a.chance));
  return c.b.empty() ? "" : arm_figure(c, one.figures.b, one.b);
}

std::string verdict_words(const ComparisonVerdict& one) {
  if (!one.comparison->reported) return one.words();
  if (one.why == Withheld::open_settings) return formatted("reported (settings of {} open)", joined(one.open, " and "));
  return one.why == Withheld::untrained ? formatted("reported ({})", one.withheld) : "reported";
}

std::string verdict_cell(const ComparisonVerdict& one) {
  return cell(verdict_words(one));
}

std::string in_brackets(const std::string& marks) {
  return marks.empty() ? "" : " (" + marks + ")";
}

void say(std::vector<std::string>& lines, const std::string& line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
}

std::vector<Answered> answers_to(const Question& question, const std::vector<ClaimVerdict>& verdicts) {
  std::vector<Answered> out;
  for (const auto& answer : question.answers)
    for (const auto& verdict : verdicts) {
      if (verdict.claim->id != answer.claim) continue;
      for (const auto& stratum : verdict.scales)
        for (const auto& one : stratum.comparisons)
          if (stratum.protocol == corrected_protocol && one.comparison->name() == answer.comparison && one.has_runs())
            out.push_back({&stratum, &one});
    }
  return out;
}

double mean_over(const std::map<Unit, double>& values, const std::map<Unit, double>& units) {
  std::vector<double> out;
  for (const auto& [unit, value] : values)
    if (units.contains(unit)) out.push_back(value);
  return out.empty() ? NAN : estimate(out).mean;
}

std::string ceilings_text(const ScaleVerdict& stratum) {
  std::vector<std::string> parts;
  std::set<std::string> places;
  bool n_grams = false;
  for (const auto& one : stratum.comparisons) {
    const Comparison& c = *one.comparison;
    const bool accuracies = c.statistic == Statistic::accuracy || c.statistic == Statistic::gap_accuracy;
    if (!accuracies || one.effect.n == 0 || !places.insert(c.place_text()).second) continue;
    const double ceiling = mean_over(one.figures.a.ceilings, one.figures.effects),
                 n_gram = mean_over(one.figures.a.n_grams, one.figures.effects);
    if (std::isnan(ceiling)) continue;
    n_grams |= !std::isnan(n_gram);
    parts.push_back(formatted("{} {}{}", c.place_text(), share(ceiling),
                              std::isnan(n_gram) ? "" : formatted(" ({})", share(n_gram))));
  }
  if (parts.empty()) return "";
  return formatted("Ceiling{}, {}: {}.", n_grams ? " (n-gram)" : "", where_text(stratum), joined(parts, "; "));
}

void add_notes(const ScaleVerdict& stratum, const ComparisonVerdict& one, std::vector<std::string>& lines) {
  for (const auto& line : below_n_gram(one)) say(lines, formatted("{}: {}.", where_text(stratum, one), line));
  for (const auto& setting : one.figures.unshared)
    say(lines, formatted("{}: only one model of a comparison was run with {}, which does not count.",
                         where_text(stratum, one), setting));
  for (const auto* arm : {&one.figures.a, &one.figures.b}) {
    for (const auto& run : arm->failed) say(lines, "Failed, and excluded from means: " + cell(run) + ".");
    for (const auto& run : arm->repeated) say(lines, "Repeated: " + cell(run) + ".");
  }
}

}  // namespace sb
