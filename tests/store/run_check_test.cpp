#include "store/run_check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "../config/model_rules.h"
#include "base/file.h"
#include "base/sha256.h"
#include "plain_result.h"
#include "random_result.h"
#include "store/checkpoint.h"
#include "store/evaluation_file.h"
#include "store/run_store.h"
#include "store/seal.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

ResolvedConfig config() {
  return resolve_text("[train]\nupdates = 8\n");
}

enum class Upto { config, checkpoint, diverged, result };

// A run folder as it is at some point of a run's life.
std::string make_run(const TemporaryFolder& root, Upto upto) {
  RunStore store(root.path(), config());
  const double weight = 2;
  const std::vector<NamedBytes> tensors = {{"weight", "F64", {1}, &weight}};
  if (upto == Upto::config) return store.folder();
  store.add({3, "train", {{"loss", 0.5}}});
  store.save(3, tensors);
  if (upto == Upto::checkpoint) return store.folder();
  const Result result = plain_result(config(), upto == Upto::diverged);
  store.finish(result, upto == Upto::diverged ? std::vector<NamedBytes>{} : tensors);
  return store.folder();
}

bool names(const RunReport& report, const std::string& file) {
  for (const auto& problem : report.problems)
    if (problem.find(report.folder + "/" + file) != std::string::npos) return true;
  return false;
}

TEST(InspectRun, ReportsStateOfRun) {
  const TemporaryFolder fresh, begun, gone, done;
  EXPECT_EQ(inspect_run(make_run(fresh, Upto::config)).state, RunState::unfinished);
  const RunReport half = inspect_run(make_run(begun, Upto::checkpoint));
  EXPECT_EQ(half.state, RunState::unfinished);
  EXPECT_EQ(half.update, 3);
  EXPECT_EQ(half.updates, 8);
  EXPECT_EQ(half.run_id, config().run_id);
  EXPECT_FALSE(half.result_stands);
  const RunReport diverged = inspect_run(make_run(gone, Upto::diverged));
  EXPECT_EQ(diverged.state, RunState::whole);
  EXPECT_EQ(diverged.status, "diverged");
  const std::string folder = make_run(done, Upto::result);
  const RunReport whole = inspect_run(folder);
  EXPECT_EQ(whole.state, RunState::whole);
  EXPECT_TRUE(whole.result_stands);
  EXPECT_TRUE(whole.problems.empty());
  fs::remove(folder + "/final.safetensors");
  EXPECT_EQ(inspect_run(folder).state, RunState::without_weights);
  EXPECT_TRUE(inspect_run(folder).result_stands);
}

TEST(InspectRun, NamesEveryDamagedOrMissingFile) {
  for (const char* name : {"config.toml", "config.json", "metrics.jsonl", "final.safetensors", "result.json"}) {
    const TemporaryFolder root;
    const std::string folder = make_run(root, Upto::result);
    const std::string whole = read_file(folder + "/" + name, 1 << 20);
    std::string changed = whole;
    changed[changed.size() / 2] ^= 1;
    write_file_atomically(folder + "/" + name, changed);
    const RunReport report = inspect_run(folder);
    EXPECT_EQ(report.state, RunState::damaged) << name;
    EXPECT_TRUE(names(report, name)) << name;
    EXPECT_FALSE(report.result_stands) << name;
    fs::remove(folder + "/" + name);
    const std::string text = name;
    const bool needed = text.starts_with("config") || text == "metrics.jsonl";
    EXPECT_EQ(names(inspect_run(folder), name), needed) << name << " is missing";
  }
}

TEST(InspectRun, DamagedCheckpointCountsOnlyWhileNeeded) {
  const std::string name = checkpoint_name(3);
  const TemporaryFolder done, begun;
  const std::string over = make_run(done, Upto::result), half = make_run(begun, Upto::checkpoint);
  for (const auto& folder : {over, half}) write_file_atomically(folder + "/" + name, "torn");
  const RunReport finished = inspect_run(over);
  EXPECT_EQ(finished.state, RunState::whole);
  EXPECT_TRUE(finished.problems.empty());
  ASSERT_EQ(finished.not_needed.size(), 1U);
  EXPECT_NE(finished.not_needed[0].find(name), std::string::npos);
  EXPECT_EQ(inspect_run(half).state, RunState::damaged);
  EXPECT_TRUE(names(inspect_run(half), name));
  write_file_atomically(over + "/metrics.jsonl", "changed");
  EXPECT_TRUE(names(inspect_run(over), name)) << "the run has to be done again";
}

