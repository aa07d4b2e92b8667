// Commands of the modules with libtorch that look and do not train.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program_run.h"

namespace sb::test {
namespace {

using nlohmann::json;

const std::string configs = SB_SOURCE_DIR "/configs/";

json object_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

TEST(Models, ShowsEquationsAndSwitchesOfOneModel) {
  const Outcome outcome = run({"models", "mamba2", "--width", "64", "--set", "d_state=32"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "S_t = ", "complementary", "on or off", "an integer in 1..4096", "parameters"));
  const json one = object_of({"models", "mamba2", "--width", "64", "--set", "model.d_state=32", "--json", "-"});
  for (const auto& s : one["models"][0]["switches"]) {
    if (s["name"] == "d_state") {
      EXPECT_EQ(s["value"], "32");
      EXPECT_EQ(s["default"], "128");
    }
  }
  EXPECT_EQ(run({"models", "mambo"}).code, 2);
  EXPECT_EQ(run({"models", "--set", "d_sate=3"}).code, 2);
  EXPECT_EQ(run({"models", "--set", "mlp=3"}).code, 2);
}

TEST(Models, UnknownSwitchOfModelListsItsSwitches) {
  const json gla = object_of({"models", "gla", "--json", "-"});
  ASSERT_FALSE(gla["models"][0]["switches"].empty());
  for (const char* lacking : {"foo=3", "model.foo=3", "d_state=3"}) {
    const Outcome outcome = run({"models", "gla", "--set", lacking});
    EXPECT_EQ(outcome.code, 2) << lacking;
    EXPECT_EQ(outcome.out, "") << lacking;
    EXPECT_TRUE(has(outcome.err, "[models --set] gla has no switch"));
    for (const auto& s : gla["models"][0]["switches"]) EXPECT_TRUE(has(outcome.err, s["name"].get<std::string>()));
  }
}

std::string refused(const std::vector<std::string>& arguments) {
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_EQ(outcome.out, "");
  return outcome.err;
}

TEST(Models, RejectsConflictingOptions) {
  EXPECT_EQ(refused({"models", "--match-params", "80k", "--width", "64"}),
            "[models --width] cannot be combined with --match-params\n");
  EXPECT_EQ(refused({"models", "--match-state", "80k", "--probe"}),
            "[models --probe] cannot be combined with --match-state\n");
  for (const char* option : {"--width", "--layers", "--inputs", "--outputs", "--length"})
    EXPECT_EQ(refused({"models", "gru", "--probe", option, "3"}),
              std::string("[models ") + option + "] cannot be combined with --probe\n");
}

TEST(Models, RejectsInvalidSizesWithReason) {
  EXPECT_EQ(refused({"models", "gla", "--width", "30"}), "[model.heads] width 30 is not divisible by 4 heads\n");
  EXPECT_TRUE(has(refused({"models", "retnet", "--width", "36", "--json", "-"}), "[model."));
  const Outcome all = run({"models", "--width", "30"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(has(all.out, "gla: [model.heads] width 30"));
}

TEST(Models, ReportsSwitchRangePerModel) {
  EXPECT_EQ(refused({"models", "mamba2", "--set", "d_state=-1"}),
            "[model.d_state] expected an integer in 1..4096, got '-1'\n");
  const std::string any = refused({"models", "--set", "d_state=-1"});
  EXPECT_TRUE(has(any, "an integer in 1..4096 (mamba, mamba2, log_linear_mamba2), ", " (s4)"));
}

TEST(Models, UnknownSwitchListsValidOnesNearestFirst) {
  EXPECT_TRUE(has(refused({"models", "--set", "d_sate=3"}), "[model.d_sate] unknown switch, expected d_state, "));
  const TemporaryFolder folder;
  const std::string err = refused(
      {"train", "example", "--set", "model.name=mamba2", "--set", "model.zzzzzzz=3", "--out", folder.file("runs")});
  EXPECT_TRUE(has(err, "[model] unknown key 'zzzzzzz', expected ", "heads", "d_state", "complementary", "a_min",
                  "short_conv", "output_gate", "mlp"));
  EXPECT_TRUE(lacks(err, "rope_base")) << "not a switch of mamba2";
}

TEST(Models, MatchFindsNearestWidth) {
  const std::vector<std::string> sizes = {"--layers", "2", "--inputs", "13", "--outputs", "145"};
  for (const auto& [option, field, target] : {std::tuple{"--match-params", "parameters", 80e3},
                                              {"--match-state", "state_elements", 5000.0},
                                              {"--match-flops", "flops_per_token", 2e6}}) {
    const std::string text = std::to_string(static_cast<int64_t>(target));
    const json found = object_of(std::vector<std::string>{"models", option, text, "--json", "-"} + sizes);
    for (const auto& model : found["models"]) {
      const std::string name = model["name"];
      if ((name == "transformer" || name == "fox") && std::string(option) == "--match-state") {
        EXPECT_FALSE(model["found"].get<bool>()) << "a cache is no state";
        continue;
      }
      ASSERT_TRUE(model["found"].get<bool>()) << name;
      const double off = std::abs(model["value"].get<double>() - target);
      EXPECT_NEAR(model["ratio"].get<double>(), model["value"].get<double>() / target, 1e-12);
      const int width = model["width"];
      if (name != "gru" && name != "gla") continue;
      for (const int other : {width - 4, width - 1, width + 1, width + 4}) {
        if (other < 1) continue;
        const Outcome there =
            run(std::vector<std::string>{"models", name, "--width", std::to_string(other), "--json", "-"} + sizes);
        if (there.code == 2) continue;  // no such network
        const json beside = json::parse(there.out);
        EXPECT_LE(off, std::abs(beside["models"][0][field].get<double>() - target)) << name << " " << other;
      }
    }
  }
  EXPECT_EQ(object_of({"models", "gru", "--match-params", "3.58M", "--json", "-"})["models"][0]["width"], 256);
  EXPECT_EQ(run({"models", "--match-params", "many"}).code, 2);
  const std::vector<std::string> command = {"models", "--match-params", "80k", "--match-step", "16", "--json", "-"};
  const json steps = object_of(command + sizes);
  for (const auto& model : steps["models"]) {
    if (model["found"].get<bool>()) {
      EXPECT_EQ(model["width"].get<int>() % 16, 0) << model["name"];
    }
  }
  EXPECT_EQ(refused({"models", "--match-step", "16"}),
            "[models --match-step] requires --match-params, --match-state or --match-flops\n");
  EXPECT_EQ(run({"models", "--match-params", "80k", "--match-state", "5"}).code, 2);
}

TEST(Models, RejectsSizesWithoutMatchingWidth) {
  const std::vector<std::string> sizes = {"--layers", "2", "--inputs", "13", "--outputs", "145"};
  const Outcome one = run(std::vector<std::string>{"models", "gated_delta_product", "--match-params", "900"} + sizes);
  EXPECT_EQ(one.code, 2) << one.out;
  EXPECT_TRUE(one.err.starts_with("[models --match-params] gated_delta_product: the nearest is width ")) << one.err;
  EXPECT_TRUE(has(one.err, "expected 900 parameters within 10 %\n"));
  const Outcome none = run(std::vector<std::string>{"models", "--match-params", "1"} + sizes);
  EXPECT_EQ(none.code, 2) << none.out;
  EXPECT_EQ(none.err, "[models --match-params] no model has 1 parameters within 10 %; try another size\n");
  // Those that have no such width are named beside those that have one, as a suite would refuse them.
  const json some = object_of(std::vector<std::string>{"models", "--match-params", "1000", "--json", "-"} + sizes);
  size_t found = 0;
  for (const auto& model : some["models"]) {
    if (!model["found"].get<bool>()) {
      EXPECT_FALSE(model.contains("width"));
      EXPECT_TRUE(has(model["reason"].get<std::string>(), "expected 1,000 parameters within 10 %"));
      continue;
    }
    ++found;
    EXPECT_NEAR(model["ratio"].get<double>(), 1, .1) << model["name"];
  }
  EXPECT_GT(found, 0U);
  EXPECT_LT(found, some["models"].size());
}

TEST(Suite, ListEstimatesTimeFromShippedRates) {
  const TemporaryFolder folder;
  for (const char* jobs : {"1", "2"}) {
    const Outcome outcome = run({"suite", "quick", "--list", "--set", "train.device=cpu", "--out", folder.file("none"),
                                 "--threads", "2", "--jobs", jobs});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(lacks(outcome.out, "time unknown"));
    EXPECT_TRUE(has(outcome.out, "  estimate "));
    EXPECT_TRUE(has(outcome.err, *jobs == '1' ? ", one after another (" : ", 2 at a time (", "configs/rates.toml"));
  }
}

TEST(Experiments, SweepRunsSixCombinationsOfRateAndWarmup) {
  const TemporaryFolder folder;
  const auto runs = [&](const std::vector<std::string>& more) {
    const Outcome outcome = run(std::vector<std::string>{"experiments", "run", "task3", "--scale", "quick", "--list",
                                                         "--out", folder.file("none")} +
                                more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::count(outcome.out.begin(), outcome.out.end(), '\n');
  };
  const auto plain = runs({});
  EXPECT_GT(plain, 0);
  EXPECT_EQ(runs({"--sweep"}), 6 * plain);
}

TEST(Config, KeysListsSwitchesOfEveryModel) {
  const json keys = object_of({"config", "keys", "--json", "-"});
  size_t mamba2 = 0;
  for (const auto& key : keys) {
    EXPECT_FALSE(key["meaning"].get<std::string>().empty()) << key;
    mamba2 += key.contains("model") && key["model"] == "mamba2" ? 1 : 0;
  }
  EXPECT_EQ(mamba2, 7U);
  EXPECT_TRUE(has(run({"config", "keys"}).out, "model.householder_factors"));
}

TEST(Config, ShowListsRunsOfSuite) {
  const Outcome outcome = run({"config", "show", configs + "quick.toml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("# a suite 'quick' of 21 runs")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "task.number"));
  const json suite = object_of({"config", "show", configs + "quick.toml", "--json", "-"});
  EXPECT_EQ(suite["runs"].size(), 21U);
  EXPECT_EQ(suite["runs"][0]["model.name"], "gated_delta_product");
  EXPECT_TRUE(run({"config", "show", configs + "example.toml"}).out.starts_with("# run "));
}

TEST(Suite, IsRejectedByTrain) {
  EXPECT_TRUE(exits(run({"train", "quick"}), 2, "a suite; use `suite quick`"));
}

TEST(Suite, ListReportsDuplicateRunsAndFindsShippedBases) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("s.toml")) << "[suite]\nbase = 'cpu/base.toml'\n[grid]\nrun.label = ['one', 'two']\n";
  EXPECT_TRUE(exits(run({"suite", folder.file("s.toml"), "--list", "--out", folder.file("runs")}), 0,
                    "2 combinations are one run, the same with run.label = 'one'; run.label = 'two'",
                    "1 run, 1 missing"));
  EXPECT_EQ(run({"suite", "quick", "--list", "--set", "model.name=gla"}).code, 0);
}

TEST(Suite, ListReportsStartedRuns) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("s.toml"))
      << "[grid]\nrun.seed = [1, 2]\n[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n[task]\nlength = 10\n"
         "[model]\nname = 'gru'\nwidth = 16\nlayers = 1\n[train]\nbatch = 2\nupdates = 40\nwarmup = 1\n"
         "[eval]\nevery = 0\nvalid_samples = 2\ntest_samples = 2\nceiling_samples = 2\nbatch = 2\n";
  const std::vector<std::string> list = {"suite", folder.file("s.toml"), "--list", "--out", folder.file("runs")};
  const std::string id = run(list).out.substr(0, 16);
  const std::string begun = folder.file("runs") + "/" + id;
  std::filesystem::create_directories(begun);
  std::ofstream(begun + "/config.json") << "{}";
  std::ofstream(begun + "/checkpoint-00000012.safetensors") << "x";
  const Outcome outcome = run(list);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, id + "  begun, 12 of 40 updates"));
  EXPECT_TRUE(has(outcome.err, "2 runs, 1 begun, 1 missing"));
}

TEST(Suite, ReportsEverySwitchError) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("s.toml")) << "[grid]\nmodel.name = ['gla', 'mamba2']\n[model]\nlayers = 0\nd_state = -1\n"
                                          "a_min = 7\nmlp = 3\n";
  const std::string err = refused({"suite", folder.file("s.toml"), "--out", folder.file("runs")});
  EXPECT_TRUE(has(err, "[model.layers] ", "[model.d_state] gla has no such switch", "(1 of 2 runs)",
                  "[model.d_state] expected an integer in 1..4096, got '-1'", "[model.a_min] expected ",
                  "[model.mlp] expected 0, 1, 2 or 4, got '3'"));
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 5) << err;
}

