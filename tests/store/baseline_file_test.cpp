#include "store/baseline_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "../base/temporary_folder.h"
#include "base/file.h"
#include "store/result_parts.h"
#include "store/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;

RunData data_of(int task, double noise = -1) {
  RunConfig config;
  config.grammar.build = {9, 8, 12, -1, 4, 1};
  config.task.length = 40;
  config.task.task = paper_task(task);
  if (noise >= 0) config.task.task.noise = noise;
  return make_data(config);
}

// Baselines as a run in this folder gets them, and whether it had to count.
struct Shelf {
  test::TemporaryFolder folder;
  std::vector<std::string> warnings;
  int polled = 0;

  std::optional<BaselineFigures> of(const RunData& data, int64_t train = 50, int64_t valid = 10, int64_t test = 10) {
    polled = 0;
    return measured_baselines(data, {train, valid, test, 1, folder.path(), [this] { return ++polled, false; },
                                     [this](const std::string& line) { warnings.push_back(line); }});
  }
  std::string file() const { return fs::directory_iterator(folder.path())->path().string(); }
};

void expect_equal(const BaselineFigures& a, const BaselineFigures& b) {
  EXPECT_EQ(a.majority, b.majority);
  EXPECT_EQ(a.n_gram, b.n_gram);
  EXPECT_EQ(a.n, b.n);
  EXPECT_EQ(a.n_gram_stderr, b.n_gram_stderr);
  EXPECT_EQ(a.train_samples, b.train_samples);
  EXPECT_EQ(a.test_samples, b.test_samples);
}

TEST(BaselineFile, IsSharedByRunsOnSameSamples) {
  Shelf shelf;
  const auto first = shelf.of(data_of(1));
  ASSERT_TRUE(first && first->n);
  EXPECT_EQ(first->n_gram.size(), 8U);
  EXPECT_EQ(first->train_samples, 50);
  EXPECT_GT(shelf.polled, 0);
  EXPECT_EQ(shelf.folder.entries(), 1U);
  const std::string bytes = read_file(shelf.file(), 1 << 16);
  for (const int task : {1, 2, 4}) {
    const auto again = shelf.of(data_of(task));
    ASSERT_TRUE(again);
    EXPECT_EQ(shelf.polled, 0) << "nothing was counted for task " << task;
    expect_equal(*first, *again);
  }
  EXPECT_EQ(shelf.folder.entries(), 1U);
  EXPECT_EQ(read_file(shelf.file(), 1 << 16), bytes);
  EXPECT_TRUE(shelf.warnings.empty());
}

TEST(BaselineFile, IsSeparateForOtherSamples) {
  Shelf shelf;
  RunData on_test = data_of(1);
  on_test.select = Split::test;
  size_t files = 0;
  for (const auto& count :
       {std::function([&] { return shelf.of(data_of(1)); }), std::function([&] { return shelf.of(data_of(3)); }),
        std::function([&] { return shelf.of(data_of(1), 51); }),
        std::function([&] { return shelf.of(data_of(1), 50, 11); }),
        std::function([&] { return shelf.of(data_of(1), 50, 10, 11); }),
        std::function([&] { return shelf.of(on_test); })}) {
    ASSERT_TRUE(count());
    EXPECT_GT(shelf.polled, 0);
    EXPECT_EQ(shelf.folder.entries(), ++files);
  }
}

TEST(BaselineFile, IsRewrittenIfDamaged) {
  Shelf shelf;
  const auto first = shelf.of(data_of(1));
  ASSERT_TRUE(first);
  const std::string path = shelf.file(), whole = read_file(path, 1 << 16);
  std::string changed = whole, other = whole;
  changed[changed.find("0.")] = '1';
  other.replace(other.find("task.length"), 11, "task.breadth");
  other.replace(other.find("\"sha256\":\"") + 10, 64, std::string(64, '0'));
  seal(other);
  ASSERT_TRUE(is_sealed(other));
  for (const std::string& damaged :
       {std::string(), std::string("{}"), whole.substr(0, whole.size() / 2), changed, other}) {
    write_file_atomically(path, damaged);
    const auto again = shelf.of(data_of(1));
    ASSERT_TRUE(again);
    EXPECT_GT(shelf.polled, 0) << "counted again: " << damaged.substr(0, 40);
    expect_equal(*first, *again);
    EXPECT_EQ(read_file(path, 1 << 16), whole);
  }
  fs::remove(path);
  ASSERT_TRUE(shelf.of(data_of(1)));
  EXPECT_EQ(read_file(path, 1 << 16), whole);
}

TEST(BaselineFile, WarnsIfItCannotBeWritten) {
  Shelf shelf;
  ASSERT_TRUE(shelf.of(data_of(1)));
  const std::string path = shelf.file();
  fs::remove(path);
  fs::create_directories(path + "/in the way");
  const auto found = shelf.of(data_of(1));
  EXPECT_TRUE(found && found->n);
  ASSERT_EQ(shelf.warnings.size(), 1U);
  EXPECT_NE(shelf.warnings[0].find("counts its n-grams again"), std::string::npos) << shelf.warnings[0];
}

TEST(BaselineFile, IsIntactAfterConcurrentRuns) {
  Shelf shelf;
  const RunData data = data_of(3);
  std::vector<std::optional<BaselineFigures>> found(4);
  {
    std::vector<std::jthread> runs;
    for (auto& out : found)
      runs.emplace_back([&] { out = measured_baselines(data, {50, 10, 10, 2, shelf.folder.path(), {}, {}}); });
  }
  EXPECT_EQ(shelf.folder.entries(), 1U);
  EXPECT_TRUE(is_sealed(read_file(shelf.file(), 1 << 16)));
  const auto kept = shelf.of(data);
  EXPECT_EQ(shelf.polled, 0);
  for (const auto& one : found) {
    ASSERT_TRUE(one);
    expect_equal(*one, *kept);
  }
}

TEST(MeasuredBaselines, HaveNoNGramIfNoiseHidesSymbols) {
  Shelf shelf;
  const auto readable = shelf.of(data_of(2, 1)), hidden = shelf.of(data_of(2, 1.5));
  ASSERT_TRUE(readable && hidden);
  EXPECT_TRUE(readable->n && !readable->n_gram.empty());
  EXPECT_FALSE(hidden->n || hidden->n_gram_stderr || hidden->best_n_gram());
  EXPECT_TRUE(hidden->n_gram.empty());
  EXPECT_EQ(hidden->majority, readable->majority);
}

}  // namespace
}  // namespace sb
