#include "findings/page.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arms.h"

namespace sb {
namespace {

const std::vector<int> far_gaps = {20, 50, 100};  // of task 4

// Text of a claims file or of a run inside a line or a cell of Markdown.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '|' || c == '<' || c == '*' || c == '_' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

std::string code(const std::string& text) {
  std::string out = one_line(text);
  std::replace(out.begin(), out.end(), '`', '\'');
  std::replace(out.begin(), out.end(), '|', '/');
  return "`" + out + "`";
}

std::string share(double value) {
  std::string out = fixed(value, 3);
  return out.starts_with("0.") ? out.substr(1) : out;
}

std::string signed_points(double value) {
  return formatted("{}{}", value < 0 ? "-" : "+", fixed(std::abs(value) * 100, 1));
}

// One model on one task at one scale.
struct ModelFigure {
  Estimate accuracy;
  std::set<Unit> grammars;
  std::map<Unit, double> ceilings;
  std::optional<double> ceiling;
  size_t diverged = 0;
  std::vector<std::string> collapsed;
  int64_t params = 0;
};

ModelFigure figure_of(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& model, int task) {
  Comparison c;
  c.a = {ArmModel{model, {}, {}}};
  c.task = task;
  if (task == 4) {
    c.statistic = Statistic::gap_accuracy;
    c.gaps = far_gaps;
  }
  const Figures figures = figures_of(rows, claims, scale, c);
  ModelFigure out;
  std::vector<double> values;
  for (const auto& [unit, value] : figures.effects) {
    values.push_back(value);
    out.grammars.insert(unit);
  }
  out.accuracy = estimate(values);
  out.ceilings = figures.a.ceilings;
  double sum = 0;
  for (const auto& [unit, value] : figures.a.ceilings) sum += value;
  if (!figures.a.ceilings.empty()) out.ceiling = sum / static_cast<double>(figures.a.ceilings.size());
  out.diverged = figures.a.diverged.size();
  out.collapsed = figures.a.collapsed;
  if (!figures.a.params.empty()) out.params = figures.a.params.front();
  return out;
}

// Minutes on a laptop, to see the program work: no evidence.
bool only_shown(const Scale& scale) {
  return scale.name == "quick";
}

// Scales that have a run of one of the paper's models.
std::vector<const Scale*> scales_with_runs(const Rows& rows, const Claims& claims) {
  std::vector<const Scale*> out;
  for (const auto& scale : claims.scales)
    if (std::any_of(rows.groups.begin(), rows.groups.end(),
                    [&](const Group& group) {
                      return contains(paper_models(), group.model()) && of_scale(rows, group, scale, {});
                    }) &&
        !only_shown(scale))
      out.push_back(&scale);
  return out;
}

std::string headline(const ClaimVerdict& verdict) {
  if (verdict.scales.empty()) return "Not tested: no runs.";
  std::vector<std::string> parts;
  for (const auto& scale : verdict.scales)
    parts.push_back(formatted("{} at {}", to_string(scale.verdict), scale.scale->name));
  std::string out = joined(parts, "; ");
  out[0] = static_cast<char>(out[0] >= 'a' && out[0] <= 'z' ? out[0] - 32 : out[0]);
  return out + ".";
}

std::string arm_figure(const Comparison& c, const ArmFigures& arm, const std::optional<Estimate>& figure) {
  if (arm.gate_parameters) return grouped(static_cast<uint64_t>(*arm.gate_parameters));
  if (!figure || figure->n == 0) return "–";
  if (c.statistic == Statistic::slope || c.statistic == Statistic::rank_correlation)
    return effect_text(c, figure->mean);
  return share(figure->mean);
}

void add_scale(std::string& out, const ScaleVerdict& scale) {
  out += formatted("\nAt {} ({}): **{}**.\n\n", code(scale.scale->name), cell(scale.scale->title),
                   to_string(scale.verdict));
  out +=
      "| comparison | a | b | a − b | must be | corrected interval | paper's a − b | difference | evidence | verdict "
      "|\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---|---|\n";
  std::vector<std::string> units, below;
  const auto say = [](std::vector<std::string>& lines, const std::string& line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  };
  for (const auto& one : scale.comparisons) {
    const Comparison& c = *one.comparison;
    const bool any = one.effect.n > 0;
    out += formatted("| {} | {} | {} | {} | {} {} | {} | {} | {} | {} | {} |\n", cell(c.name()),
                     arm_figure(c, one.figures.a, one.a), c.b.empty() ? "" : arm_figure(c, one.figures.b, one.b),
                     any ? effect_text(c, one.effect.mean) : "–", c.above ? "above" : "below", effect_text(c, c.margin),
                     interval_text(one), one.paper ? signed_points(*one.paper) : "",
                     one.paper && any ? signed_points(one.effect.mean - *one.paper) : "", evidence_text(one),
                     to_string(one.verdict));
    say(units, unit_text(c));
    if (one.figures.b.runs > 0 && one.figures.a.swept != one.figures.b.swept)
      say(below, cell(c.name()) + ": the learning rate of one arm alone was chosen among several.");
  }
  out += formatted("\nDifferences in {}.\n", joined(units, "; "));
  for (const auto& line : lost_lines(lost_of(scale))) say(below, cell(line) + ".");
  for (const auto& line : below) out += line + "\n";
  const auto decides = decides_of(scale);
  if (!decides.empty()) {
    out += "\nWhat would decide it:\n\n";
    for (const auto& line : decides) out += "- " + cell(line) + "\n";
  }
}

void add_claim(std::string& out, const ClaimVerdict& verdict) {
  const Claim& claim = *verdict.claim;
  const std::string number = claim.number > 0 ? std::to_string(claim.number) + ". " : "";
  out += formatted("\n## {}{}\n\n**{}** {}\n", number, code(claim.id), headline(verdict), cell(claim.sentence));
  for (const auto& scale : verdict.scales) add_scale(out, scale);
  if (!claim.fault.empty()) out += "\nFault of the published code: " + cell(claim.fault) + "\n";
  if (!claim.untested.empty()) out += "\nNot tested: " + cell(claim.untested) + "\n";
}

// "† …" for each of these runs, once
std::string collapsed_lines(const std::vector<std::string>& runs) {
  std::string out;
  for (const auto& words : std::set<std::string>(runs.begin(), runs.end()))
    out += "\n† Collapsed in training, and no verdict on the model: " + cell(words) + ".\n";
  return out;
}

// "‡ transformer: …": why a model has no figures.
std::string withheld_lines(const Claims& claims) {
  std::string out;
  for (const auto& [model, reason] : claims.withheld) out += formatted("\n‡ {}: {}\n", cell(model), cell(reason));
  return out;
}

void add_figures(std::string& out, const Rows& rows, const Claims& claims, const Scale& scale) {
  std::vector<std::string> collapsed;
  out += formatted("\n### At {}\n\n{}.\n\n", code(scale.name), cell(scale.title));
  out +=
      "| model | task | parameters | ours | 95 % interval | grammars | diverged | ceiling | paper | difference, points "
      "|\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (int task = 1; task <= 4; ++task)
    for (const auto& model : paper_models()) {
      const ModelFigure f = figure_of(rows, claims, scale, model, task);
      if (f.accuracy.n == 0 && f.diverged == 0) continue;
      const auto whole = f.accuracy.interval(family_error);
      const Interval interval = whole ? within_shares(*whole) : Interval{};
      const auto paper = paper_table(model, task);
      collapsed.insert(collapsed.end(), f.collapsed.begin(), f.collapsed.end());
      out += formatted("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell(model), task,
                       grouped(static_cast<uint64_t>(std::max<int64_t>(0, f.params))),
                       f.accuracy.n > 0 ? share(f.accuracy.mean) + (f.collapsed.empty() ? "" : " †") : "–",
                       whole ? formatted("[{}, {}]", share(interval.low), share(interval.high)) : "–", f.accuracy.n,
                       f.diverged, f.ceiling ? share(*f.ceiling) : "–",
                       paper ? formatted("{} ± {}", share(paper->accuracy), share(paper->spread)) : "–",
                       paper && f.accuracy.n > 0 ? signed_points(f.accuracy.mean - paper->accuracy) : "–");
    }
  out += collapsed_lines(collapsed);
  out += withheld_lines(claims);
}

}  // namespace

std::string findings_page(const Rows& rows, const Claims& claims, const std::string& source) {
  std::string out = formatted(
      "# Findings\n\n"
      "The paper's claims, tested on the runs in {}. `selectivbench experiments findings` writes this page from those "
      "files and "
      "from\n`configs/experiments/claims.toml`; nothing in it is typed by hand.\n\n"
      "A claim holds, or does not, only where the corrected interval of its comparisons lies beyond the margin; else "
      "it is "
      "undecided.\n"
      "The unit is the grammar: seeds of initialisation and order are averaged within one, models are compared on the "
      "same "
      "grammars,\n"
      "intervals are Student's t on those differences, with Holm's correction over the comparisons of a claim at one "
      "scale "
      "(5 % together).\n"
      "The paper's figures are the best of six combinations of learning rate and warm-up, chosen on its test set; ours "
      "have "
      "one setting,\nor the best of several on valid where a note says so. Runs of the scale `quick` are not judged.\n",
      code(source));
  std::vector<ClaimVerdict> verdicts;
  for (const auto& claim : claims.claims) {
    verdicts.push_back(judge(rows, claims, claim));
    std::erase_if(verdicts.back().scales, [](const ScaleVerdict& scale) { return only_shown(*scale.scale); });
  }
  std::stable_sort(verdicts.begin(), verdicts.end(), [](const ClaimVerdict& a, const ClaimVerdict& b) {
    const auto rank = [](const ClaimVerdict& v) { return v.claim->number > 0 ? v.claim->number : 1 << 20; };
    return rank(a) < rank(b);
  });
  out += "\n| claim | verdict |\n|---|---|\n";
  for (const auto& verdict : verdicts)
    out += formatted("| {}{} | {} |\n", verdict.claim->number > 0 ? std::to_string(verdict.claim->number) + ". " : "",
                     cell(verdict.claim->sentence), headline(verdict));
  const auto wrong = above_ceiling(rows);
  if (!wrong.empty()) {
    out += "\n**Runs above their ceiling by more than four standard errors, which no causal model can be:**\n\n";
    for (const auto& line : wrong) out += "- " + cell(line) + "\n";
  }
  for (const auto& verdict : verdicts) add_claim(out, verdict);
  out += "\n## Accuracy by model and task\n";
  const auto scales = scales_with_runs(rows, claims);
  if (scales.empty()) out += "\nNo runs.\n";
  for (const auto* scale : scales) add_figures(out, rows, claims, *scale);
  if (!scales.empty())
    out +=
        formatted("\nTask 4 is the mean over gaps of {} frames, trained with at most 10; the paper has no figures.\n",
                  joined(far_gaps, ", "));
  const auto counts = counts_of(rows);
  if (!counts.empty()) out += "\n## Runs\n\n";
  for (const auto& line : counts) out += "- " + cell(line) + "\n";
  return out;
}

namespace {

// ".526 ± .030 (4)": the mean, half of its interval and the number of grammars; where the interval would leave [0, 1],
// its ends.
std::string top_cell(const ModelFigure& f) {
  if (f.accuracy.n == 0) return f.diverged > 0 ? "diverged" : "–";
  const auto interval = f.accuracy.interval(family_error);
  std::string out = share(f.accuracy.mean);
  if (interval && leaves_shares(*interval)) {
    const Interval cut = within_shares(*interval);
    out += formatted(" [{}, {}]", share(cut.low), share(cut.high));
  } else if (interval) {
    out += " ± " + share(interval->high - f.accuracy.mean);
  }
  return out + (f.collapsed.empty() ? "" : " †") + formatted(" ({})", f.accuracy.n);
}

}  // namespace

std::string top_table(const Rows& rows, const Claims& claims) {
  std::vector<const Scale*> scales = scales_with_runs(rows, claims);
  const bool none = scales.empty();
  std::string head = "| model |", rule = "|---|";
  for (int task = 1; task <= 4; ++task) {
    if (task < 4) {
      head += formatted(" task {}: paper |", task);
      rule += "---:|";
    }
    const std::string lone = task < 4 ? "" : formatted("task {}: ", task);
    if (none) head += " " + lone + "ours |";
    for (const auto* scale : scales) head += formatted(" {}ours, {} |", lone, scale->name);
    for (size_t i = 0; i < std::max<size_t>(1, scales.size()); ++i) rule += "---:|";
  }
  std::string out = head + "\n" + rule + "\n";
  std::vector<std::string> collapsed;
  // Of a column: the ceiling of each grammar once, and which grammars its models have.
  std::map<std::pair<int, const Scale*>, std::map<Unit, double>> ceilings;
  std::map<std::pair<int, const Scale*>, std::set<std::set<Unit>>> grammars;
  for (const auto& model : paper_models()) {
    out += "| " + cell(model) + " |";
    for (int task = 1; task <= 4; ++task) {
      if (const auto paper = paper_table(model, task)) out += " " + share(paper->accuracy) + " |";
      if (none) out += claims.withheld.contains(model) ? " ‡ |" : " – |";
      for (const auto* scale : scales) {
        const ModelFigure f = figure_of(rows, claims, *scale, model, task);
        out += claims.withheld.contains(model) ? " ‡ |" : " " + top_cell(f) + " |";
        collapsed.insert(collapsed.end(), f.collapsed.begin(), f.collapsed.end());
        for (const auto& [unit, ceiling] : f.ceilings) ceilings[{task, scale}].emplace(unit, ceiling);
        if (!f.grammars.empty()) grammars[{task, scale}].insert(f.grammars);
      }
    }
    out += "\n";
  }
  out += "| ceiling |";
  for (int task = 1; task <= 4; ++task) {
    if (task < 4) out += " |";
    if (none) out += " – |";
    for (const auto* scale : scales) {
      const auto it = ceilings.find({task, scale});
      double sum = 0;
      if (it != ceilings.end())
        for (const auto& [unit, ceiling] : it->second) sum += ceiling;
      out += it == ceilings.end()
                 ? std::string(" – |")
                 : formatted(" {} ({}) |", share(sum / static_cast<double>(it->second.size())), it->second.size());
    }
  }
  out += "\n";
  if (std::any_of(grammars.begin(), grammars.end(), [](const auto& column) { return column.second.size() > 1; }))
    out +=
        "\nIn brackets: grammars. Models of a column do not all have the same ones yet, so their means are not to be "
        "held against each other;\n[docs/findings.md](docs/findings.md) compares models on the grammars that both "
        "have. The ceiling is the mean over all grammars of its column.\n";
  else if (!grammars.empty())
    out += "\nIn brackets: grammars, the same for all models of a column.\n";
  return out + collapsed_lines(collapsed) + withheld_lines(claims);
}

std::string with_table(std::string_view page, std::string_view table, const std::string& path) {
  const size_t begin = page.find(table_begins), end = page.find(table_ends);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      page.find(table_begins, begin + 1) != std::string_view::npos ||
      page.find(table_ends, end + 1) != std::string_view::npos)
    throw bad_input("experiments findings", formatted("expected the lines {} and {} once each, in {}", table_begins,
                                                      table_ends, printable(path, 400)));
  std::string out(page.substr(0, begin + table_begins.size()));
  out += "\n\n";
  out += table;
  out += "\n";
  out += page.substr(end);
  return out;
}

}  // namespace sb
