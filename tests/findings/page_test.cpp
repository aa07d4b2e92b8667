#include "findings/page.h"

#include <gtest/gtest.h>

#include <random>

#include "worlds.h"

namespace sb::test {
namespace {

std::vector<TableRun> whole_table(const std::string& seeds) {
  return small_runs("[grid]\ntask.number = [1, 3]\nmodel.name = " + std::string(seven) + "\nrun.seed = " + seeds + "\n",
                    [](Result& r) { set_accuracy(r, paper_table(r.model, r.task)->accuracy + wobble(r)); });
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST(FindingsPage, WithoutResultsSaysSoOfEveryClaim) {
  const Claims& claims = shipped_claims();
  const std::string page = findings_page(rows_from({}), claims, "results/");
  EXPECT_EQ(count(page, "\n## "), claims.claims.size() + 1);
  EXPECT_EQ(count(page, "**Not tested: no runs.**"), claims.claims.size());
  EXPECT_EQ(count(page, "holds at"), 0U);
  for (const auto& claim : claims.claims) EXPECT_NE(page.find("`" + claim.id + "`"), std::string::npos) << claim.id;
}

TEST(FindingsPage, OfPartOfTheResultsTellsWhatIsMissing) {
  const std::string page = findings_page(rows_from(whole_table("[1, 2, 3, 4]")), shipped_claims(), "results/");
  EXPECT_NE(page.find("**Holds at small.** Mixing channels in the state is not needed"), std::string::npos) << page;
  EXPECT_NE(page.find("**Undecided at small.** A gate on the delta rule helps"), std::string::npos);
  EXPECT_NE(page.find("- task 2: gated\\_delta\\_net - delta\\_net: gated\\_delta\\_net on task 2 at scale small"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("| mamba2 | 1 | 4,700,000 | .9"), std::string::npos) << page;
  EXPECT_NE(page.find("56 runs, 0 of them diverged"), std::string::npos);
}

TEST(FindingsPage, DoesNotDependOnTheOrderOfTheFiles) {
  auto runs = whole_table("[1, 2, 3]");
  const std::string page = findings_page(rows_from(runs), shipped_claims(), "results/");
  const std::string table = top_table(rows_from(runs), shipped_claims());
  std::mt19937_64 engine(3);
  for (int i = 0; i < 3; ++i) {
    std::shuffle(runs.begin(), runs.end(), engine);
    for (auto& run : runs) run.folder = "elsewhere/" + std::to_string(engine());
    EXPECT_EQ(findings_page(rows_from(runs), shipped_claims(), "results/"), page);
    EXPECT_EQ(top_table(rows_from(runs), shipped_claims()), table);
  }
}

TEST(FindingsPage, NamesRunsAboveTheirCeiling) {
  auto runs = whole_table("[1, 2]");
  runs[0].result.test->accuracy = 1;
  EXPECT_NE(findings_page(rows_from(runs), shipped_claims(), "results/").find("- " + runs[0].result.model.substr(0, 5)),
            std::string::npos);
}

TEST(FindingsPage, MarksRunsThatLearntNothingAndKeepsThemInTheMean) {
  auto runs = whole_table("[1, 2]");
  for (auto& run : runs) run.result.baselines = BaselineFigures{.009, .98, {.06, .2}, 1000, 50};
  EXPECT_EQ(findings_page(rows_from(runs), shipped_claims(), "results/").find("†"), std::string::npos);
  const auto failed = std::find_if(runs.begin(), runs.end(), [](const TableRun& run) {
    return run.result.model == "gated_delta_net" && run.result.task == 1 && run.result.grammar_seed == 1;
  });
  ASSERT_NE(failed, runs.end());
  set_accuracy(failed->result, .0601);
  EXPECT_EQ(top_table(rows_from(runs), shipped_claims()).find("†"), std::string::npos);
  set_accuracy(failed->result, .0599);
  const Rows rows = rows_from(runs);
  const std::string page = findings_page(rows, shipped_claims(), "results/"), table = top_table(rows, shipped_claims());
  const std::string words = "delta\\_net, task 1, seed 1 (" + failed->result.run_id +
                            "): accuracy 0.060, the commonest state after the last symbol alone 0.060; trained with ";
  for (const auto& text : {page, table}) {
    EXPECT_EQ(count(text, "† Collapsed in training, and no verdict on the model: gated\\_" + words), 1U) << text;
    EXPECT_NE(text.find(" † "), std::string::npos);
  }
  EXPECT_NE(page.find("2 grammars, 1 seed each, 1 collapsed"), std::string::npos) << page;
  EXPECT_NE(page.find("- collapsed, in the means: gated\\_" + words), std::string::npos) << page;
  EXPECT_EQ(std::count_if(rows.notes.begin(), rows.notes.end(),
                          [](const std::string& note) { return note.starts_with("collapsed in training"); }),
            1);
}

TEST(FindingsPage, EveryRowOfATableHasAsManyCellsAsItsHead) {
  for (const auto& rows : {rows_from({}), rows_from(whole_table("[1]")), rows_from(whole_table("[1, 2, 3, 4]"))})
    for (const auto& text : {findings_page(rows, shipped_claims(), "results/"), top_table(rows, shipped_claims())}) {
      size_t cells = 0;
      for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        std::string line = text.substr(at, end - at);
        at = end + 1;
        for (size_t bar = line.find("\\|"); bar != std::string::npos; bar = line.find("\\|")) line.erase(bar, 2);
        const size_t here = line.starts_with('|') ? count(line, "|") : 0;
        EXPECT_TRUE(here == 0 || cells == 0 || here == cells) << line;
        cells = here;
      }
    }
}

TEST(TopTable, HasSevenModelsFourTasksAndTheCeiling) {
  const std::string none = top_table(rows_from({}), shipped_claims());
  EXPECT_NE(none.find("| delta\\_net | .500 | – | .410 | – | .350 | – | – |"), std::string::npos) << none;
  EXPECT_EQ(count(none, "\n"), 2U + 7 + 1);
  const std::string some = top_table(rows_from(whole_table("[1, 2, 3, 4]")), shipped_claims());
  EXPECT_NE(some.find("ours, small"), std::string::npos);
  EXPECT_NE(some.find("| ceiling | | .990 (4) | | – | | .990 (4) | – |"), std::string::npos) << some;
  EXPECT_NE(some.find("the same for all models of a column"), std::string::npos) << some;
}

TEST(TopTable, ShowsNoFigureOfAWithheldModelAndSaysWhy) {
  const Claims shipped = read_claims(SB_SOURCE_DIR "/configs/experiments/claims.toml");
  ASSERT_TRUE(shipped.withheld.contains("transformer"));
  const Rows rows = rows_from(whole_table("[1, 2, 3, 4]"));
  const std::string table = top_table(rows, shipped), page = findings_page(rows, shipped, "results/");
  EXPECT_NE(table.find("| transformer | .860 | ‡ | .770 | ‡ | .670 | ‡ | ‡ |"), std::string::npos) << table;
  EXPECT_NE(table.find("\n‡ transformer: The baseline was not trained as published"), std::string::npos) << table;
  EXPECT_EQ(page.find("| transformer |"), std::string::npos) << page;
}

TEST(TopTable, SaysOverHowManyGrammarsAndWhereTheyAreNotTheSame) {
  auto runs = whole_table("[1, 2, 3, 4]");
  std::erase_if(runs, [](const TableRun& run) {
    return run.result.model == "gla" && run.result.task == 1 && run.result.grammar_seed > 2;
  });
  const std::string table = top_table(rows_from(runs), shipped_claims());
  const size_t gla = table.find("| gla |"), mamba = table.find("| mamba |");
  EXPECT_NE(table.substr(gla, table.find('\n', gla) - gla).find(" (2) | .680"), std::string::npos) << table;
  EXPECT_NE(table.substr(mamba, table.find('\n', mamba) - mamba).find(" (4) | .710"), std::string::npos) << table;
  EXPECT_NE(table.find("not to be held against each other"), std::string::npos) << table;
}

TEST(Markers, HoldTheTableAndNothingElseChanges) {
  const std::string page = "# A\n\n" + std::string(table_begins) + "\nold\n" + std::string(table_ends) + "\n\nrest\n";
  const std::string once = with_table(page, "| t |\n", "README.md");
  EXPECT_EQ(once, "# A\n\n" + std::string(table_begins) + "\n\n| t |\n\n" + std::string(table_ends) + "\n\nrest\n");
  EXPECT_EQ(with_table(once, "| t |\n", "README.md"), once);
  for (const std::string& bad : {std::string("none"), std::string(table_begins), page + page,
                                 std::string(table_ends) + std::string(table_begins)})
    EXPECT_NE(error_line([&] { with_table(bad, "", "README.md"); }).find("README.md"), std::string::npos);
}

}  // namespace
}  // namespace sb::test
