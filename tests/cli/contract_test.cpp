// What scripts rely on, checked against recorded data of the reference.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "golden_json.h"
#include "program_run.h"

namespace sb::test {
namespace {

using nlohmann::json;

std::vector<std::string> grammar_options(const json& config) {
  const auto text = [&](const char* key) { return std::to_string(config[key].get<uint64_t>()); };
  return {"--vocab", text("alphabet_size"),   "--ambiguities", text("ambiguities"),
          "--depth", text("ambiguity_depth"), "--seed",        text("seed")};
}

TEST(GrammarJson, HasAsManyStartStatesAsAskedFor) {
  for (const char* count : {"1", "3"}) {
    const Outcome outcome =
        run({"grammar", "--vocab", "6", "--ambiguities", "2", "--depth", "3", "--start-states", count, "--json", "-"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(std::to_string(json::parse(outcome.out)["start_states"].size()), count);
  }
}

TEST(GrammarJson, EqualsTheRecordedGrammars) {
  for (const char* name : {"v6_a2_d3_s1", "v6_a2_d3_s2", "v5_a0_d1_s1", "v16_a7_d16_s42", "v41_a40_d40_s1"}) {
    const json golden = read_golden(std::string("grammar/") + name + ".json.gz");
    const json& expected = golden["grammar"];
    const Outcome outcome = run(std::vector<std::string>{"grammar", "--json", "-"} + grammar_options(golden["config"]));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json got = json::parse(outcome.out);
    EXPECT_EQ(got["states"], expected["states"]) << name;
    EXPECT_EQ(got["start_states"], expected["start_states"]) << name;
    EXPECT_NEAR(got["topological_entropy"].get<double>(), expected["topological_entropy"].get<double>(), 1e-9) << name;
    const auto& columns = expected["transitions"];
    ASSERT_EQ(got["transitions"].size(), columns["src"].size()) << name;
    for (size_t i = 0; i < got["transitions"].size(); ++i) {
      ASSERT_EQ(got["transitions"][i], json::array({columns["src"][i], columns["dst"][i], columns["prob"][i]}));
    }
    for (const auto& state : got["states"]) {
      EXPECT_EQ(got["state_ids"][state.get<std::string>()], expected["unred_state_to_id"][state.get<std::string>()]);
    }
    EXPECT_EQ(got["state_ids"].size(), got["states"].size());
  }
}

TEST(Generate, WritesRecordedSamplesOneObjectPerLine) {
  const TemporaryFolder folder;
  const json golden = read_golden("grammar/v41_a40_d40_s1.json.gz");
  const json& samples = golden["samples"]["200"];
  const Outcome outcome = run(std::vector<std::string>{"generate", "--length", "200", "--stream", "reference",
                                                       "--split", "reference", "--start", "0", "--count", "20",
                                                       "--format", "jsonl", "--out", folder.file("s.jsonl")} +
                              grammar_options(golden["config"]));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  std::istringstream lines(whole_file(folder.file("s.jsonl")));
  std::string line;
  for (size_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    const json row = json::parse(line);
    EXPECT_EQ(row.size(), 3U) << "a bare sequence has index, classes and states";
    EXPECT_EQ(row["index"], i);
    ASSERT_EQ(samples["idx"][i], i);
    EXPECT_EQ(row["classes"], samples["class_seq"][i]);
    EXPECT_EQ(row["states"], samples["state_ids"][i]);
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(Generate, PrintsOnlyRecordedDigest) {
  const json golden = read_golden("grammar/train200k_v41_a40_d40_s1.json");
  const Outcome outcome =
      run({"generate", "--vocab", "41", "--ambiguities", "40", "--depth", "40", "--seed", "1", "--length", "200",
           "--stream", "reference", "--split", "reference", "--count", "1000", "--digest"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, golden["checkpoints"][0]["sha256_canon"].get<std::string>() + "\n");
}

TEST(Generate, TrainSplitMatchesPublishedSamples) {
  const std::vector<std::string> base = std::vector<std::string>{"generate", "--count", "50", "--digest"} + kSmall;
  const std::vector<std::string> train = {"--split", "train"}, published = {"--split", "reference"},
                                 test = {"--split", "test"};
  EXPECT_EQ(run(base + train).out, run(base + published).out);
  EXPECT_NE(run(base + train).out, run(base + test).out);
}

TEST(Generate, WritesGapsAndWrongSymbolsIfTaskHasThem) {
  const Outcome blank = run(std::vector<std::string>{"generate", "--task", "2", "--count", "3", "--out", "-"} + kSmall);
  const Outcome wrong = run(
      std::vector<std::string>{"generate", "--task", "3", "--gap-start", "0", "--count", "3", "--out", "-"} + kSmall);
  ASSERT_EQ(blank.code, 0) << blank.err;
  ASSERT_EQ(wrong.code, 0) << wrong.err;
  const json a = json::parse(blank.out.substr(0, blank.out.find('\n')));
  EXPECT_EQ(a["gaps"].size(), a["classes"].size());
  EXPECT_FALSE(a.contains("wrong"));
  for (const auto& gap : a["gaps"]) {
    EXPECT_GE(gap, 1);
    EXPECT_LE(gap, 10);
  }
  const json b = json::parse(wrong.out.substr(0, wrong.out.find('\n')));
  size_t frames = 0;
  for (const auto& gap : b["gaps"]) frames += gap.get<size_t>();
  EXPECT_GT(frames, 0U);
  EXPECT_EQ(b["wrong"].size(), frames);
}

TEST(Ceiling, PrintsAccuracyErrorAndSamplesAsOneObject) {
  const Outcome outcome = run({"ceiling", "--task", "1", "--vocab", "41", "--ambiguities", "40", "--depth", "40",
                               "--seed", "1", "--samples", "200", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json got = json::parse(outcome.out);
  EXPECT_NEAR(got["ceiling"].get<double>(), 0.995, 0.002);
  EXPECT_EQ(got["samples"], 200);
  EXPECT_GT(got["stderr"].get<double>(), 0);
  EXPECT_LT(got["stderr"].get<double>(), 0.002);
  EXPECT_EQ(got["by_position"].size(), 200U);
}

TEST(Ceiling, IsThatOfAnyKind) {
  const json copying = json::parse(run(words("ceiling --kind copying --length 4 --samples 20 --json -")).out);
  EXPECT_DOUBLE_EQ(copying["ceiling"].get<double>(), 1);
  EXPECT_TRUE(copying["by_position"][0].is_null()) << "the first half is not asked for";
  EXPECT_DOUBLE_EQ(copying["by_position"][7].get<double>(), 1);
  const auto bound = [](const std::string& more) {
    const Outcome done = run(words("ceiling --kind tracking --samples 50 --json - " + more));
    EXPECT_EQ(done.code, 0) << done.err;
    return json::parse(done.out)["bound"].get<double>();
  };
  EXPECT_LT(bound("--at 0"), bound("--set task.missing=30"));
  EXPECT_EQ(bound(""), bound("--set task.missing=30")) << "the default";
  EXPECT_LT(bound("--set task.missing=30"), bound("--at 90"));
  const Outcome text = run(words("ceiling --kind tracking --samples 50"));
  EXPECT_NE(text.out.find("no causal model has less"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("ccuracy"), std::string::npos) << text.out;
}

TEST(Show, ShowsSamplesOfAnyKind) {
  const Outcome copying = run(words("show --kind copying --length 2 --set task.symbols=3 --index 5"));
  EXPECT_EQ(copying.code, 0) << copying.err;
  EXPECT_EQ(copying.out.find("sample 5 of split test, task copying, 4 frames\n"), 0U) << copying.out;
  EXPECT_NE(copying.out.find("1.000"), std::string::npos) << copying.out;
  const Outcome tracking = run(words("show --kind tracking --elements 3 --split train"));
  EXPECT_EQ(tracking.code, 0) << tracking.err;
  for (const char* word : {"wanted", "estimate", "s.d.", "… 47 more (--from 3)"})
    EXPECT_NE(tracking.out.find(word), std::string::npos) << tracking.out;
}

TEST(Ceiling, ComparesWithBaselinesOnRequest) {
  const Outcome outcome = run(
      std::vector<std::string>{"ceiling", "--samples", "50", "--baselines", "--train-samples", "200", "--json", "-"} +
      kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json b = json::parse(outcome.out)["baselines"];
  EXPECT_DOUBLE_EQ(b["chance"].get<double>(), 0.1);
  EXPECT_EQ(b["n_gram"].size(), 8U);
  EXPECT_GE(b["n"].get<int>(), 2);
  EXPECT_GT(b["n_gram_stderr"].get<double>(), 0);
  EXPECT_GT(b["table_learner"].get<double>(), b["majority"].get<double>());
}

TEST(Ceiling, IncludesKlForPredictObjective) {
  const std::vector<std::string> ask = {"ceiling", "--task", "1", "--samples", "50", "--json", "-"};
  const json state = json::parse(run(ask + kSmall).out);
  const json predict = json::parse(run(ask + std::vector<std::string>{"--objective", "predict"} + kSmall).out);
  EXPECT_FALSE(state.contains("kl"));
  EXPECT_GT(predict["kl"].get<double>(), 0);
  EXPECT_LE(predict["kl_bound"].get<double>(), predict["kl"].get<double>() + 1e-12);
  EXPECT_LT(predict["ceiling"].get<double>(), state["ceiling"].get<double>()) << "what follows is not determined";
  EXPECT_EQ(predict["by_position"].size(), 199U);
  EXPECT_TRUE(exits(run(ask + std::vector<std::string>{"--objective", "predict", "--baselines"} + kSmall), 2,
                    "[ceiling --baselines] "));
}

TEST(Ceiling, BaselinesRespectSplitAndStart) {
  const auto grams = [](const std::vector<std::string>& options) {
    const Outcome outcome = run(
        std::vector<std::string>{"ceiling", "--samples", "10", "--baselines", "--train-samples", "30", "--json", "-"} +
        options + kSmall);
    return json::parse(outcome.out)["baselines"]["n_gram"];
  };
  EXPECT_NE(grams({}), grams({"--split", "valid"}));
  EXPECT_NE(grams({}), grams({"--start", "10"}));
  EXPECT_EQ(grams({}), grams({"--split", "test", "--start", "0"}));
}

TEST(Ceiling, IsLabelledUpperBoundIfNoiseHidesSymbols) {
  const auto text = [](const char* noise) {
    return run(std::vector<std::string>{"ceiling", "--samples", "5", "--noise", noise} + kSmall).out;
  };
  EXPECT_TRUE(text("1").starts_with("ceiling")) << text("1");
  const std::string predict =
      run(std::vector<std::string>{"ceiling", "--samples", "5", "--noise", "2", "--objective", "predict"} + kSmall).out;
  for (const std::string& out : {text("1.5"), predict}) {
    EXPECT_TRUE(out.starts_with("upper bound")) << out;
    EXPECT_EQ(out.find("exact"), std::string::npos) << out;
    EXPECT_EQ(out.find("ceiling"), std::string::npos) << out;
  }
}

TEST(EveryCommand, PrintsOnlyItsObjectToStandardOutput) {
  for (const auto& command : std::vector<std::vector<std::string>>{
           std::vector<std::string>{"grammar", "--json", "-"} + kSmall,
           std::vector<std::string>{"ceiling", "--samples", "20", "--json", "-"} + kSmall,
           {"bench", "data", "--samples", "200", "--repeats", "1", "--json", "-"}}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(json::accept(outcome.out)) << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(BenchData, MeasuresEveryKindOrTheTaskOfAConfig) {
  const std::vector<std::string> bench = {"bench", "data", "--repeats", "1", "--json", "-"};
  const json all = json::parse(run(bench + std::vector<std::string>{"--samples", "100"}).out);
  for (const char* kind : {"copying", "dyck", "signals", "tracking"})
    EXPECT_GT(all.at(std::string(kind) + "_frames_per_s").at("value"), 0) << kind;
  const json one = json::parse(run(bench + std::vector<std::string>{"--config", "signals"}).out);
  EXPECT_GT(one.at("signals_frames_per_s").at("value"), 0);
  EXPECT_EQ(one.size(), 2) << "and the version: " << one;
}

TEST(EveryCommand, GivesSameOutputForAnyNumberOfThreads) {
  for (const auto& command : std::vector<std::vector<std::string>>{
           std::vector<std::string>{"generate", "--task", "3", "--count", "300", "--out", "-"} + kSmall,
           std::vector<std::string>{"generate", "--stream", "direct", "--count", "300", "--digest"} + kSmall,
           std::vector<std::string>{"ceiling", "--task", "2", "--samples", "40", "--length", "30", "--json", "-"} +
               kSmall}) {
    const std::string one = run(command + std::vector<std::string>{"--threads", "1"}).out;
    EXPECT_FALSE(one.empty());
    EXPECT_EQ(run(command + std::vector<std::string>{"--threads", "3"}).out, one);
  }
}

TEST(Automaton, GivesSameSequencesAfterJsonRoundTrip) {
  const TemporaryFolder folder;
  ASSERT_EQ(run(std::vector<std::string>{"grammar", "--json", folder.file("a.json")} + kSmall).code, 0);
  const std::vector<std::string> mine = {"--automaton", folder.file("a.json")};
  const std::vector<std::string> digest = {"generate", "--count", "100", "--digest"};
  EXPECT_EQ(run(digest + mine).out, run(digest + kSmall).out);
  const json built = json::parse(run(std::vector<std::string>{"grammar", "--json", "-"} + kSmall).out);
  const json read = json::parse(run(std::vector<std::string>{"grammar", "--json", "-"} + mine).out);
  for (const char* key :
       {"states", "start_states", "transitions", "state_ids", "symbols", "vocab", "ambiguities", "depth"}) {
    EXPECT_EQ(read[key], built[key]) << key;
  }
  for (const char* command : {"show", "ceiling"}) EXPECT_EQ(run(std::vector<std::string>{command} + mine).code, 0);
}

}  // namespace
}  // namespace sb::test