TEST(InspectRun, ChecksSavedEvaluations) {
  const TemporaryFolder root;
  const std::string folder = make_run(root, Upto::result);
  SavedEvaluation saved;
  saved.run_id = config().run_id;
  saved.model = config().values.model.name;
  saved.task = config().values.task.task.number;
  saved.points = {RandomResult(1).measurement()};
  saved.points[0].at.reset();
  saved.objective = "state";
  saved.split = "test";
  saved.weights = "final";
  saved.weights_sha256 = load_result(folder).files.at("final.safetensors");
  const std::string path = save_evaluation(folder, saved);
  EXPECT_EQ(inspect_run(folder).state, RunState::whole);
  const std::string whole = read_file(path, 1 << 20);
  write_file_atomically(path, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(inspect_run(folder).state, RunState::damaged);
  EXPECT_TRUE(names(inspect_run(folder), evaluation_name(saved)));
  EXPECT_TRUE(has_result(folder)) << "nothing to train again";
  write_file_atomically(path, whole);
  saved.weights_sha256 = sha256_hex("other weights");
  save_evaluation(folder, saved);
  EXPECT_EQ(inspect_run(folder).problems.size(), 1U);
  EXPECT_TRUE(names(inspect_run(folder), evaluation_name(saved)));
}

TEST(InspectRun, OlderFormatsAreNotDamaged) {
  const TemporaryFolder root;
  const std::string folder = make_run(root, Upto::result);
  const std::string kept = read_file(folder + "/config.json", 1 << 20);
  write_file_atomically(folder + "/config.json", sealed_json("{\n  \"run_id\": \"x\",\n  \"canonical\": {}\n}"));
  EXPECT_EQ(inspect_run(folder).state, RunState::older);
  write_file_atomically(folder + "/config.json", kept);
  write_file_atomically(folder + "/result.json", sealed_json("{\"run_id\": \"x\", \"status\": \"done\"}"));
  const RunReport report = inspect_run(folder);
  EXPECT_EQ(report.state, RunState::older);
  EXPECT_FALSE(report.result_stands);
  EXPECT_FALSE(has_result(folder));
}

TEST(InspectRun, EditedSchemaIsDamagedAndHigherOneIsNewer) {
  const TemporaryFolder root;
  const std::string folder = make_run(root, Upto::result);
  const std::string whole = read_file(folder + "/result.json", 1 << 20);
  const auto with = [&](const std::string& schema) {
    std::string text = whole;
    const std::string now = "\"schema\": " + std::to_string(result_schema);
    text.replace(text.find(now), now.size(), "\"schema\": " + schema);
    return text;
  };
  const auto resealed = [](std::string text) {
    text.replace(find_seal(text), 64, blank_seal());
    seal(text);
    return text;
  };
  for (const char* schema : {"0", "1", "2", "4", "99"}) {
    write_file_atomically(folder + "/result.json", with(schema));
    EXPECT_EQ(inspect_run(folder).state, RunState::damaged) << "edited to " << schema;
    EXPECT_TRUE(names(inspect_run(folder), "result.json"));
  }
  write_file_atomically(folder + "/result.json", resealed(with("99")));
  EXPECT_EQ(inspect_run(folder).state, RunState::newer);
  EXPECT_FALSE(inspect_run(folder).result_stands);
  write_file_atomically(folder + "/result.json", resealed(with("0")));
  EXPECT_EQ(inspect_run(folder).state, RunState::damaged) << "there was never such a schema";
  write_file_atomically(folder + "/result.json", resealed(with("2")));
  EXPECT_EQ(inspect_run(folder).state, RunState::older);
}

TEST(InspectRun, FinishedRunReportsUpdatesWithoutCheckpoints) {
  const TemporaryFolder root;
  const std::string folder = make_run(root, Upto::result);
  EXPECT_EQ(inspect_run(folder).update, 8) << "not those of the checkpoint";
  EXPECT_EQ(inspect_run(folder).checkpoint, 3);
  fs::remove(folder + "/" + checkpoint_name(3));
  EXPECT_EQ(inspect_run(folder).update, 8);
  EXPECT_EQ(inspect_run(folder).checkpoint, std::nullopt);
}

// The seal is a digest, not a signature.
TEST(InspectRun, SealedButHostileFilesAreDamage) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const std::vector<std::string> texts = {
      "{}",
      "{\"schema\": 3}",
      "{\"schema\": \"two\"}",
      "{\"schema\": 3, \"run_id\": [], \"updates\": 1e300}",
      "{\"schema\": 3, \"x\": " + deep + "}",
      "{\"schema\": 3, \"run_id\": \"44136fa355b3678a\", \"updates\": 1, \"config_toml_sha256\": \"\", "
      "\"config_toml\": \"\",\n  \"canonical\": {}\n}"};
  for (const char* name : {"config.json", "result.json"})
    for (const auto& text : texts) {
      const TemporaryFolder root;
      const std::string folder = make_run(root, Upto::result);
      write_file_atomically(folder + "/" + name, sealed_json(text));
      const RunReport report = inspect_run(folder);
      EXPECT_NE(report.state, RunState::whole) << text.substr(0, 80);
      EXPECT_FALSE(report.result_stands);
      for (const auto& problem : report.problems) EXPECT_EQ(problem.find('\n'), std::string::npos);
    }
}

