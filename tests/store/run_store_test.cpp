#include "store/run_store.h"
#include "store/run_check.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "../config/model_rules.h"
#include "base/file.h"
#include "toy_run.h"

namespace sb::test {
namespace {

using Accident = ScriptedFileSystem::Accident;

ResolvedConfig config() {
  return toy_config();
}

std::string folder_of(const TemporaryFolder& root) {
  return root.file(config().run_id);
}

std::string bytes_of(const TemporaryFolder& root) {
  std::string all;
  for (const char* name : {"/config.toml", "/config.json", "/metrics.jsonl", "/final.safetensors"})
    all += read_file(folder_of(root) + name, 1 << 20);
  return all + comparable_text(load_result(folder_of(root)));
}

std::string clean_bytes() {
  static const std::string bytes = [] {
    TemporaryFolder root;
    ToyRun().run(root.path());
    return bytes_of(root);
  }();
  return bytes;
}

TEST(RunStore, FinishedRunRoundTripsAndVerifies) {
  TemporaryFolder root;
  ToyRun().run(root.path());
  const auto result = load_result(folder_of(root));
  EXPECT_EQ(result.run_id, config().run_id);
  EXPECT_EQ(result.status, "done");
  EXPECT_EQ(verify_run(folder_of(root)), std::vector<std::string>{});
  EXPECT_EQ(find_runs(root.path()).runs, std::vector<std::string>{folder_of(root)});
  EXPECT_EQ(parse_metrics(read_file(folder_of(root) + "/metrics.jsonl", 1 << 20), "m").size(), 8U);
  EXPECT_EQ(resolve_config(folder_of(root) + "/config.toml", {}, rules()).run_id, config().run_id);
  const auto before = bytes_of(root);
  ToyRun().run(root.path());
  EXPECT_EQ(bytes_of(root), before);
}

TEST(RunStore, VerifyNamesEveryChangedFile) {
  TemporaryFolder root;
  ToyRun().run(root.path());
  for (const char* name : {"config.toml", "config.json", "metrics.jsonl", "final.safetensors", "result.json",
                           "checkpoint-00000008.safetensors"}) {
    const std::string path = folder_of(root) + "/" + name;
    const std::string whole = read_file(path, 1 << 20);
    std::string changed = whole;
    changed[changed.size() / 2] ^= 1;
    write_file_atomically(path, changed);
    const auto problems = verify_run(folder_of(root));
    ASSERT_FALSE(problems.empty()) << name;
    EXPECT_TRUE(has(problems.front(), name));
    write_file_atomically(path, whole);
  }
  EXPECT_TRUE(verify_run(folder_of(root)).empty());
}

TEST(RunStore, KilledAtAnyWriteResumesToSameBytes) {
  int killed = 0;
  for (int n = 0;; ++n) {
    TemporaryFolder root;
    const int status = in_child([&] {
      ScriptedFileSystem files(n, Accident::killed);
      ToyRun().run(root.path(), std::move(files));
    });
    if (status == 0) break;
    ASSERT_EQ(status, 128 + SIGKILL);
    ++killed;
    ToyRun().run(root.path());
    ASSERT_EQ(bytes_of(root), clean_bytes()) << "killed at call " << n;
    ASSERT_TRUE(verify_run(folder_of(root)).empty());
    for (const auto& entry : std::filesystem::directory_iterator(folder_of(root)))
      ASSERT_TRUE(lacks(entry.path().string(), ".partial-"));
  }
  EXPECT_GT(killed, 50);
}

TEST(RunStore, KilledRepeatedlyResumesToSameBytes) {
  TemporaryFolder root;
  int runs = 0;
  const auto attempt = [&] {
    return in_child([&] {
      ScriptedFileSystem files(40, Accident::killed);
      ToyRun().run(root.path(), std::move(files));
    });
  };
  while (attempt() != 0) ASSERT_LT(++runs, 100);
  EXPECT_GT(runs, 1);
  EXPECT_EQ(bytes_of(root), clean_bytes());
}

class FailingWrites : public ::testing::TestWithParam<Accident> {};

TEST_P(FailingWrites, LeaveLoadableStateAndNameFile) {
  int failures = 0;
  for (const bool unnamed : {true, false}) {
    for (int n = 0;; ++n) {
      TemporaryFolder root;
      ScriptedFileSystem files(n, GetParam());
      files.unnamed_files = unnamed;
      std::string line;
      try {
        ToyRun().run(root.path(), std::move(files));
      } catch (const Error& error) {
        line = error.what();
        EXPECT_EQ(error.code(), Exit::cannot_write);
        EXPECT_TRUE(has(line, folder_of(root)));
        ++failures;
      }
      if (!files.happened()) break;
      for (const auto& stored : list_checkpoints(folder_of(root)))
        ASSERT_NO_THROW(load_sealed_safetensors(stored.path)) << n << " " << line;
      std::vector<std::string> warnings;
      {
        RunStore store(root.path(), config());
        const auto checkpoint = store.resume(warnings);
        ASSERT_EQ(checkpoint.has_value(), !list_checkpoints(folder_of(root)).empty());
        ASSERT_TRUE(warnings.empty()) << warnings.front();
      }
      ToyRun().run(root.path());
      ASSERT_EQ(bytes_of(root), clean_bytes()) << "call " << n << " failed: " << line;
    }
  }
  EXPECT_EQ(failures > 50, GetParam() != Accident::short_write);
}

INSTANTIATE_TEST_SUITE_P(Accidents, FailingWrites,
                         ::testing::Values(Accident::no_space, Accident::io_error, Accident::short_write));

// Rows get their time when they are added; rows repeated after resuming get a new time.
TEST(RunStore, EveryRowHasOneTimeAfterResuming) {
  TemporaryFolder root;
  const double weight = 1;
  const std::vector<NamedBytes> tensors = {{"weight", "F64", {1}, &weight}};
  const auto make = [](RunStore& store, int64_t update, const char* phase) {
    store.add({update, phase, {{"loss", 1}}});
    store.add_timing({update, phase, {{"wall", 1e9}}});
  };
  {
    RunStore store(root.path(), config());
    for (int64_t update = 0; update < 3; ++update) make(store, update, "train");
    store.save(3, tensors);
    make(store, 3, "valid");  // after the checkpoint
    make(store, 3, "train");
    store.write_rows();
  }
  RunStore store(root.path(), config());
  std::vector<std::string> warnings;
  ASSERT_TRUE(store.resume(warnings));
  make(store, 3, "valid");
  make(store, 3, "train");
  store.write_rows();
  const auto rows = [&](const std::string& name) {
    std::vector<std::pair<int64_t, std::string>> out;
    for (const auto& row : parse_metrics(read_file(store.path(name), 1 << 20), name))
      out.emplace_back(row.update, row.phase);
    return out;
  };
  EXPECT_EQ(rows("timing.jsonl"), rows("metrics.jsonl"));
  EXPECT_EQ(rows("timing.jsonl").size(), 5U);
  EXPECT_EQ(warnings, std::vector<std::string>{});
}

TEST(RunStore, NextAttemptRemovesFailureReason) {
  TemporaryFolder root;
  const std::string failed = folder_of(root) + "/failed.txt";
  std::filesystem::create_directories(folder_of(root));
  write_file_atomically(failed, "exit code 74\n");
  {
    RunStore store(root.path(), config());
    EXPECT_FALSE(std::filesystem::exists(failed)) << "an attempt is at work";
    write_file_atomically(failed, "exit code 74\n");  // by who started an attempt that ended meanwhile
    EXPECT_THROW(RunStore(root.path(), config()), Error);
    EXPECT_TRUE(std::filesystem::exists(failed)) << "one that does not get the run changes nothing";
  }
  ToyRun().run(root.path());
  EXPECT_FALSE(std::filesystem::exists(failed));
  EXPECT_EQ(verify_run(folder_of(root)), std::vector<std::string>{});
}

TEST(RunStore, ResultRemovesFailureReasonOfAnotherAttempt) {
  TemporaryFolder root;
  RunStore store(root.path(), config());
  write_file_atomically(store.path("failed.txt"), "exit code 74\n");
  const double weight = 1;
  store.finish(plain_result(config()), {{"weight", "F64", {1}, &weight}});
  EXPECT_FALSE(std::filesystem::exists(store.path("failed.txt")));
}

TEST(RunStore, SkipsDamagedNewestCheckpointAndResumesToSameBytes) {
  TemporaryFolder root;
  const int status = in_child([&] {
    ScriptedFileSystem files(110, Accident::killed);
    ToyRun().run(root.path(), std::move(files));
  });
  ASSERT_EQ(status, 128 + SIGKILL);
  const auto stored = list_checkpoints(folder_of(root));
  ASSERT_EQ(stored.size(), 2U);
  std::string content = read_file(stored[0].path, 1 << 20);
  content[content.size() - 3] ^= 4;
  write_file_atomically(stored[0].path, content);
  {
    RunStore store(root.path(), config());
    std::vector<std::string> warnings;
    const auto checkpoint = store.resume(warnings);
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->update, stored[1].update);
    EXPECT_EQ(store.metrics().size(), static_cast<size_t>(checkpoint->update));
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(has(warnings[0], stored[0].path));
  }
  ToyRun().run(root.path());
  EXPECT_EQ(bytes_of(root), clean_bytes());
}

TEST(RunStore, RunWithTornResultIsNotFinished) {
  TemporaryFolder root;
  ToyRun().run(root.path());
  const std::string path = folder_of(root) + "/result.json";
  const std::string whole = read_file(path, 1 << 20);
  write_file_atomically(path, whole.substr(0, whole.size() / 2));
  EXPECT_THROW(load_result(folder_of(root)), Error);
  ToyRun().run(root.path());
  EXPECT_EQ(bytes_of(root), clean_bytes());
}

// A result whose files were changed is invalid: the run reports it and is repeated with the same bytes.
TEST(RunStore, RepeatsDamagedFinishedRun) {
  for (const char* name : {"final.safetensors", "metrics.jsonl", "result.json"}) {
    TemporaryFolder root;
    ToyRun().run(root.path());
    const std::string path = folder_of(root) + "/" + name;
    std::string content = read_file(path, 1 << 20);
    content[content.size() / 2] ^= 1;
    write_file_atomically(path, content);
    EXPECT_FALSE(has_result(folder_of(root))) << name;
    {
      RunStore store(root.path(), config());
      std::vector<std::string> warnings;
      EXPECT_TRUE(store.resume(warnings));
      ASSERT_EQ(warnings.size(), 1U);
      EXPECT_TRUE(has(warnings[0], name));
    }
    EXPECT_FALSE(std::filesystem::exists(folder_of(root) + "/result.json"));
    ToyRun().run(root.path());
    EXPECT_EQ(bytes_of(root), clean_bytes()) << name;
    EXPECT_TRUE(has_result(folder_of(root)));
  }
}

TEST(RunStore, ResultStaysValidWithoutWeightsAndCheckpoint) {
  TemporaryFolder root;
  ToyRun().run(root.path());
  std::filesystem::remove(folder_of(root) + "/final.safetensors");
  EXPECT_TRUE(has_result(folder_of(root)));
  write_file_atomically(folder_of(root) + "/" + checkpoint_name(8), "torn");
  EXPECT_TRUE(has_result(folder_of(root)));
  EXPECT_FALSE(verify_run(folder_of(root)).empty());
}

TEST(RunStore, RestoresMissingConfigAndNamesSource) {
  for (const auto& [name, source] : {std::pair{"config.toml", "config.json"}, {"config.json", "config.toml"}}) {
    TemporaryFolder root;
    EXPECT_TRUE(RunStore(root.path(), config()).restored().empty()) << "a folder that is new";
    std::filesystem::remove(folder_of(root) + "/" + name);
    EXPECT_TRUE(RunStore(root.path(), config()).restored().empty()) << "nothing was done in it yet";
    ToyRun().run(root.path());
    std::filesystem::remove(folder_of(root) + "/" + name);
    EXPECT_EQ(
        RunStore(root.path(), config()).restored(),
        std::vector<std::string>{"[run] " + folder_of(root) + "/" + name + ": was missing; restored from " + source});
    EXPECT_EQ(bytes_of(root), clean_bytes());
    for (const char* each : {"config.toml", "config.json"}) std::filesystem::remove(folder_of(root) + "/" + each);
    const auto lines = RunStore(root.path(), config()).restored();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_TRUE(has(lines[0], "restored from the config of this command"));
  }
}

TEST(RunStore, RestoresAndNamesEditedConfig) {
  TemporaryFolder root;
  ToyRun().run(root.path());
  const std::string toml = folder_of(root) + "/config.toml";
  write_file_atomically(toml, "[train]\nupdates = 1\n");
  EXPECT_FALSE(has_result(folder_of(root)));
  {
    const RunStore store(root.path(), config());
    ASSERT_EQ(store.restored().size(), 1U);
    EXPECT_TRUE(has(store.restored()[0], toml));
  }
  EXPECT_TRUE(has_result(folder_of(root)));
  EXPECT_EQ(bytes_of(root), clean_bytes());
  EXPECT_FALSE(restore_config(toml));
  write_file_atomically(toml, "[train]\nupdates = 1\n");
  EXPECT_TRUE(restore_config(toml));
  EXPECT_EQ(bytes_of(root), clean_bytes());
  write_file_atomically(root.file("config.toml"), "x");
  EXPECT_FALSE(restore_config(root.file("config.toml"))) << "no run folder";
}

TEST(RunStore, EquivalentConfigIsNotDamage) {
  const auto relabelled = resolve_text("[train]\nupdates = 8\n[eval]\ngrid_samples = 7\n[run]\nlabel = 'b'\n");
  ASSERT_EQ(relabelled.run_id, config().run_id);
  TemporaryFolder root;
  EXPECT_TRUE(RunStore(root.path(), config()).restored().empty());
  const std::string toml = folder_of(root) + "/config.toml";
  const std::string before = read_file(toml, 1 << 20);
  EXPECT_EQ(RunStore(root.path(), relabelled).restored(), std::vector<std::string>{});
  EXPECT_NE(read_file(toml, 1 << 20), before);
  EXPECT_TRUE(verify_run(folder_of(root)).empty());
  write_file_atomically(toml, "[train]\nupdates = 1\n");
  EXPECT_EQ(RunStore(root.path(), config()).restored(),
            std::vector<std::string>{"[run] " + toml + ": was modified; rewritten"});
  EXPECT_EQ(read_file(toml, 1 << 20), before);
  const std::string json = folder_of(root) + "/config.json";
  write_file_atomically(json, read_file(json, 1 << 20) + " ");
  EXPECT_EQ(RunStore(root.path(), relabelled).restored().size(), 2U) << "neither bears the other out";
}

TEST(RunStore, DoesNotAcceptResultOfAnotherRun) {
  TemporaryFolder root;
  ToyRun().run(root.path());
  const std::string other = root.file("0123456789abcdef");
  std::filesystem::copy(folder_of(root), other);
  EXPECT_FALSE(has_result(other));
  EXPECT_EQ(inspect_run(other).state, RunState::whole) << "a folder may have any name";
}

TEST(RunStore, DoesNotFollowLinks) {
  for (const char* name : {"lock", "result.json", "config.toml"}) {
    TemporaryFolder root;
    write_file_atomically(root.file("precious"), "precious");
    std::filesystem::create_directory(folder_of(root));
    std::filesystem::create_symlink(root.file("precious"), folder_of(root) + "/" + name);
    EXPECT_TRUE(has(error_line([&] { ToyRun().run(root.path()); }, Exit::cannot_write), "symbolic link"));
    EXPECT_EQ(read_file(root.file("precious"), 100), "precious");
  }
}

TEST(RunStore, RejectsPipeAsLock) {
  TemporaryFolder root;
  std::filesystem::create_directory(folder_of(root));
  ASSERT_EQ(::mkfifo((folder_of(root) + "/lock").c_str(), 0600), 0);
  EXPECT_THROW(RunStore(root.path(), config()), Error);
}

// The checkpoint is sealed, intact and of this run, but its metrics are invalid.
TEST(RunStore, SkipsCheckpointWithInvalidMetrics) {
  const double weight = 1;
  const std::vector<std::string> texts = {"{\"update\":1,\"phase\":\"train\"", "[]\n",
                                          "{\"update\":-1,\"phase\":\"\"}\n",
                                          "{\"update\":3,\"phase\":\"train\",\"loss\":0.5}\n"};
  for (const auto& text : texts) {
    TemporaryFolder root;
    RunStore store(root.path(), config());
    store.add({1, "train", {{"loss", 0.5}}});
    store.save(1, {{"weight", "F64", {1}, &weight}});
    save_checkpoint(
        store.folder(), 2,
        {{"weight", "F64", {1}, &weight}, {"run.metrics", "U8", {static_cast<int64_t>(text.size())}, text.data()}},
        {{"run_id", config().run_id}});
    std::vector<std::string> warnings;
    const auto checkpoint = store.resume(warnings);
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->update, 1);
    EXPECT_EQ(store.metrics().size(), 1U);
    EXPECT_EQ(warnings.size(), 1U);
  }
}

