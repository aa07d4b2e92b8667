#include "report/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/paper.h"

namespace sb {
namespace {

RunResult result(const std::string& model, uint64_t seed, double lr, double valid, double test) {
  RunResult r;
  r.status = "done";
  r.model = model;
  r.task = "1";
  r.precision = "fp32";
  r.seed = seed;
  r.width = 64;
  r.params = 1'234'567;
  r.lr = lr;
  r.valid = valid;
  r.test = test;
  r.ceiling = 0.99;
  r.chance = 0.01;
  return r;
}

TEST(Summary, TakesMeanAndSpreadOverSeeds) {
  const Summary s = summarise({result("gla", 1, 1e-3, .5, .4), result("gla", 2, 1e-3, .5, .6)});
  ASSERT_EQ(s.cells.size(), 1U);
  EXPECT_DOUBLE_EQ(s.cells[0].mean, .5);
  EXPECT_NEAR(s.cells[0].sd, std::sqrt(.02), 1e-12);
  EXPECT_EQ(s.cells[0].seeds, 2);
  EXPECT_DOUBLE_EQ(s.cells[0].ceiling, .99);
  EXPECT_DOUBLE_EQ(s.cells[0].paper, .75);
}

TEST(Summary, ChoosesTheLearningRateOnValidNotOnTest) {
  const Summary s = summarise({result("gla", 1, 1e-3, .5, .4), result("gla", 1, 2e-3, .4, .9)});
  EXPECT_DOUBLE_EQ(s.cells[0].mean, .4);
}

TEST(Summary, ChoosesOnTestWhereTheRunWasToldTo) {
  RunResult a = result("gla", 1, 1e-3, .5, .4), b = result("gla", 1, 2e-3, .4, .9);
  a.select_on_test = b.select_on_test = true;
  EXPECT_DOUBLE_EQ(summarise({a, b}).cells[0].mean, .9);
}

TEST(Summary, DivergedRunsCountInNoMeanAndAreNamed) {
  RunResult bad = result("gla", 2, 1e-3, 0, 0);
  bad.status = "diverged";
  const Summary s = summarise({result("gla", 1, 1e-3, .5, .4), bad});
  EXPECT_DOUBLE_EQ(s.cells[0].mean, .4);
  EXPECT_EQ(s.cells[0].diverged, 1);
  ASSERT_EQ(s.notes.size(), 1U);
  EXPECT_NE(s.notes[0].find("diverged"), std::string::npos);
}

TEST(Summary, SaysWhereATableMixesPrecisions) {
  RunResult other = result("mamba", 1, 1e-3, .5, .4);
  other.precision = "fp64";
  const Summary s = summarise({result("gla", 1, 1e-3, .5, .4), other});
  ASSERT_EQ(s.notes.size(), 1U);
  EXPECT_EQ(s.notes[0], "mixed precisions: fp32 fp64");
}

TEST(Summary, NamesAVariantOnlyWhereAModelHasSeveral) {
  RunResult a = result("mamba2", 1, 1e-3, .5, .4), b = a;
  a.variant = "d_state=32";
  EXPECT_EQ(summarise({a}).cells[0].variant, "");
  b.variant = "complementary=false";
  EXPECT_EQ(summarise({a, b}).cells.size(), 2U);
}

TEST(Summary, GridPointsBecomeColumnsOfTaskFour) {
  RunResult r = result("gla", 1, 1e-3, .5, .4);
  r.grid = {{10, .3}, {100, .1}};
  r.grid_ceiling = {{10, .99}, {100, .98}};
  const Summary s = summarise({r});
  ASSERT_EQ(s.cells.size(), 3U);
  EXPECT_EQ(s.cells[1].task, "4 n=10");
  EXPECT_DOUBLE_EQ(s.cells[2].ceiling, .98);
}

TEST(Render, EveryFormatHoldsEveryCell) {
  const Summary s = summarise({result("gla", 1, 1e-3, .5, .4321), result("mamba", 1, 1e-3, .5, .5678)});
  for (const auto format : {TableFormat::text, TableFormat::markdown, TableFormat::csv, TableFormat::json}) {
    const std::string text = render(s, format);
    EXPECT_NE(text.find("gla"), std::string::npos);
    EXPECT_NE(text.find("0.432"), std::string::npos);
    EXPECT_NE(text.find("0.56"), std::string::npos);
  }
  EXPECT_EQ(nlohmann::json::parse(render(s, TableFormat::json)).at("cells").size(), 2U);
}

TEST(Render, UnknownFormatIsRefusedWithTheNearestName) {
  try {
    parse_table_format("txt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    EXPECT_NE(std::string(error.what()).find("text"), std::string::npos);
  }
}

TEST(Paper, HasFiguresForItsOwnTasksOnly) {
  EXPECT_DOUBLE_EQ(paper_figure("mamba2", "1").accuracy, .92);
  EXPECT_EQ(paper_figure("mamba2", "4 n=10").accuracy, 0);
  EXPECT_EQ(paper_figure("gru", "1").accuracy, 0);
}

}  // namespace
}  // namespace sb
