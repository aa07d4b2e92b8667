#include "store/open_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "../config/model_rules.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_layout.h"
#include "base/number.h"
#include "base/sha256.h"
#include "config/automaton_file.h"
#include "plain_result.h"
#include "store/run_check.h"
#include "store/run_identity.h"
#include "store/run_store.h"
#include "store/seal.h"

namespace sb::test {
namespace {

ResolvedConfig config(int seed = 1) {
  return resolve_text("[run]\nseed = " + std::to_string(seed) + "\n");
}

std::string finish(const std::string& root, const ResolvedConfig& resolved, bool diverged = false) {
  RunStore store(root, resolved);
  const double weight = static_cast<double>(resolved.values.run.seed);
  std::vector<NamedBytes> weights = {{"weight", "F64", {1}, &weight}};
  if (diverged) weights.clear();
  store.finish(plain_result(resolved, diverged), weights);
  return store.folder();
}

TEST(OpenRun, OpensIntactRun) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config());
  const OpenRun run = open_run(folder, rules());
  EXPECT_EQ(run.config.run_id, config().run_id);
  ASSERT_TRUE(run.result);
  EXPECT_EQ(open_result(folder).run_id, config().run_id);
  EXPECT_EQ(open_weights(run).at("weight").as_doubles().front(), 1);
}

TEST(OpenRun, RejectsEditedConfigByName) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config());
  const std::string toml = read_file(folder + "/config.toml", 1 << 20);
  std::string edited = toml;
  edited.replace(edited.find("length = 200"), 12, "length = 100");
  write_file_atomically(folder + "/config.toml", edited);
  for (const std::string& line :
       {error_line([&] { open_run(folder, rules()); }), error_line([&] { open_result(folder); })}) {
    EXPECT_TRUE(has(line, folder + "/config.toml"));
  }
  write_file_atomically(folder + "/config.toml", toml + "# a remark\n");
  EXPECT_TRUE(has(error_line([&] { open_run(folder, rules()); }), "config.toml"));
}

// Writes config.json of a run anew, sealed, and the run id with it, also into the weights; the folder takes that name.
std::string forged(const std::string& folder, const std::string& from, const std::string& to) {
  StoredConfig stored = read_stored_config(folder);
  const size_t at = stored.canonical.find(from);
  EXPECT_NE(at, std::string::npos) << stored.canonical;
  stored.canonical.replace(at, from.size(), to);
  stored.run_id = sha256_hex(stored.canonical).substr(0, 16);
  write_file_atomically(folder + "/config.json", stored_config_text(stored));
  Result result = load_result(folder);
  std::string weights = read_file(folder + "/final.safetensors", 1 << 20);
  weights.replace(weights.find(result.run_id), result.run_id.size(), stored.run_id);
  seal(weights);
  write_file_atomically(folder + "/final.safetensors", weights);
  result.files["final.safetensors"] = sha256_hex(weights);
  result.run_id = stored.run_id;
  result.config = config_map(stored.canonical);
  result.width = parse_integer(result.config.at("model.width")).value();
  write_file_atomically(folder + "/result.json", sealed_json(result_text(result)));
  const std::string moved = (std::filesystem::path(folder).parent_path() / stored.run_id).string();
  std::filesystem::rename(folder, moved);
  return moved;
}

TEST(OpenRun, CheckAndEvalAgreeOnForeignConfig) {
  const TemporaryFolder root;
  const std::string good = finish(root.path(), config(2));
  EXPECT_EQ(judge_config(good, RunTree::disk(), rules()).problem, "");
  EXPECT_EQ(judge_config(good, RunTree::disk(), rules()).not_evaluated, "");
  const std::string folder = forged(finish(root.path(), config()), "\"width\":256", "\"width\":512");
  EXPECT_EQ(inspect_run(folder).state, RunState::whole) << "every digest fits";
  const std::string line = error_line([&] { open_run(folder, rules()); });
  EXPECT_TRUE(has(line, "config.toml: expected run "));
  EXPECT_EQ(judge_config(folder, RunTree::disk(), rules()).problem, line);
}

