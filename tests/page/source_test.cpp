#include "page/source.h"

#include <gtest/gtest.h>

#include "made_up.h"
#include "runs/pack.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

TEST(Curves, LossesAreMeansOfBlocksThatTheWholeRunDecides) {
  std::vector<MetricRow> rows;
  for (int64_t u = 0; u < 90; ++u) rows.push_back({u, "train", {{"loss", static_cast<double>(u)}}});
  rows.push_back({50, "valid", {{"accuracy", .25}, {"loss", 1}}});
  const Curves half = thin_curves(rows, 180);  // blocks of three
  ASSERT_EQ(half.loss.size(), 30U);
  EXPECT_EQ(half.loss[0].update, 3);
  EXPECT_EQ(half.loss[0].value, 1);
  EXPECT_EQ(half.loss[29].value, 88);
  EXPECT_EQ(half.last, 90);
  ASSERT_EQ(half.valid.size(), 1U);
  EXPECT_EQ(half.valid[0].value, .25);
  EXPECT_EQ(thin_curves(rows, 90).loss.size(), 45U);
}

TEST(Curves, LongOnesKeepTheLastEvaluation) {
  std::vector<MetricRow> rows;
  for (int64_t u = 1; u <= 1000; ++u) rows.push_back({u, "valid", {{"accuracy", static_cast<double>(u) / 1000}}});
  const Curves curves = thin_curves(rows, 1000);
  EXPECT_LE(curves.valid.size(), most_valid_points);
  EXPECT_EQ(curves.valid.back().update, 1000);
}

TEST(Curves, FiguresThatAreNotFiniteAreLeftOut) {
  const Curves curves = thin_curves({{0, "train", {{"loss", std::numeric_limits<double>::infinity()}}}}, 1);
  EXPECT_TRUE(curves.loss.empty());
}

TEST(Source, RunsThatDidNotChangeAreNotReadAgain) {
  TemporaryFolder root;
  finish_small(root.file(""), "gla", 1);
  const std::string second = finish_small(root.file(""), "gla", 2);
  PageSource source({root.file("")}, "report DIR");
  const auto before = source.read();
  EXPECT_EQ(before.rows.runs.size(), 2U);
  finish_small(root.file(""), "gla", 3);
  write_file_atomically(second + "/result.json", "{}");
  const auto after = source.read();
  EXPECT_EQ(after.rows.runs.size(), 2U);
  ASSERT_EQ(after.runs.size(), 3U);
  size_t same = 0;
  for (const auto& run : after.runs)
    for (const auto& old : before.runs) same += run == old;
  EXPECT_EQ(same, 1U) << "the first run alone is as it was";
}

TEST(Source, AnArchiveIsReadLikeItsFolder) {
  TemporaryFolder root;
  for (const int seed : {1, 2}) finish_small(root.file("runs"), "gla", seed);
  write_archive(root.file("runs.tar"), pack_runs(root.file("runs"), root.file("runs.tar")).files);
  const PageData folder = page_of(root.file("runs"), root.path()),
                 archive = page_of(root.file("runs.tar"), root.path());
  ASSERT_EQ(archive.cells.size(), folder.cells.size());
  for (size_t i = 0; i < folder.cells.size(); ++i) EXPECT_EQ(archive.cells[i].mean, folder.cells[i].mean);
  EXPECT_EQ(archive.runs[0].state, "packed");
  EXPECT_FALSE(archive.runs[0].href) << "there is no folder to lead to";
  EXPECT_TRUE(folder.runs[0].href);
  EXPECT_EQ(archive.samples.size(), folder.samples.size());
  EXPECT_TRUE(find_figure(archive, "loss"));
}

TEST(Source, WhatIsNoFolderIsRefused) {
  EXPECT_EQ(error_line([] { PageSource({"/nowhere"}, "report DIR"); }),
            "[report DIR] expected a folder of runs or an archive, got '/nowhere'");
}

}  // namespace
}  // namespace sb::test