TEST(InspectRun, RejectsResultNamingFilesOutsideItsFolder) {
  const TemporaryFolder root;
  const std::string folder = make_run(root, Upto::result);
  Result result = load_result(folder);
  result.files["../secret"] = "0";
  write_file_atomically(folder + "/result.json", sealed_json(result_text(result)));
  EXPECT_EQ(inspect_run(folder).state, RunState::damaged);
}

TEST(InspectRun, DoesNotBlockOnPipesAndDevices) {
  for (const char* name : {"config.toml", "config.json", "result.json", "metrics.jsonl", "final.safetensors"}) {
    const TemporaryFolder root;
    const std::string folder = make_run(root, Upto::result);
    fs::remove(folder + "/" + name);
    ASSERT_EQ(::mkfifo((folder + "/" + name).c_str(), 0600), 0);
    EXPECT_EQ(inspect_run(folder).state, RunState::damaged) << name;
    fs::remove(folder + "/" + name);
    fs::create_symlink("/dev/zero", folder + "/" + name);
    EXPECT_EQ(inspect_run(folder).state, RunState::damaged) << name;
  }
}

TEST(FindRuns, FindsRunsAndFolderItself) {
  const TemporaryFolder root;
  const std::string folder = make_run(root, Upto::config);
  fs::create_directory(root.file("nothing"));
  write_file_atomically(root.file("table.txt"), "");
  EXPECT_EQ(find_runs(root.path()).runs, std::vector<std::string>{folder});
  EXPECT_EQ(find_runs(folder).runs, std::vector<std::string>{folder});
  EXPECT_TRUE(find_runs(root.file("absent")).runs.empty());
  EXPECT_TRUE(find_runs(root.file("absent")).notes.empty());
}

TEST(FindRuns, NamesSkippedFolders) {
  const TemporaryFolder root, elsewhere;
  const std::string run = make_run(elsewhere, Upto::result);
  fs::create_directories(root.file("a/b/c/d"));
  fs::copy(run, root.file("a/b/c/d/deepest"));
  fs::create_directories(root.file("a/b/c/d/e"));
  fs::create_directory(root.file("only"));
  fs::copy_file(run + "/result.json", root.file("only/result.json"));
  fs::create_directory_symlink(elsewhere.path(), root.file("link"));
  fs::create_directory_symlink(run, root.file("linked_run"));
  const FoundFolders found = find_runs(root.path());
  EXPECT_EQ(found.runs,
            (std::vector<std::string>{root.file("a/b/c/d/deepest"), root.file("linked_run"), root.file("only")}));
  ASSERT_EQ(found.notes.size(), 2U);
  EXPECT_NE(found.notes[0].find("more than 4 folders down: " + root.file("a/b/c/d/e")), std::string::npos);
  EXPECT_NE(found.notes[1].find("a link to a folder: " + root.file("link")), std::string::npos);
  EXPECT_EQ(found.folders.size(), 5U);
}

TEST(RestoreConfig, RejectsAnotherAutomatonByName) {
  const TemporaryFolder root;
  const std::string text = R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})";
  write_file_atomically(root.file("a.json"), text);
  const std::string folder =
      RunStore(root.path(), resolve_text("[grammar]\nautomaton = '" + root.file("a.json") + "'\n")).folder();
  EXPECT_FALSE(restore_config(folder + "/config.toml"));
  write_file_atomically(folder + "/automaton.json",
                        R"({"states": ["A", "B", "#"], "start_states": ["A"], "transitions": [[0, 1, 1], [1, 2, 1]]})");
  EXPECT_TRUE(has(error_line([&] { restore_config(folder + "/config.toml"); }), folder + "/automaton.json"));
}

TEST(RestoreConfig, ReplacesLinkAndKeepsItsTarget) {
  const TemporaryFolder root;
  const std::string folder = make_run(root, Upto::config), path = folder + "/config.toml";
  const std::string stored = read_file(path, 1 << 20), target = root.file("mine.toml");
  write_file_atomically(target, "mine");
  fs::remove(path);
  fs::create_symlink(target, path);
  EXPECT_TRUE(restore_config(path));
  EXPECT_EQ(read_file(target, 1 << 20), "mine");
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(read_file(path, 1 << 20), stored);
}

TEST(StoredConfig, RoundTrips) {
  StoredConfig config;
  config.toml = "[a]\nb = \"\xc3\xa4\"\n";
  config.canonical = "{\"format\":1}";
  config.run_id = sha256_hex(config.canonical).substr(0, 16);
  config.automaton_digest = "d";
  config.updates = 12;
  const StoredConfig again = parse_stored_config(stored_config_text(config), "config.json");
  EXPECT_EQ(again.toml, config.toml);
  EXPECT_EQ(again.canonical, config.canonical);
  EXPECT_EQ(again.automaton_digest, "d");
  EXPECT_EQ(again.updates, 12);
  config.run_id = "0123456789abcdef";
  EXPECT_THROW(parse_stored_config(stored_config_text(config), "config.json"), Error);
}

}  // namespace
}  // namespace sb::test
