// Commands of the rooms with libtorch that look and do not train.
#include <gtest/gtest.h>

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

TEST(Models, OneOfThemShowsEquationsAndSwitches) {
  const Outcome outcome = run({"models", "mamba2", "--width", "64", "--set", "d_state=32"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* piece : {"S_t = ", "complementary", "on or off", "an integer in 1..4096", "parameters"})
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << piece << "\n" << outcome.out;
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

TEST(Models, ASwitchThatAModelLacksIsAnsweredWithThoseItHas) {
  const json gla = object_of({"models", "gla", "--json", "-"});
  ASSERT_FALSE(gla["models"][0]["switches"].empty());
  for (const char* lacking : {"foo=3", "model.foo=3", "d_state=3"}) {
    const Outcome outcome = run({"models", "gla", "--set", lacking});
    EXPECT_EQ(outcome.code, 2) << lacking;
    EXPECT_EQ(outcome.out, "") << lacking;
    EXPECT_NE(outcome.err.find("[models --set] gla has no switch"), std::string::npos) << outcome.err;
    for (const auto& s : gla["models"][0]["switches"])
      EXPECT_NE(outcome.err.find(s["name"].get<std::string>()), std::string::npos) << s["name"] << ": " << outcome.err;
  }
}

TEST(Models, TheWidthThatMatchesIsTheNearestOfAll) {
  const std::vector<std::string> sizes = {"--layers", "2", "--inputs", "13", "--outputs", "145"};
  for (const auto& [option, field, target] : {std::tuple{"--match-params", "parameters", 80e3},
                                              {"--match-state", "state_elements", 5000.0},
                                              {"--match-flops", "flops_per_token", 2e6}}) {
    const std::string text = std::to_string(static_cast<int64_t>(target));
    const json found = object_of(std::vector<std::string>{"models", option, text, "--json", "-"} + sizes);
    for (const auto& model : found["models"]) {
      const std::string name = model["name"];
      if (name == "transformer" && std::string(option) == "--match-state") {
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
        const json beside = object_of(
            std::vector<std::string>{"models", name, "--width", std::to_string(other), "--json", "-"} + sizes);
        if (!beside["models"][0]["runs"].get<bool>()) continue;
        EXPECT_LE(off, std::abs(beside["models"][0][field].get<double>() - target)) << name << " " << other;
      }
    }
  }
  EXPECT_EQ(object_of({"models", "gru", "--match-params", "3.58M", "--json", "-"})["models"][0]["width"], 256);
  EXPECT_EQ(run({"models", "--match-params", "many"}).code, 2);
  EXPECT_EQ(run({"models", "--match-params", "80k", "--match-state", "5"}).code, 2);
}

TEST(Config, KeysListTheSwitchesOfEveryModel) {
  const json keys = object_of({"config", "keys", "--json", "-"});
  size_t mamba2 = 0;
  for (const auto& key : keys) {
    EXPECT_FALSE(key["meaning"].get<std::string>().empty()) << key;
    mamba2 += key.contains("model") && key["model"] == "mamba2" ? 1 : 0;
  }
  EXPECT_EQ(mamba2, 7U);
  EXPECT_NE(run({"config", "keys"}).out.find("model.householder_factors"), std::string::npos);
}

TEST(Config, ShowOfASuiteSaysSoAndListsItsRuns) {
  const Outcome outcome = run({"config", "show", configs + "quick.toml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("# a suite 'quick' of 21 runs")) << outcome.out;
  EXPECT_NE(outcome.out.find("task.number"), std::string::npos);
  const json suite = object_of({"config", "show", configs + "quick.toml", "--json", "-"});
  EXPECT_EQ(suite["runs"].size(), 21U);
  EXPECT_EQ(suite["runs"][0]["model.name"], "gated_delta_product");
  EXPECT_TRUE(run({"config", "show", configs + "example.toml"}).out.starts_with("# run "));
}

TEST(Suite, GivenToTrainIsNamedAsOne) {
  const Outcome outcome = run({"train", "quick"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("a suite; use `suite quick`"), std::string::npos) << outcome.err;
}

TEST(Suite, ListSaysWhatIsOneRunAndFindsShippedBases) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("s.toml")) << "[suite]\nbase = 'small/base.toml'\n[grid]\nrun.label = ['one', 'two']\n";
  const Outcome outcome = run({"suite", folder.file("s.toml"), "--list", "--out", folder.file("runs")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("2 combinations are one run: labels one, two"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("1 run, 1 missing"), std::string::npos) << outcome.err;
  EXPECT_EQ(run({"suite", "quick", "--list", "--set", "model.name=gla"}).code, 0);
}

TEST(Help, DescribesConfigAsWhatItIs) {
  const std::string help = run({"--help"}).out;
  const size_t at = help.find("  config ");
  ASSERT_NE(at, std::string::npos) << help;
  const std::string line = help.substr(at, help.find('\n', at) - at);
  EXPECT_EQ(line.find("Measurements"), std::string::npos) << line;
  EXPECT_NE(line.find("Configs"), std::string::npos) << line;
}

TEST(Suite, RefusesAllFaultsAtOnceAndLeavesNothing) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("s.toml")) << "[grid]\nmodel.name = ['gla', 'retnet']\nmodel.width = [34, 36]\n"
                                          "[train]\ndevice = 'cuda'\nprecision = 'fp32'\n"
                                          "[[override]]\nwhen = {model.width = 35}\nskip = true\n";
  const Outcome outcome = run({"suite", folder.file("s.toml"), "--out", folder.file("runs")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 4) << outcome.err;
  for (const char* piece : {"[override] no run has model.width = 35, the nearest is 34", "(4 of 4 runs)", "got 9"})
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << piece << "\n" << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.file("runs")));
}

}  // namespace
}  // namespace sb::test