TEST(RunStore, SecondProcessNamesHolderAndExits) {
  TemporaryFolder root;
  const RunStore held(root.path(), config());
  const std::string holder = "process " + std::to_string(::getpid());
  const int status = in_child([&] {
    try {
      const RunStore second(root.path(), config());
    } catch (const Error& error) {
      const std::string line = error.what();
      const bool says = line.find(holder) != std::string::npos && line.find("since 2") != std::string::npos;
      ::_exit(says ? static_cast<int>(error.code()) : 1);
    }
    ::_exit(2);
  });
  EXPECT_EQ(status, static_cast<int>(Exit::stopped));
}

TEST(RunStore, KilledHolderReleasesRun) {
  TemporaryFolder root;
  const int status = in_child([&] {
    const RunStore held(root.path(), config());
    ::kill(::getpid(), SIGKILL);
  });
  ASSERT_EQ(status, 128 + SIGKILL);
  EXPECT_NO_THROW(RunStore(root.path(), config()));
}

TEST(RunStore, ReportsFolderThatCannotBeCreated) {
  TemporaryFolder root;
  write_file_atomically(root.file("plain"), "");
  EXPECT_TRUE(has(error_line([&] { RunStore(root.file("plain"), config()); }, Exit::cannot_write), root.file("plain")));
}

TEST(RunStore, StoresAutomatonWithRun) {
  TemporaryFolder root;
  const std::string text = R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})";
  write_file_atomically(root.file("a.json"), text);
  const auto with = resolve_text("[grammar]\nautomaton = '" + root.file("a.json") + "'\n");
  write_file_atomically(root.file("a.json"), "changed after it was read");
  std::string folder;
  {
    const RunStore store(root.path(), with);
    folder = store.folder();
  }
  EXPECT_EQ(read_file(folder + "/automaton.json", 1000), text);
  std::filesystem::remove(root.file("a.json"));
  const auto again = resolve_config(folder + "/config.toml", {}, rules());
  EXPECT_EQ(again.run_id, with.run_id);
  EXPECT_EQ(again.values.grammar.automaton, folder + "/automaton.json");
}

}  // namespace
}  // namespace sb::test