TEST(Config, RecognizesSuiteFromPipe) {
  const std::string text = "[grid]\nrun.seed = [1, 2]\n";
  const auto piped = [&](const std::vector<std::string>& command) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    const Outcome outcome = run(command + std::vector<std::string>{"/dev/fd/" + std::to_string(ends[0])});
    ::close(ends[0]);
    return outcome;
  };
  EXPECT_TRUE(piped({"config", "show"}).out.starts_with("# a suite of 2 runs"));
  EXPECT_TRUE(exits(piped({"train"}), 2, "expected the config of one run, got a suite"));
}

TEST(Suite, SuggestsNearestShippedNames) {
  const auto said = [](const std::string& name) { return refused({"suite", name, "--list"}); };
  EXPECT_TRUE(said("quik").starts_with(
      "[suite FILE] no file or shipped config is called 'quik', did you mean quick?; shipped configs are in "))
      << said("quik");
  EXPECT_TRUE(has(said("task3"), ", did you mean cpu/task3, experiments/task3 or paper/task3?"));
  EXPECT_TRUE(has(said("nosuch"), "'nosuch', the nearest are "));
  EXPECT_LT(said("nosuch").size(), 300U) << "not all of them";
  EXPECT_EQ(refused({"train", "word_problem"}),
            "[train FILE] 'word_problem' is a kind of task, not a config; a config of two lines is enough: "
            "printf '[task]\\nkind = \"word_problem\"\\n' > word_problem.toml\n");
  EXPECT_EQ(said(SB_SOURCE_DIR "/results/quick.tar.gz"),
            "[suite FILE] expected a config, got an archive of runs, '" SB_SOURCE_DIR "/results/quick.tar.gz'\n");
  EXPECT_EQ(said(SB_SOURCE_DIR "/results"),
            "[suite FILE] expected a config, got a folder, '" SB_SOURCE_DIR "/results'\n");
}

