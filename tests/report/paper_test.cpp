#include "report/paper.h"

#include <gtest/gtest.h>

#include "report/table.h"
#include "synthetic.h"

namespace sb::test {
namespace {

const ResolvedConfig& main_run(const std::string& model, int task) {
  static const Suite suite = shipped("paper/main_table.toml");
  for (const auto& run : suite.runs)
    if (run.values.model.name == model && run.values.task.task.number == task) return run;
  throw std::logic_error("no such run");
}

std::optional<PaperFigure> figure(const std::string& text) {
  return paper_figure(result_of(resolve_text(text)));
}

TEST(Paper, MainTableRunsHavePaperFigures) {
  for (const auto& run : shipped("paper/main_table.toml").runs)
    EXPECT_TRUE(paper_figure(result_of(run)).has_value()) << run.canonical;
  EXPECT_DOUBLE_EQ(paper_figure(result_of(main_run("mamba2", 1)))->accuracy, .92);
  EXPECT_DOUBLE_EQ(paper_figure(result_of(main_run("mamba2", 2)))->accuracy, .67);
  EXPECT_DOUBLE_EQ(paper_figure(result_of(main_run("transformer", 3)))->spread, .07);
}

TEST(Paper, AnyOtherSettingRemovesPaperFigure) {
  const std::string base = "[task]\nnumber = 2\n[model]\nname = \"gated_delta_net\"\nwidth = 1152\n";
  ASSERT_TRUE(figure(base).has_value());
  for (const char* other :
       {"a_min = 0.5\n", "layers = 7\n", "mlp = 1\n", "heads = 8\n", "[train]\nlr = 4e-3\n", "[train]\nwarmup = 50\n",
        "[train]\nupdates = 3000\n", "[train]\nbatch = 32\n", "[train]\nweight_decay = 0.1\n",
        "[grammar]\ndepth = 20\n", "[grammar]\nstart_states = 5\n"})
    EXPECT_FALSE(figure(base + other).has_value()) << other;
  for (const char* other : {"gap_max = 50\n", "noise = 0.1\n", "length = 100\n", "objective = \"predict\"\n"})
    EXPECT_FALSE(figure("[model]\nname = \"gated_delta_net\"\nwidth = 1152\n[task]\nnumber = 2\n" + std::string(other)))
        << other;
  for (const char* same :
       {"[train]\nlr = 5e-4\n", "[train]\nseed = 7\n", "[train]\naccumulate = 16\n", "[quirks]\nfirst_lr_zero = true\n",
        "dropout = 0.1\n", "[run]\nprotocol = \"published\"\n", "a_min = 0\n"})
    EXPECT_TRUE(figure(base + same).has_value()) << same;
}

TEST(Paper, RequiresEnoughTestOrReferenceSamples) {
  Result run = result_of(main_run("mamba2", 1));
  ASSERT_TRUE(paper_figure(run).has_value());
  run.test->samples = 999;
  EXPECT_FALSE(paper_figure(run).has_value());
  run.test->samples = 2000;
  EXPECT_TRUE(paper_figure(run).has_value());
  run.test->split = "reference";
  EXPECT_TRUE(paper_figure(run).has_value());
  run.test->split = "valid";
  EXPECT_FALSE(paper_figure(run).has_value());
  run.test.reset();
  EXPECT_FALSE(paper_figure(run).has_value());
}

TEST(Paper, MambaRequiresStateSizeOfPaper) {
  const auto of = [](const char* model, int task, int width, const std::string& rest) {
    return figure("[task]\nnumber = " + std::to_string(task) + "\n[model]\nname = \"" + model +
                  "\"\nwidth = " + std::to_string(width) + "\n" + rest)
        .has_value();
  };
  EXPECT_TRUE(of("mamba2", 1, 1296, ""));
  EXPECT_TRUE(of("mamba2", 1, 1296, "d_state = 128\n"));
  EXPECT_FALSE(of("mamba2", 1, 1296, "d_state = 64\n"));
  EXPECT_TRUE(of("mamba2", 2, 1152, "d_state = 64\n"));
  EXPECT_FALSE(of("mamba2", 2, 1152, ""));
  EXPECT_FALSE(of("mamba2", 2, 1296, "d_state = 64\n"));
  EXPECT_TRUE(of("mamba2", 3, 1296, "d_state = 64\n"));
  EXPECT_TRUE(of("mamba", 2, 1152, ""));
  EXPECT_FALSE(of("mamba", 1, 1152, ""));
  EXPECT_FALSE(of("mamba", 1, 1296, "d_state = 128\n"));
}

TEST(Paper, ColumnAppearsOnlyWithPaperFigures) {
  EXPECT_NE(cell_table(rows_of(shipped("paper/main_table.toml")), TableFormat::csv).find("paper"), std::string::npos);
  for (const auto& format : table_format_names())
    EXPECT_EQ(cell_table(rows_of(shipped("quick.toml")), parse_table_format(format)).find("paper"), std::string::npos);
}

TEST(Paper, GridGapsHaveNoPaperFigures) {
  for (const auto& cell : rows_of(shipped("paper/task2.toml")).cells)
    EXPECT_EQ(cell.paper.has_value(), !cell.point.at.has_value());
}

}  // namespace
}  // namespace sb::test
