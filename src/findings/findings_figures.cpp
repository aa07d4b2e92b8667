#include "findings/findings_figures.h"

#include "base/format.h"
#include "findings/figures.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

namespace sb {
namespace {

bool in_points(Statistic statistic) {
  return statistic == Statistic::accuracy || statistic == Statistic::gap_accuracy || statistic == Statistic::drop;
}

std::string differences(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& title) {
  DifferencesFigure figure;
  figure.title = title;
  for (const auto& claim : claims.claims) {
    if (scale.name == "quick" && !shows_quick(claim)) continue;
    for (const auto& one : judge(rows, claims, claim, scale, corrected_protocol).comparisons) {
      if (one.effect.n == 0 || !in_points(one.comparison->statistic) || one.comparison->b.empty()) continue;
      Difference row;
      row.heading = claim.title;
      row.label = one.comparison->name();
      row.effect = one.effect.mean;
      row.interval = one.interval;
      if (one.paper) {
        row.paper = one.paper->effect;
        row.paper_spread = one.paper->spread;
      }
      row.verdict = one.comparison->reported ? "reported" : one.words();
      row.decided = one.verdict != Verdict::undecided && one.held;
      figure.rows.push_back(std::move(row));
    }
  }
  return differences_svg(figure);
}

std::string over_gaps(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& title) {
  LinesFigure figure;
  figure.title = title;
  for (const auto& model : paper_models()) {
    Line line{model_title(model), model, {}};
    for (const int gap : {10, 20, 50, 100}) {
      Comparison c;
      c.a = {ArmModel{model, {}, {}}};
      c.task = 4;
      c.statistic = Statistic::gap_accuracy;
      c.gaps = {gap};
      std::vector<double> values;
      for (const auto& [unit, value] : figures_of(rows, claims, scale, corrected_protocol, c).effects)
        values.push_back(value);
      if (!values.empty()) line.points.push_back(mean_point(gap, values));
    }
    if (!line.points.empty()) figure.lines.push_back(std::move(line));
  }
  return gaps_svg(figure);
}

}  // namespace

std::vector<FindingsFigure> findings_figures(const Rows& rows, const Claims& claims, const ValidCurves& curves) {
  std::vector<FindingsFigure> out;
  const auto add = [&](const std::string& name, const std::string& title, std::string svg) {
    if (!svg.empty()) out.push_back({name, title, std::move(svg)});
  };
  for (const auto& scale : claims.scales) {
    const std::string where = formatted("corrected protocol, scale {}", scale.name);
    const std::string first = "Differences between models, " + where, second = "Accuracy over gap length, " + where;
    add("differences_" + scale.name, first, differences(rows, claims, scale, first));
    if (scale.name == "quick") continue;
    add("gaps_" + scale.name, second, over_gaps(rows, claims, scale, second));
    for (const std::string protocol : {published_protocol, corrected_protocol})
      for (const int task : {1, 2, 3}) {
        LinesFigure lines = learning_curves(rows, claims, curves, scale, protocol, task);
        lines.title = formatted("Learning curves of task {}, {} protocol, scale {}", task, protocol, scale.name);
        add(formatted("curves_{}_{}_task{}", protocol, scale.name, task), lines.title, curves_svg(lines));
      }
  }
  return out;
}

std::string figures_section(const std::vector<FindingsFigure>& figures, const std::string& folder) {
  std::string out;
  for (const auto& figure : figures) out += formatted("\n![{}]({}{}.svg)\n", cell(figure.title), folder, figure.name);
  return out.empty() ? out : "\n## Figures\n" + out;
}

}  // namespace sb