TEST(OpenRun, RunOfEarlierCanonicalFormKeepsItsId) {
  const TemporaryFolder root;
  const auto now = resolve_text("[train]\nupdates = 100\nwarmup = 1\n[eval]\nevery = 0\n");
  const std::string folder = forged(finish(root.path(), now), "\"every\":0", "\"every\":500");
  const OpenRun run = open_run(folder, rules());
  EXPECT_EQ(run.config.run_id, std::filesystem::path(folder).filename());
  EXPECT_NE(run.config.run_id, now.run_id);
  EXPECT_EQ(judge_config(folder, RunTree::disk(), rules()).problem, "");
}

TEST(OpenRun, RunOfEarlierAutomatonFormatKeepsItsId) {
  const TemporaryFolder root;
  const std::string text = R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})";
  write_file_atomically(root.file("a.json"), text);
  const auto now = resolve_text("[grammar]\nautomaton = '" + root.file("a.json") + "'\n");
  const std::string own = automaton_identity(*now.values.grammar.file);
  const std::string folder = forged(finish(root.path(), now), own, sha256_hex(text));
  EXPECT_NE(open_run(folder, rules()).config.run_id, now.run_id);
  write_file_atomically(folder + "/automaton.json", text + "\n");
  EXPECT_TRUE(has(error_line([&] { open_run(folder, rules()); }), "automaton.json: expected run "));
}

// Stores another config.toml in a run, with every digest renewed.
void forge_toml(const std::string& folder, const std::string& toml) {
  StoredConfig stored = read_stored_config(folder);
  stored.toml = toml;
  write_file_atomically(folder + "/config.json", stored_config_text(stored));
  write_file_atomically(folder + "/config.toml", toml);
}

TEST(OpenRun, StoredConfigThatIsNotTomlOrExtendsAnotherIsDamage) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config()), toml = read_stored_config(folder).toml;
  write_file_atomically(root.file("secret.toml"), "password hunter2\n");
  for (const std::string& forged : {"[[[" + toml, "extends = '" + root.file("secret.toml") + "'\n" + toml}) {
    forge_toml(folder, forged);
    const std::string line = error_line([&] { open_run(folder, rules()); });
    EXPECT_TRUE(has(line, folder + "/config.toml:1:"));
    EXPECT_TRUE(lacks(line, "secret.toml"));
    EXPECT_EQ(inspect_run(folder).state, RunState::damaged);
    EXPECT_EQ(inspect_run(folder).problems, std::vector<std::string>{line});
  }
  forge_toml(folder, toml);
  EXPECT_EQ(inspect_run(folder).state, RunState::whole);
}

TEST(OpenRun, ByteOrderMarkOfAutomatonDoesNotChangeRun) {
  const TemporaryFolder root;
  const std::string text = R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})";
  write_file_atomically(root.file("plain.json"), text);
  write_file_atomically(root.file("marked.json"), "\xEF\xBB\xBF" + text);
  const auto resolved = [&](const std::string& name) {
    return resolve_text("[grammar]\nautomaton = '" + root.file(name) + "'\n");
  };
  const auto marked = resolved("marked.json");
  EXPECT_EQ(marked.run_id, resolved("plain.json").run_id);
  // Earlier versions included the mark.
  const std::string before = sha256_hex(json_laid_out("\xEF\xBB\xBF" + text));
  const std::string folder =
      forged(finish(root.path(), marked), automaton_identity(*marked.values.grammar.file), before);
  EXPECT_NE(open_run(folder, rules()).config.run_id, marked.run_id);
}