TEST(Suite, BaseOfSuiteFromPipeRequiresFullPath) {
  const std::string text = "[suite]\nbase = 'mine.toml'\n";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  const std::string err = refused({"suite", "/dev/fd/" + std::to_string(ends[0]), "--list"});
  ::close(ends[0]);
  EXPECT_TRUE(has(err,
                  "[suite.base] no file 'mine.toml', expected one by its full path or among the shipped configs: a "
                  "suite from a pipe has no folder"));
}

TEST(Help, DescribesConfigCommand) {
  const std::string help = run({"--help"}).out;
  const size_t at = help.find("  config ");
  ASSERT_NE(at, std::string::npos) << help;
  const std::string line = help.substr(at, help.find('\n', at) - at);
  EXPECT_TRUE(lacks(line, "Measurements"));
  EXPECT_TRUE(has(line, "Show a resolved config"));
}

TEST(Suite, ReportsAllErrorsAtOnceAndWritesNothing) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("s.toml")) << "[grid]\nmodel.name = ['gla', 'retnet']\nmodel.width = [34, 36]\n"
                                          "[train]\ndevice = 'cuda'\nprecision = 'fp32'\n"
                                          "[[override]]\nwhen = {model.width = 35}\nskip = true\n";
  const Outcome outcome = run({"suite", folder.file("s.toml"), "--out", folder.file("runs")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 4) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "[override] no run has model.width = 35, the nearest is 34", "(4 of 4 runs)", "got 9"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("runs")));
}

}  // namespace
}  // namespace sb::test
