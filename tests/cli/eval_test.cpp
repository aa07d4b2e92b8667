// A run of a GPU, tested on a machine without one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "cli/program_run.h"
#include "store/run_check.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

TEST(Eval, ReportsAndRecordsOtherDeviceAndPrecision) {
  const TemporaryFolder root;
  std::ofstream(root.file("run.toml"))
      << "[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n[task]\nlength = 10\n[model]\nname = 'gla'\nwidth = 16\n"
         "layers = 1\n[train]\nbatch = 2\nupdates = 2\nwarmup = 1\n[eval]\nevery = 0\nvalid_samples = 2\n"
         "test_samples = 2\nceiling_samples = 2\nbatch = 2\n";
  ASSERT_EQ(run({"train", root.file("run.toml"), "--out", root.file("runs")}).code, 0);
  const fs::directory_iterator entries(root.file("runs"));
  const auto folder =
      std::find_if(begin(entries), end(entries), [](const auto& entry) { return entry.is_directory(); });
  ASSERT_TRUE(folder != end(entries));
  const std::string own = folder->path().string();
  StoredConfig config = read_stored_config(own);
  if (config.toml.find("device = \"cuda\"") != std::string::npos) GTEST_SKIP() << "there is a GPU";

  const std::string weights = own + "/final.safetensors", json = root.file("out.json");
  Outcome found = run({"eval", own, "--weights", weights, "--json", json});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_EQ(found.err.find("note: "), std::string::npos) << found.err;
  auto record = nlohmann::json::parse(whole_file(json));
  EXPECT_FALSE(record.contains("device"));
  EXPECT_FALSE(record.contains("precision"));
  EXPECT_EQ(record.at("made").at("device"), "cpu");
  EXPECT_EQ(record.at("made").at("precision"), "fp32");

  replace(config.toml, "device = \"cpu\"", "device = \"cuda\"");
  replace(config.toml, "precision = \"fp32\"", "precision = \"amp\"");
  replace(config.canonical, "\"device\":\"cpu\"", "\"device\":\"cuda\"");
  replace(config.canonical, "\"precision\":\"fp32\"", "\"precision\":\"amp\"");
  config.run_id = sha256_hex(config.canonical).substr(0, 16);
  const std::string of_gpu = root.file(config.run_id);
  fs::create_directory(of_gpu);
  std::ofstream(of_gpu + "/config.toml") << config.toml;
  std::ofstream(of_gpu + "/config.json") << stored_config_text(config);
  found = run({"eval", of_gpu, "--weights", weights, "--save", "--json", json});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_NE(found.err.find("note: the run was made with device cuda in amp, this is computed with device cpu in fp32"),
            std::string::npos)
      << found.err;
  record = nlohmann::json::parse(whole_file(json));
  EXPECT_EQ(record.at("device"), "cpu");
  EXPECT_EQ(record.at("precision"), "fp32");
  EXPECT_EQ(record.at("made").at("device"), "cpu");
  EXPECT_EQ(record.at("made").at("precision"), "fp32");
}

}  // namespace
}  // namespace sb::test