TEST(OpenRun, ConfigOfOtherVersionIsNotDamage) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config());
  ModelRules none = rules();
  none.checks = {[](const RunConfig&) { throw bad_input("model.name", "unknown model"); }};
  const ConfigVerdict verdict = judge_config(folder, RunTree::disk(), none);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_TRUE(verdict.not_evaluated.starts_with("[model.name] unknown model")) << verdict.not_evaluated;
}

TEST(OpenRun, RejectsFilesWithWrongDigestByName) {
  for (const bool missing : {false, true}) {
    const TemporaryFolder root;
    const std::string folder = finish(root.path(), config());
    if (missing)
      std::filesystem::remove(folder + "/metrics.jsonl");
    else
      write_file_atomically(folder + "/metrics.jsonl", "x");
    const std::string line = error_line([&] { open_run(folder, rules()); });
    EXPECT_TRUE(has(line, folder + "/metrics.jsonl"));
  }
}

TEST(OpenRun, RejectsFilesOfAnotherRunByName) {
  for (const char* name : {"result.json", "final.safetensors", "config.toml", "config.json"}) {
    const TemporaryFolder root;
    const std::string folder = finish(root.path(), config(1)), other = finish(root.path(), config(2));
    std::filesystem::copy_file(other + "/" + name, folder + "/" + name,
                               std::filesystem::copy_options::overwrite_existing);
    const std::string line = error_line([&] { open_weights(open_run(folder, rules())); });
    const std::string named = std::string(name) == "config.json" ? "config.toml" : name;
    EXPECT_TRUE(has(line, folder + "/" + named));
  }
}

// The weights get a digest that fits, in a result that is sealed anew.
TEST(OpenRun, CheckAndEvalAgreeOnForgedWeights) {
  const TemporaryFolder root;
  const std::string other = finish(root.path(), config(2));
  const std::string foreign = read_file(other + "/final.safetensors", 1 << 20);
  const std::string folder = finish(root.path(), config(1)), path = folder + "/final.safetensors";
  std::string edited = read_file(path, 1 << 20);
  edited.back() ^= 1;
  for (const std::string& weights : {foreign, std::string("garbage"), std::string(), edited}) {
    write_file_atomically(path, weights);
    Result result = load_result(folder);
    result.files["final.safetensors"] = sha256_hex(weights);
    write_file_atomically(folder + "/result.json", sealed_json(result_text(result)));
    const std::string line = error_line([&] { open_weights(open_run(folder, rules())); });
    const RunReport report = inspect_run(folder);
    EXPECT_EQ(report.state, RunState::damaged) << line;
    EXPECT_EQ(report.problems, std::vector<std::string>{line});
    EXPECT_FALSE(has_result(folder));
  }
}

TEST(OpenRun, ResultWithoutDigestOfWeightsHasNone) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config());
  Result result = load_result(folder);
  result.files.erase("final.safetensors");
  write_file_atomically(folder + "/result.json", sealed_json(result_text(result)));
  EXPECT_EQ(inspect_run(folder).state, RunState::without_weights);
  EXPECT_TRUE(has(error_line([&] { open_weights(open_run(folder, rules())); }), "result.json"));
}

// Writes a changed result, with every digest renewed or with the old digest of its numbers.
void forge_result(const std::string& folder, const std::function<void(Result&)>& change, bool renew_numbers = true) {
  Result result = load_result(folder);
  const std::string before = sha256_hex(comparable_text(result));
  change(result);
  std::string text = result_text(result);
  const std::string now = sha256_hex(comparable_text(result));
  if (!renew_numbers) text.replace(text.find(now), now.size(), before);
  write_file_atomically(folder + "/result.json", sealed_json(text));
}

