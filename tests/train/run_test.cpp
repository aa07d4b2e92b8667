#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../base/faulty_file_system.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "small_run.h"

namespace sb {
namespace {

using test::FaultyFileSystem;
using test::lasting_bytes;
using test::small_config;
using test::TemporaryFolder;
using test::work;

TrainHooks stop_after(int polls) {
  auto left = std::make_shared<int>(polls);
  TrainHooks hooks;
  hooks.stop = [left] { return --*left < 0; };
  return hooks;
}

TEST(Run, EndsInTheSameBytesHoweverOftenItWasStopped) {
  for (const auto& model : test::paper_models()) {
    const ResolvedConfig config = small_config({"model.name=" + model, "eval.gaps=[2, 5]"});
    const TemporaryFolder clean, broken;
    ASSERT_EQ(work(config, clean.path()), RunStatus::done);
    int stops = 0;
    while (work(config, broken.path(), stop_after(3 + stops)) == RunStatus::stopped) ASSERT_LT(++stops, 100);
    EXPECT_GT(stops, 2) << model;
    EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(broken.path(), config)) << model;
  }
}

TEST(Run, HasTheSameBytesForAnyThreadCount) {
  for (const auto& model : test::paper_models()) {
    const ResolvedConfig config = small_config({"model.name=" + model, "task.number=2"});
    std::vector<std::vector<std::string>> results;
    for (const int threads : {1, 2}) {
      const TemporaryFolder root;
      at::set_num_threads(threads);
      ASSERT_EQ(work(config, root.path()), RunStatus::done);
      results.push_back(lasting_bytes(root.path(), config));
    }
    at::set_num_threads(2);
    EXPECT_EQ(results[0], results[1]) << model;
  }
}

TEST(Run, ResultHoldsWhatTheContractPromises) {
  const ResolvedConfig config = small_config({"eval.gaps=[3]", "task.number=2"});
  const TemporaryFolder root;
  work(config, root.path());
  const Json result = load_result(root.path() + "/" + config.run_id);
  for (const char* key : {"run_id", "status", "model", "task", "seed", "params", "test", "valid", "ceiling", "updates",
                          "precision", "grid", "chance"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_EQ(result.at("status"), "done");
  EXPECT_EQ(result.at("updates"), 12);
  EXPECT_EQ(result.at("grid").at(0).at("gap"), 3);
  EXPECT_TRUE(result.at("test").contains("accuracy"));
  const Safetensors weights = load_sealed_safetensors(root.path() + "/" + config.run_id + "/final.safetensors");
  EXPECT_NE(weights.find("encoder.weight"), nullptr);
  EXPECT_EQ(weights.find("adam.first.encoder.weight"), nullptr);
  EXPECT_TRUE(verify_run(root.path() + "/" + config.run_id).empty());
}

TEST(Run, NoTrainedModelBeatsTheCeiling) {
  const ResolvedConfig config =
      small_config({"train.updates=150", "train.lr=1e-2", "model.width=32", "eval.test_samples=100",
                    "eval.ceiling_samples=100", "eval.every=0", "train.batch=16"});
  const TemporaryFolder root;
  work(config, root.path());
  const Json result = load_result(root.path() + "/" + config.run_id);
  const double accuracy = result.at("test").at("accuracy"), ceiling = result.at("ceiling");
  const double sigma =
      std::hypot(result.at("test").at("stderr").get<double>(), result.at("ceiling_stderr").get<double>());
  EXPECT_LE(accuracy, ceiling + 4 * sigma);
  EXPECT_GT(accuracy, 5 * result.at("chance").get<double>());
}

TEST(Run, DivergenceIsAnOutcomeThatNamesUpdateLayerAndTensor) {
  ResolvedConfig config = small_config({"train.clip=0", "train.warmup=0"});
  config.values.train.lr = 1e30;
  const TemporaryFolder root;
  EXPECT_EQ(work(config, root.path()), RunStatus::diverged);
  const Json result = load_result(root.path() + "/" + config.run_id);
  EXPECT_EQ(result.at("status"), "diverged");
  EXPECT_GE(result.at("diverged").at("update").get<int>(), 1);
  EXPECT_FALSE(result.at("diverged").at("tensor").get<std::string>().empty());
}

TEST(Run, TornOrFlippedCheckpointIsNamedAndThePreviousOneUsed) {
  const ResolvedConfig config = small_config();
  const TemporaryFolder clean, broken;
  work(config, clean.path());
  work(config, broken.path(), stop_after(11));
  const auto stored = list_checkpoints(broken.path() + "/" + config.run_id);
  ASSERT_EQ(stored.size(), 2U);
  std::fstream file(stored[0].path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-9, std::ios::end);
  file.put('\x5a');
  file.close();
  std::vector<std::string> warnings;
  TrainHooks hooks;
  hooks.warning = [&](const std::string& line) { warnings.push_back(line); };
  EXPECT_EQ(work(config, broken.path(), hooks), RunStatus::done);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(stored[0].path), std::string::npos);
  EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(broken.path(), config));
}

TEST(Run, EveryFailingWriteLeavesAStateThatLoadsAndNamesTheFile) {
  const ResolvedConfig config =
      small_config({"train.updates=5", "eval.every=2", "model.layers=1", "model.width=8", "model.heads=1"});
  const TemporaryFolder clean;
  work(config, clean.path());
  using Fault = FaultyFileSystem::Fault;
  for (const auto& [number, fault] :
       {std::pair{ENOSPC, Fault::error}, {EIO, Fault::error}, {ENOSPC, Fault::short_write}}) {
    for (int n = 0;; ++n) {
      const TemporaryFolder root;
      FaultyFileSystem files(n, number, fault);
      bool failed = false;
      try {
        work(config, root.path(), {}, files);
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.code(), Exit::cannot_write) << error.what();
        EXPECT_NE(std::string(error.what()).find(root.path()), std::string::npos) << error.what();
      }
      if (!files.failed()) break;
      if (failed) {
        EXPECT_EQ(work(config, root.path()), RunStatus::done);
      }
      EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(root.path(), config)) << "operation " << n;
    }
  }
}

TEST(Run, SecondProcessOnARunIsToldWhoHoldsIt) {
  const ResolvedConfig config = small_config();
  const TemporaryFolder root;
  const RunStore first(root.path(), config);
  try {
    const RunStore second(root.path(), config);
    FAIL() << "two stores on one run";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::stopped);
    EXPECT_NE(std::string(error.what()).find(std::to_string(getpid())), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sb
