#include "page/source.h"

#include <gtest/gtest.h>

#include "made_up.h"
#include "store/pack.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

TEST(Curves, LossesAreMeansOfBlocksSizedByTotalUpdates) {
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

TEST(Curves, ThinnedCurvesKeepLastEvaluation) {
  std::vector<MetricRow> rows;
  for (int64_t u = 1; u <= 1000; ++u) rows.push_back({u, "valid", {{"accuracy", static_cast<double>(u) / 1000}}});
  const Curves curves = thin_curves(rows, 1000);
  EXPECT_LE(curves.valid.size(), most_valid_points);
  EXPECT_EQ(curves.valid.back().update, 1000);
}

TEST(Curves, OmitNonFiniteValues) {
  const Curves curves = thin_curves({{0, "train", {{"loss", std::numeric_limits<double>::infinity()}}}}, 1);
  EXPECT_TRUE(curves.loss.empty());
}

TEST(Source, ReadsOnlyChangedRunsAgain) {
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

TEST(Source, ReadsArchiveLikeItsFolder) {
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
  EXPECT_FALSE(folder.samples.empty());
  EXPECT_TRUE(archive.samples.empty()) << "archives have none";
  EXPECT_EQ(archive.runs[0].digest, folder.runs[0].digest);
  EXPECT_TRUE(find_figure(archive, "loss"));
}

TEST(Source, ListsDamagedArchiveWithReasonAndKeepsOthers) {
  TemporaryFolder root;
  finish_small(root.file("in/runs"), "gla", 1);
  write_archive(root.file("in/runs.tar"), pack_runs(root.file("in/runs"), root.file("in/runs.tar")).files);
  std::string bytes = read_file(root.file("in/runs.tar"), 1 << 24);
  write_file_atomically(root.file("in/bad.tar"), bytes.substr(0, bytes.size() / 2));
  const PageData data = page_of(root.file("in"));
  EXPECT_EQ(data.counts.damaged, 1U);
  EXPECT_EQ(data.counts.copies, 1U);
  EXPECT_EQ(data.counts.averaged, 1U);
  ASSERT_EQ(data.runs.size(), 3U);
  for (const auto& run : data.runs) {
    if (run.state == "copy") {
      EXPECT_NE(run.standing_text.find("a second copy of the run in "), std::string::npos);
    }
    if (run.state != "damaged") continue;
    EXPECT_EQ(run.folder, root.file("in/bad.tar"));
    ASSERT_EQ(run.problems.size(), 1U);
    EXPECT_NE(run.problems[0].find("bad.tar"), std::string::npos);
    EXPECT_EQ(run.standing_text, "left out: in a damaged archive");
  }
  EXPECT_TRUE(std::any_of(data.warnings.begin(), data.warnings.end(),
                          [](const auto& line) { return line.find("bad.tar") != std::string::npos; }));
  PageSource both({root.file("in/bad.tar"), root.file("in/runs")}, "watch DIR");
  both.expect_some(both.read(), "watch DIR");
  PageSource bad({root.file("in/bad.tar")}, "watch DIR");
  EXPECT_TRUE(
      error_line([&] { bad.expect_some(bad.read(), "watch DIR"); }).starts_with("[watch DIR] expected an archive"));
}

TEST(Source, IgnoresUnfinishedCopyOfFinishedRun) {
  TemporaryFolder root;
  finish_small(root.file("whole"), "gla", 1);
  const ResolvedConfig config = small_config("gla", 1);
  { RunStore begun(root.file("half"), config); }
  const PageData data = page_of(root.path());
  EXPECT_EQ(data.counts.unfinished, 0U);
  EXPECT_EQ(data.counts.copies, 1U);
  for (const auto& cell : data.cells)
    for (const auto& mark : cell.marks) EXPECT_NE(mark.kind, "missing") << mark.text;
  for (const auto& note : data.notes) EXPECT_EQ(note.find("not finished"), std::string::npos) << note;
  EXPECT_TRUE(std::any_of(data.runs.begin(), data.runs.end(), [&](const PageRun& run) {
    return run.standing_text.find("the run is intact in " + root.file("whole")) != std::string::npos;
  }));
}

TEST(Source, ShowsLossOfRunningRunWithoutEvaluations) {
  TemporaryFolder root;
  const ResolvedConfig config = small_config("gla", 1);
  std::string folder;
  {
    RunStore store(root.path(), config);
    folder = store.folder();
  }
  std::string metrics;
  for (int u = 0; u < 40; ++u)
    metrics += "{\"update\":" + std::to_string(u) + ",\"phase\":\"train\",\"loss\":" + std::to_string(5 - u) + "}\n";
  write_file_atomically(folder + "/metrics.jsonl", metrics);
  PageSource source({root.path()}, "watch DIR");
  const PageData data = make_page(source.read(), {{"runs"}, "", "", true});
  ASSERT_EQ(data.board.size(), 1U);
  const Figure* loss = find_figure(data, "running_loss");
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->section, "board");
  EXPECT_EQ(loss->rows.size(), 20U) << "blocks of two updates";
  EXPECT_EQ(loss->rows[0][0].text(), data.board[0].name);
  EXPECT_EQ(loss->rows[0][3].text(), "4.5");
  EXPECT_FALSE(find_figure(data, "running_learning"));
  EXPECT_FALSE(find_figure(make_page(source.read(), {{"runs"}, "", "", false}), "running_loss"));
}

TEST(Source, RejectsMissingFolder) {
  EXPECT_EQ(error_line([] { PageSource({"/nowhere"}, "report DIR"); }),
            "[report DIR] expected a folder of runs or an archive, got '/nowhere'");
}

}  // namespace
}  // namespace sb::test