TEST(OpenRun, CheckAndEvalAgreeOnForgedResults) {
  const std::vector<std::function<void(Result&)>> changes = {
      [](Result& r) { r.model = "rwkv7"; },
      [](Result& r) { ++r.task; },
      [](Result& r) { ++r.width; },
      [](Result& r) { ++r.layers; },
      [](Result& r) { r.lr *= 2; },
      [](Result& r) { --r.updates; },
      [](Result& r) { ++r.grammar_seed; },
      [](Result& r) { ++r.train_seed; },
      [](Result& r) { r.status = "diverged"; },
      [](Result& r) { r.divergence.emplace(); },
      [](Result& r) { r.config["train.lr"] = "7.0"; },
  };
  for (size_t i = 0; i <= changes.size(); ++i) {
    const TemporaryFolder root;
    const std::string folder = finish(root.path(), config());
    if (i < changes.size())
      forge_result(folder, changes[i]);
    else
      forge_result(
          folder, [](Result& r) { r.params = 7; }, false);
    const std::string line = error_line([&] { open_run(folder, rules()); });
    EXPECT_TRUE(has(line, folder + "/result.json"));
    EXPECT_EQ(error_line([&] { open_result(folder); }), line);
    const RunReport report = inspect_run(folder);
    EXPECT_EQ(report.state, RunState::damaged) << line;
    EXPECT_EQ(report.problems, std::vector<std::string>{line});
  }
}

TEST(OpenRun, DivergedRunMayStopBeforeItsLastUpdate) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config(), true);
  forge_result(folder, [](Result& r) { r.updates = 1; });
  EXPECT_EQ(inspect_run(folder).state, RunState::whole);
  forge_result(folder, [](Result& r) { r.updates = 1'000'000; });
  EXPECT_EQ(inspect_run(folder).state, RunState::damaged);
}

TEST(OpenRun, MetricsThatCannotBeParsedAreDamage) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config());
  write_file_atomically(folder + "/metrics.jsonl", "garbage\n");
  forge_result(folder, [](Result& r) { r.files["metrics.jsonl"] = sha256_hex("garbage\n"); });
  const std::string line = error_line([&] { open_run(folder, rules()); });
  EXPECT_TRUE(has(line, folder + "/metrics.jsonl:1:1"));
  EXPECT_EQ(inspect_run(folder).problems, std::vector<std::string>{line});
}

TEST(OpenRun, ReportsMissingWeights) {
  const TemporaryFolder root;
  const std::string folder = finish(root.path(), config());
  std::filesystem::remove(folder + "/final.safetensors");
  EXPECT_NO_THROW(open_result(folder));
  const OpenRun run = open_run(folder, rules());
  EXPECT_TRUE(has(error_line([&] { open_weights(run); }), "final.safetensors"));
  const std::string gone = finish(root.path(), config(3), true);
  EXPECT_TRUE(has(error_line([&] { open_weights(open_run(gone, rules())); }), "diverged"));
}

TEST(OpenRun, UnfinishedRunHasConfigButNoResult) {
  const TemporaryFolder root;
  const std::string folder = RunStore(root.path(), config()).folder();
  const OpenRun run = open_run(folder, rules());
  EXPECT_FALSE(run.result);
  EXPECT_TRUE(has(error_line([&] { open_weights(run); }), "result.json"));
  EXPECT_TRUE(has(error_line([&] { open_result(folder); }), "result.json"));
}

// The seal is a digest, not a signature: anyone can seal anything.
TEST(OpenRun, RejectsSealedButHostileConfigs) {
  for (const char* text :
       {"{}", "{\"run_id\": 3\n}", "{\"run_id\": \"x\",\n  \"canonical\": [[[\n}",
        "{\"run_id\": \"x\",\n  \"config_toml_sha256\": \"y\",\n  \"canonical\": {\"a\": {}}\n}",
        "{\"run_id\": \"44136fa355b3678a\",\n  \"config_toml_sha256\": \"y\",\n  \"canonical\": {}\n}"}) {
    const TemporaryFolder root;
    const std::string folder = finish(root.path(), config());
    write_file_atomically(folder + "/config.json", sealed_json(text));
    EXPECT_TRUE(has(error_line([&] { open_run(folder, rules()); }), "config."));
  }
}

}  // namespace
}  // namespace sb::test
