#include "suites/frozen_suite.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "../config/model_rules.h"
#include "base/file.h"
#include "store/seal.h"

namespace sb::test {
namespace {

// With an automaton of the user's own, a size that was matched, and axes beyond the usual ones.
Suite suite_in(const TemporaryFolder& folder) {
  write_file_atomically(folder.file("a.json"),
                        R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})");
  Suite suite = parse_suite(
      "[suite]\nname = \"it's\"\nselect = ['train.weight_decay']\naverage = ['train.clip']\n"
      "[grid]\nmodel.name = ['gla', 'mamba2']\nrun.seed = [1, 2]\n"
      "grammar.automaton = ['" +
          folder.file("a.json") + "']\n",
      folder.file("suite.toml"), {}, rules());
  suite.matched = {{"gla", 64, MatchedSize::params, 80000, 79000}};
  return suite;
}

std::vector<std::string> ids_of(const Suite& suite) {
  std::vector<std::string> out;
  for (const auto& run : suite.runs) out.push_back(run.run_id);
  return out;
}

TEST(FrozenSuite, RoundTripsWithoutItsSourceFiles) {
  TemporaryFolder folder;
  const Suite suite = suite_in(folder);
  std::filesystem::create_directory(folder.file("kept"));
  const std::string path = freeze_suite(folder.file("kept"), suite);
  EXPECT_TRUE(is_frozen_suite(path));
  EXPECT_FALSE(is_frozen_suite("suite.toml"));
  std::filesystem::remove(folder.file("a.json"));
  const Suite again = read_frozen_suite(path, {}, rules());
  EXPECT_EQ(ids_of(again), ids_of(suite));
  EXPECT_EQ(again.name, suite.name);
  EXPECT_EQ(again.select, suite.select);
  EXPECT_EQ(again.average, suite.average);
  EXPECT_EQ(again.matched, suite.matched);
  for (size_t i = 0; i < suite.runs.size(); ++i) EXPECT_EQ(again.runs[i].canonical, suite.runs[i].canonical);
  EXPECT_EQ(ids_of(read_frozen_suite(path, {ids_of(suite)[2]}, rules())), std::vector{ids_of(suite)[2]});
  EXPECT_TRUE(has(error_line([&] { read_frozen_suite(path, {"0000000000000000"}, rules()); }), "got none"));
}

TEST(FrozenSuite, RejectsChangedFileByName) {
  TemporaryFolder folder;
  const Suite suite = suite_in(folder);
  const std::string path = freeze_suite(folder.path(), suite), text = read_file(path, 1 << 20);
  const auto fault = [&](const std::string& changed) {
    write_file_atomically(path, changed);
    const std::string line = error_line([&] { read_frozen_suite(path, {}, rules()); });
    EXPECT_TRUE(has(line, "frozen-suite.json"));
    return line;
  };
  std::string other = text;
  other.replace(other.find("gla"), 3, "gLa");
  EXPECT_TRUE(has(fault(other), "SHA-256 mismatch"));
  EXPECT_TRUE(has(fault(""), "SHA-256 mismatch"));
  // Sealed, and still not what it says.
  const auto sealed = [](std::string object) { return sealed_json(object); };
  EXPECT_TRUE(has(fault(sealed("{\n  \"schema\": 2\n}\n")), "another version"));
  EXPECT_TRUE(has(fault(sealed("{\n  \"schema\": 1\n}\n")), "expected a text as name"));
  const std::string start =
      "{\n  \"schema\": 1,\n  \"name\": \"x\",\n  \"select\": [],\n  \"average\": [],\n  \"matched\": [],\n";
  EXPECT_TRUE(has(fault(sealed(start + "  \"runs\": 1\n}\n")), "expected a list of runs"));
  EXPECT_TRUE(has(fault(sealed(start + "  \"runs\": [1]\n}\n")), "expected a text as run_id"));
  EXPECT_TRUE(has(
      fault(sealed(start +
                   "  \"runs\": [{\"run_id\": \"0123456789abcdef\", \"toml\": \"[train]\\nupdates = 5\\n\"}]\n}\n")),
      "expected run 0123456789abcdef, got "));
}

TEST(FrozenSuite, SelectsRunsById) {
  TemporaryFolder folder;
  Suite suite = suite_in(folder);
  const auto ids = ids_of(suite);
  keep_where(suite, {"run.id=" + ids[3] + "," + ids[0]}, "suite --where");
  EXPECT_EQ(ids_of(suite), (std::vector<std::string>{ids[0], ids[3]}));
  EXPECT_TRUE(
      has(error_line([&] { keep_where(suite, {"run.id=0"}, "suite --where"); }), "[suite --where] no run has run.id"));
}

}  // namespace
}  // namespace sb::test
