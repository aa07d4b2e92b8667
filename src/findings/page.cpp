#include "findings/page.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "config/protocol.h"
#include "findings/comparison_cells.h"
#include "findings/findings_figures.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/protocol.h"
#include "findings/results_table.h"
#include "report/palette.h"

namespace sb {
namespace {

std::vector<ClaimVerdict> judged(const Rows& rows, const Claims& claims, const std::vector<Claim>& all) {
  std::vector<ClaimVerdict> out;
  for (const auto& claim : all) out.push_back({&claim, page_strata(rows, claims, claim), {}, {}, {}});
  std::stable_sort(out.begin(), out.end(), [](const ClaimVerdict& a, const ClaimVerdict& b) {
    const auto rank = [](const ClaimVerdict& v) { return v.claim->number > 0 ? v.claim->number : 1 << 20; };
    return rank(a) < rank(b);
  });
  return out;
}

// The results at a scale; empty if the claims do not define it.
ResultsTable results_of(const Rows& rows, const Claims& claims, const std::string& name) {
  const Scale* scale = claims.scale(name);
  if (!scale) return {};
  return results_table(rows, claims, *scale, [](const ConfigMap& config) { return protocol_of(config); });
}

bool has_figures(const ResultsTable& table) {
  return std::any_of(table.begin(), table.end(), [](const ResultRow& row) { return !row.cells.empty(); });
}

// Names runs whose commit does not tell their program.
std::string sources_text(const Rows& rows) {
  const auto changed = std::count_if(rows.runs.begin(), rows.runs.end(), [](const auto& run) {
    return run.result.made && run.result.made->commit.ends_with("-dirty");
  });
  return changed == 0
             ? ""
             : formatted("\n{} of {} runs were made by programs with changes that are in no commit (`-dirty`).\n",
                         changed, rows.runs.size());
}

std::string protocols_text() {
  return "\n### The two protocols\n\n"
         "- *Published*: training as in the published code, with these of its "
         "[faults](findings/details.md#deviations-from-the-published-protocol): dropout stops, the first learning rate "
         "is 0, the Transformer has a double residual, and the delta family trains in bfloat16. The runs use this "
         "program's kernels, mixed precision where the published code uses float32, and gap decisions that do not "
         "repeat.\n"
         "- *Corrected*: training without dropout and without these faults. Settings were [chosen on another "
         "grammar](findings/details.md#what-was-chosen) with smaller networks, those of `small`. A model whose "
         "training failed with them has a lower learning rate. Where the reported grammars have runs at several rates, "
         "as on task 3 at `small`, the best on their valid samples counts, unless both sides of a comparison [need one "
         "rate](verdicts.md#open-settings). Settings at `quick` were not chosen by accuracy.\n";
}

std::string method_text() {
  return "Models are compared on the same grammars, and the number of grammars is the sample size: intervals are "
         "Student's t over the differences. Differences below 1 point do not matter unless a claim says otherwise. A "
         "verdict needs three grammars, and an order six models. A verdict is withheld, with the reason in brackets, "
         "if it would follow from the ceiling of the task, if the worse of two models is below the n-gram and may be "
         "trained badly, if the two tasks of a drop have runs at different learning rates, or if other settings of a "
         "model might change it. *Not after Holm*: the comparison alone would "
         "decide, but not as one of the comparisons of its claim, and it is not counted. A diverged or collapsed run "
         "(accuracy less than 1 point above that of the 1-gram) is excluded from means, and its comparisons are "
         "undecided until the run is repeated. "
         "[verdicts.md](../verdicts.md) defines the verdicts. The paper's numbers are the best of six combinations of "
         "learning rate and warm-up, chosen on its test set; the ± of a difference is the root of the sum of the "
         "squares of its ±.\n";
}

// The size of the networks at quick; empty if there are no runs.
std::string quick_text(const std::vector<ClaimVerdict>& verdicts) {
  std::vector<int64_t> sizes;
  for (const auto& verdict : verdicts)
    for (const auto& stratum : verdict.scales)
      for (const auto& one : stratum.comparisons)
        if (stratum.scale->name == "quick" && one.has_runs())
          for (const auto* arm : {&one.figures.a, &one.figures.b})
            sizes.insert(sizes.end(), arm->params.begin(), arm->params.end());
  if (sizes.empty()) return "";
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  return formatted(
      "\nAt `quick`, networks have one or two layers and {} to {} parameters, and train for minutes on two cores. "
      "Verdicts there are about networks and trainings of this size, and about learning rates that were not tuned. A "
      "verdict on another kind of task requires models "
      "that [learned their own test](../verdicts.md#trained-models).\n",
      grouped(static_cast<uint64_t>(*least)), grouped(static_cast<uint64_t>(*most)));
}

// Verdicts by the section that their claims name, in order of appearance; "" is the paper's.
std::vector<std::pair<std::string, std::vector<ClaimVerdict>>> by_section(const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::pair<std::string, std::vector<ClaimVerdict>>> out = {{"", {}}};
  for (const auto& verdict : verdicts) {
    const std::string& name = verdict.claim->section;
    auto it = std::find_if(out.begin(), out.end(), [&](const auto& section) { return section.first == name; });
    if (it == out.end()) it = out.insert(out.end(), {name, {}});
    it->second.push_back(verdict);
  }
  std::erase_if(out, [](const auto& section) { return section.second.empty(); });
  return out;
}

std::string heading_of(const std::string& section) {
  return section.empty() ? "The paper's claims" : cell(section);
}

// "## The paper's claims" and one heading per other section, each with a table of verdicts. Claims without runs are
// only named.
std::string overviews_text(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  std::string out;
  for (const auto& [section, own] : by_section(verdicts)) {
    std::vector<ClaimVerdict> run;
    std::vector<std::string> unrun, unusable;
    for (const auto& verdict : own)
      if (std::any_of(verdict.scales.begin(), verdict.scales.end(), [](const auto& s) { return s.with_runs > 0; }))
        run.push_back(verdict);
      else
        (std::any_of(verdict.scales.begin(), verdict.scales.end(),
                     [](const auto& s) { return s.has_only_unusable_runs(); })
             ? unusable
             : unrun)
            .push_back(claim_link(*verdict.claim, "findings/claims.md") + in_brackets(cell(verdict.claim->caveat)));
    out += formatted("\n## {}\n", heading_of(section));
    if (!run.empty()) out += "\n" + claims_overview(run, "findings/claims.md");
    if (section.empty()) out += conclusion_notes(rows, claims, verdicts);
    if (const std::string decided = decided_table(run); !decided.empty())
      out +=
          "\nA claim is supported if all its comparisons are. The table lists comparisons that are decided after "
          "Holm's correction, and comparisons whose verdict is withheld because other settings of a model might change "
          "it (*as run*). Differences of accuracies at `small`, and of accuracies and drops at rates that were not "
          "chosen, are checked in this way; retention and comparisons with chance are not. "
          "*Asked*: the difference that the claim needs; a *drop* is a loss. Intervals are for the settings that were "
          "run: at another learning rate, a difference may lie outside.\n\n" +
          decided;
    else if (const std::string measured = measured_table(run); !measured.empty())
      out +=
          "\nNo comparison is decided. Above `quick`, with the difference on each grammar in brackets if there are "
          "two:\n\n" +
          measured;
    if (!unusable.empty())
      out += formatted("\nClaim{} without usable runs: {}.\n", unusable.size() == 1 ? "" : "s", joined(unusable, "; "));
    if (!unrun.empty())
      out += formatted("\nClaim{} without runs: {}.\n", unrun.size() == 1 ? "" : "s", joined(unrun, "; "));
  }
  return out;
}

std::string claims_page(const std::vector<ClaimVerdict>& verdicts, const Claims& claims) {
  std::string out = "# Every claim and its comparisons\n\n[Findings](../findings.md) is the summary of this page.\n\n" +
                    method_text();
  for (const auto& [section, own] : by_section(verdicts)) {
    out += formatted("\n## {}\n", heading_of(section));
    if (!section.empty()) out += quick_text(own);
    for (const auto& verdict : own) out += claim_section(verdict, claims);
  }
  return out;
}

// What models reach on the first elements of task 2, where sequences are no longer than in training; empty without such
// runs at `small`.
std::string early_text(const std::vector<ClaimVerdict>& verdicts) {
  std::string title, own;
  std::vector<double> others;
  int first = 0;
  for (const auto& verdict : verdicts)
    for (const auto& stratum : verdict.scales)
      for (const auto& one : stratum.comparisons) {
        const Comparison& c = *one.comparison;
        if (verdict.claim->number == 0 || c.first == 0 || c.task != 2 || stratum.scale->name != "small" ||
            stratum.protocol != corrected_protocol || !one.a || !one.b)
          continue;
        title = model_title(c.a.front().model);
        own = share(one.a->mean);
        others.push_back(one.b->mean);
        first = c.first;
      }
  if (others.empty()) return "";
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  return formatted(
      "\nTest sequences of task 2 are longer than those of its training: 2,200 frames against 1,300 on average. On the "
      "first {} elements, which are within the trained length, {} has {}, and the other models have {} to {}.\n",
      first, title, own, share(*least), share(*most));
}

std::string networks_text(const std::string& title, const ResultsTable& table) {
  const std::string lines = networks_markdown(table);
  return lines.empty() ? "" : formatted("\n{}:\n\n{}", title, lines);
}

std::string runs_text(const Rows& rows) {
  std::string out = "\n## Runs\n\n";
  constexpr size_t most_named = 20;
  out += "- " + counts_of(rows) + "\n";
  for (const auto& lines : {protocol_counts(rows), failed_runs(rows, most_named), absent_runs(rows, most_named)})
    for (const auto& line : lines) out += "- " + cell(line) + "\n";
  return out;
}

bool is_curve(const FindingsFigure& figure) {
  return figure.name.starts_with("curves_");
}

}  // namespace

FindingsPages findings_pages(const Rows& rows, const Claims& claims, const std::string& source,
                             const ValidCurves& curves) {
  const auto verdicts = judged(rows, claims, claims.claims), deviations = judged(rows, claims, claims.deviations);
  const ResultsTable results = results_of(rows, claims, "paper"), small = results_of(rows, claims, "small");
  const auto networks = [&](const std::string& name) {
    const Scale* scale = claims.scale(name);
    return scale ? other_networks(rows, claims, *scale) : ResultsTable();
  };
  auto figures = findings_figures(rows, claims, curves);
  const auto split = std::stable_partition(figures.begin(), figures.end(), [](const auto& f) { return !is_curve(f); });
  const std::vector<FindingsFigure> learning(split, figures.end());
  figures.erase(split, figures.end());
  const std::string made_by = formatted(
      "\n`selectivbench experiments findings` writes this page from the runs in {} and from "
      "{}. Figures, intervals and verdicts are computed from the runs; the sentences of "
      "claims, and what they do not test, are from that file.\n",
      code(source), code(claims.file));

  FindingsPages out;
  const PaperComparison reproduction = reproduction_text(rows, claims, results),
                        corrections = corrections_text(rows, claims, results, deviations);
  out.front = "# Findings\n\n" + summary_text(claims, verdicts, reproduction, corrections) +
              "\nThe subpages show [every comparison](findings/claims.md) and [what each deviation costs, what was "
              "chosen and what is missing](findings/details.md). [Verdicts](verdicts.md) defines the words.\n";
  const auto wrong = above_ceiling(rows);
  if (!wrong.empty()) {
    out.front +=
        "\n**Runs above their ceiling by more than four standard errors, which is impossible for a causal model:**\n\n";
    for (const auto& line : wrong) out.front += "- " + cell(line) + "\n";
  }
  out.front += "\n## Results at the paper's scale\n\n" + results_markdown(results);
  out.front += "\nThe networks differ in more than one mechanism ([sizes and parts](findings/details.md#networks)).\n";
  out.front += "\n### Paper and reproduction\n\n" + reproduction.text + "\n### Reproduction and corrections\n\n" +
               corrections.text + protocols_text() + sources_text(rows);
  if (has_figures(small))
    out.front += formatted("\n## Results at `small`\n\n{}.\n\n{}", capitalised(claims.scale("small")->title),
                           results_markdown(small)) +
                 "\nTask 4 is the mean over gaps of 20, 50 and 100 frames, trained with at most 10; the paper gives no "
                 "numbers. Tasks 2 and 4 have the n-gram of task 1: noise of at most 0.2 leaves every symbol readable, "
                 "and the n-gram skips blanks, however many.\n" +
                 early_text(verdicts);
  out.front += overviews_text(rows, claims, verdicts) + differences_section(rows, claims, verdicts) +
               figures_section(figures, "findings/") + made_by;

  out.claims = claims_page(verdicts, claims) + made_by;

  out.details = "# Details of the findings\n\n[Findings](../findings.md) is the summary of this page.\n" +
                deviations_section(deviations) + choices_section(rows, claims) + "\n## Networks\n\nThe corrected " +
                "networks differ in more than one mechanism.\n" + networks_text("Paper's scale", results) +
                networks_text("Paper's scale, models that are not in the paper", networks("paper")) +
                networks_text("Scale `small`", small) +
                networks_text("Scale `small`, models that are not in the paper", networks("small")) +
                figures_section(learning, "") + undecided_section(verdicts, claims.missing) + runs_text(rows) + made_by;
  return out;
}

std::string top_table(const Rows& rows, const Claims& claims) {
  return short_results_markdown(results_of(rows, claims, "paper"));
}

std::string with_table(std::string_view page, std::string_view table, const std::string& path) {
  const size_t begin = page.find(table_begins), end = page.find(table_ends);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      page.find(table_begins, begin + 1) != std::string_view::npos ||
      page.find(table_ends, end + 1) != std::string_view::npos)
    throw bad_input("experiments findings", formatted("expected the lines {} and {} once each, in {}", table_begins,
                                                      table_ends, printable(path, 400)));
  std::string out(page.substr(0, begin + table_begins.size()));
  return out + "\n\n" + std::string(table) + "\n" + std::string(page.substr(end));
}

}  // namespace sb
