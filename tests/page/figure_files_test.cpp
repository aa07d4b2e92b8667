// Figures of a report replace those of the one before, and touch nothing else.
#include "page/figure_files.h"

#include <gtest/gtest.h>

#include <set>

#include "../base/faulty_file_system.h"
#include "made_up.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

Figure figure_named(const std::string& id, double value = 1) {
  Figure out;
  out.id = id;
  out.title = id;
  out.columns = {{"x", "x", "quantitative"}};
  out.rows = {{value}};
  out.spec = Json::object();
  return out;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename().string());
  return out;
}

bool says(const std::vector<std::string>& lines, const std::string& what) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(what) != std::string::npos; });
}

TEST(FigureFiles, RemovesFiguresOfEarlierReport) {
  TemporaryFolder folder;
  EXPECT_TRUE(write_figures(folder.path(), {figure_named("a"), figure_named("b")}).empty());
  const auto lines = write_figures(folder.path(), {figure_named("b", 2)});
  EXPECT_TRUE(says(lines, "removed 2 files of an earlier report"));
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"b.csv", "b.vl.json", figure_list_name}));
  EXPECT_EQ(read_file(folder.file("b.csv"), 100), "x\n2\n");
}

TEST(FigureFiles, KeepsForeignAndChangedFiles) {
  TemporaryFolder folder;
  write_figures(folder.path(), {figure_named("a"), figure_named("b"), figure_named("c")});
  write_file_atomically(folder.file("a.csv"), "my own numbers\n");
  write_file_atomically(folder.file("paper.csv"), "mine\n");
  write_file_atomically(folder.file("elsewhere"), figure_csv(figure_named("b")));
  fs::remove(folder.file("b.csv"));
  fs::create_symlink(folder.file("elsewhere"), folder.file("b.csv"));
  const auto lines = write_figures(folder.path(), {});
  EXPECT_TRUE(says(lines, "changed since an earlier report wrote it, so left: " + folder.file("a.csv")));
  EXPECT_EQ(names_in(folder.path()),
            (std::set<std::string>{"a.csv", "b.csv", "elsewhere", "paper.csv", figure_list_name}));
  EXPECT_TRUE(write_figures(folder.path(), {}).empty()) << "a file that was left is no longer ours";
}

TEST(FigureFiles, ReplacesLinksAndKeepsTheirTargets) {
  TemporaryFolder folder, elsewhere;
  write_file_atomically(elsewhere.file("mine"), "mine");
  for (const char* name : {"a.csv", "a.vl.json"}) fs::create_symlink(elsewhere.file("mine"), folder.file(name));
  write_file_atomically(elsewhere.file("list"), figure_list({}));
  fs::create_symlink(elsewhere.file("list"), folder.file(figure_list_name));
  write_figures(folder.path(), {figure_named("a")});
  EXPECT_EQ(read_file(elsewhere.file("mine"), 100), "mine");
  EXPECT_EQ(read_file(elsewhere.file("list"), 1000), figure_list({}));
  for (const auto& name : names_in(folder.path())) EXPECT_FALSE(fs::is_symlink(folder.file(name))) << name;
}

TEST(FigureFiles, NextReportRemovesFiguresOfFullDisk) {
  for (int call = 0;; ++call) {
    TemporaryFolder folder;
    write_figures(folder.path(), {figure_named("old")});
    FaultyFileSystem full(call);
    bool failed = false;
    try {
      write_figures(folder.path(), {figure_named("a"), figure_named("b")}, full);
    } catch (const Error&) {
      failed = true;
    }
    write_figures(folder.path(), {});
    EXPECT_EQ(names_in(folder.path()), std::set<std::string>{figure_list_name}) << "call " << call;
    if (!failed && !full.failed()) break;
  }
}

TEST(FigureFiles, IgnoresAndKeepsForeignList) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("a.csv"), "x\n1\n");
  for (const std::string& foreign :
       {std::string("{}"), std::string("notes of mine"), std::string(figure_list({{"a.csv", "00"}})).replace(4, 1, "#"),
        figure_list({{"../a.csv", "00"}})}) {
    write_file_atomically(folder.file(figure_list_name), foreign);
    EXPECT_TRUE(says(write_figures(folder.path(), {}), "no figure of an earlier report is removed")) << foreign;
    EXPECT_EQ(read_file(folder.file(figure_list_name), 1000), foreign);
    EXPECT_TRUE(fs::exists(folder.file("a.csv")));
  }
}

}  // namespace
}  // namespace sb::test
