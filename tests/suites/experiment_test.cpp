#include "suites/experiment.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "../config/model_rules.h"
#include "config/data.h"

namespace sb::test {
namespace {

const std::string configs = SB_SOURCE_DIR "/configs";

ModelRules shipped_rules() {
  ModelRules out = rules();
  out.shipped = configs;
  return out;
}

std::set<std::string> ids(const Suite& suite) {
  std::set<std::string> out;
  for (const auto& run : suite.runs) out.insert(run.run_id);
  return out;
}

Suite at(const std::string& name, const std::string& scale, bool sweep = false,
         const std::vector<std::string>& set = {}) {
  const auto all = read_catalogue(configs);
  return experiment_suite(find_experiment(all, name, "test"), {scale, sweep}, set, shipped_rules());
}

TEST(Experiments, CatalogueHasEveryExperiment) {
  std::vector<std::string> names;
  for (const auto& each : read_catalogue(configs)) {
    names.push_back(each.name);
    EXPECT_FALSE(each.claims.empty()) << each.name;
    EXPECT_TRUE(each.sentence.ends_with("?")) << each.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"main_table",
                                             "task1_complexity",
                                             "task1_size",
                                             "task2",
                                             "task3",
                                             "task4",
                                             "capacity",
                                             "channel_mixing",
                                             "complementary_gating",
                                             "counters",
                                             "curriculum",
                                             "dyck",
                                             "fast_forgetting",
                                             "flip_flop",
                                             "mlp_or_mixing",
                                             "mlp_or_mixing_flops",
                                             "newer_mixers",
                                             "pcfg",
                                             "published_faults",
                                             "recall",
                                             "reproduction",
                                             "signals",
                                             "text",
                                             "tracking",
                                             "word_problems"}));
}

TEST(Experiments, ResolveAtEveryScaleAndStateTheirCost) {
  const auto number = [](std::string text) {
    std::erase(text, ',');
    return std::stod(text);
  };
  for (const auto& experiment : read_catalogue(configs)) {
    const std::string text = read_config_text(experiment.path);
    for (const auto& scale : experiment_scales()) {
      const Suite suite = at(experiment.name, scale);
      EXPECT_EQ(suite.merged, 0U) << experiment.name << " at " << scale;
      double updates = 0, frames = 0;
      for (const auto& run : suite.runs) {
        updates += static_cast<double>(run.values.train.updates);
        frames += static_cast<double>(run.values.train.updates * run.values.train.batch) *
                  size_of_task(run.values).train_frames;
      }
      const std::regex line("# Cost at " + scale +
                            ": ([0-9,]+) runs, ([0-9,]+) updates, ([0-9.]+) (M|G) training frames\\.\n");
      std::smatch found;
      ASSERT_TRUE(std::regex_search(text, found, line)) << experiment.name << " at " << scale;
      EXPECT_EQ(number(found[1]), static_cast<double>(suite.runs.size())) << experiment.name << " at " << scale;
      EXPECT_EQ(number(found[2]), updates) << experiment.name << " at " << scale;
      EXPECT_NEAR(number(found[3]) * (found[4] == "G" ? 1e9 : 1e6), frames, 0.01 * frames)
          << experiment.name << " at " << scale;
    }
  }
}

TEST(Experiments, SweepHasSixCombinations) {
  for (const auto& experiment : read_catalogue(configs))
    for (const auto& scale : experiment_scales()) {
      const auto once = ids(at(experiment.name, scale)), swept = ids(at(experiment.name, scale, true));
      // At paper GLA has no rate of its own above 2e-3, and the reproduction's Mamba one rate for 1e-3 and 4e-3.
      const Suite suite = at(experiment.name, scale);
      const auto fewer = static_cast<size_t>(
          scale != "paper" ? 0 : std::count_if(suite.runs.begin(), suite.runs.end(), [&](const auto& run) {
            const std::string& model = run.values.model.name;
            return model == "gla" || (model == "mamba" && experiment.name == "reproduction");
          }));
      EXPECT_EQ(swept.size(), 6 * once.size() - 2 * fewer) << experiment.name << " at " << scale;
      for (const auto& id : once) EXPECT_TRUE(swept.contains(id)) << experiment.name << " at " << scale;
    }
}

TEST(Experiments, QuickMainTableEqualsMakeBench) {
  ModelRules with = shipped_rules();
  EXPECT_EQ(ids(at("main_table", "quick")), ids(read_suite(configs + "/quick.toml", {}, with)));
}

TEST(Experiments, SmallUsesOneSizeAndQuarterOfPaperStates) {
  const Suite suite = at("main_table", "small");
  EXPECT_EQ(suite.runs.size(), 9U * 4 + 8 * 4 + 8 * 3);
  ASSERT_FALSE(suite.matched.empty());
  for (const auto& network : suite.matched) EXPECT_EQ(network.target, 4.7e6);
  for (const auto& run : suite.runs) {
    const RunConfig& c = run.values;
    EXPECT_EQ(size_of_task(c).answers, 401);
    EXPECT_EQ(c.model.layers, 8);
    EXPECT_EQ(c.model.width % 8, 0);
    EXPECT_EQ(c.train.updates, 3125);
    EXPECT_EQ(c.train.lr, c.model.name == "linear_attn" ? 5e-4 : 4e-3);
    EXPECT_EQ(c.train.warmup, 476);
    EXPECT_EQ(c.train.batch, 64);
    EXPECT_EQ(c.task.length, 200);
    EXPECT_EQ(c.train.device, DeviceKind::cuda);
    EXPECT_EQ(c.train.precision, Precision::amp);
  }
}

TEST(Experiments, PaperScaleUsesPaperWidths) {
  const std::map<std::string, int> widths = {
      {"delta_net", 1296},          {"gla", 1152},       {"mamba", 1296}, {"mamba2", 1296}, {"gated_delta_net", 1152},
      {"gated_delta_product", 768}, {"transformer", 768}};
  for (const auto& run : at("main_table", "paper").runs) {
    const auto& model = run.values.model;
    const bool smaller = run.values.task.task.number == 2 && model.name.starts_with("mamba");
    EXPECT_EQ(model.width, smaller ? 1152 : widths.at(model.name)) << model.name;
  }
  std::set<int> sizes;
  for (const auto& run : at("task1_size", "paper").runs) sizes.insert(run.values.model.width);
  EXPECT_EQ(sizes, (std::set<int>{256, 384, 512, 648, 768, 960, 1024, 1152, 1280, 1296}));
}

TEST(Experiments, TaskRunsAreSubsetOfMainTable) {
  for (const char* scale : {"small", "paper"}) {
    const auto table = ids(at("main_table", scale));
    for (const char* name : {"task2", "task3", "task4"})
      for (const auto& id : ids(at(name, scale))) EXPECT_TRUE(table.contains(id)) << name << " at " << scale;
  }
}

// Equal keys are one run: the older models of a comparison are not trained again.
TEST(Experiments, NewerMixersShareOlderRunsWithMainTable) {
  const std::set<std::string> older = {"gated_delta_net", "mamba2", "gla", "transformer", "linear_attn"};
  for (const char* scale : {"small", "paper"}) {
    const auto table = ids(at("main_table", scale));
    std::set<std::string> newer;
    for (const auto& run : at("newer_mixers", scale).runs) {
      const std::string& model = run.values.model.name;
      if (!older.contains(model)) newer.insert(model);
      EXPECT_EQ(table.contains(run.run_id), older.contains(model)) << model << " at " << scale;
    }
    EXPECT_EQ(newer.size(), 9U) << scale;
  }
}

TEST(Experiments, KindsDropTheGrammarOfTheScale) {
  for (const auto& run : at("dyck", "quick").runs) EXPECT_FALSE(run.canonical.find("vocab") != std::string::npos);
  const auto all = read_catalogue(configs);
  const std::string line = error_line([&] {
    experiment_suite(find_experiment(all, "dyck", "test"), {"quick", false}, {"grammar.vocab=5"}, shipped_rules());
  });
  EXPECT_TRUE(line.starts_with("[grammar.vocab] has no effect with task.kind = dyck; ")) << line;
}

TEST(Experiments, QueueSelectsExistingGpuRuns) {
  const auto all = read_catalogue(configs);
  const auto steps = read_queue(configs, all);
  ASSERT_GE(steps.size(), 12U);
  std::vector<size_t> counts;
  size_t set = 0;
  for (const auto& step : steps) {
    Suite suite = at(step.experiment, step.scale, false, step.set);
    if (!step.where.empty()) keep_where(suite, step.where, "queue");
    counts.push_back(suite.runs.size());
    for (const auto& run : suite.runs) EXPECT_EQ(run.values.train.device, DeviceKind::cuda) << step.title;
    EXPECT_FALSE(suite.runs.empty()) << step.title;
    if (step.set == std::vector<std::string>{"train.lr=8e-3"}) {
      ++set;
      EXPECT_EQ(suite.runs.size(), 7U * 4) << step.title;
      for (const auto& run : suite.runs) EXPECT_EQ(run.values.train.lr, 8e-3) << step.title;
    }
  }
  EXPECT_EQ(set, 1U) << "the step with settings of its own";
  EXPECT_EQ(counts[0], 7U + 2) << "the reproduction";
  EXPECT_EQ(counts[1], 7U) << "the same models, corrected";
  EXPECT_EQ(counts[4], 9U * 4) << "task 1 at small";
}

TEST(Experiments, ReportInvalidFilesInOneLine) {
  const auto fault = [](const std::string& text) { return error_line([&] { parse_experiment(text, "x.toml"); }); };
  EXPECT_EQ(fault("[grid]\n"), "[experiment] expected a section [experiment], x.toml:1:1");
  EXPECT_EQ(fault("[experiment]\ntitle = 'a'\n"), "[experiment] expected a title and a sentence, x.toml:1:2");
  EXPECT_EQ(fault("[experiment]\ntitel = 'a'\n"), "[experiment] unknown key 'titel', did you mean title?, x.toml:2:1");
  EXPECT_EQ(fault("[experiment]\ntitle = 1\n").substr(0, 61),
            "[experiment.title] expected a text of at most 1000 bytes, got");
  EXPECT_EQ(fault("[experiment]\nclaims = 3\n"), "[experiment.claims] expected a list of texts, got 3, x.toml:2:10");
  const auto all = read_catalogue(configs);
  const auto queue = [&](const std::string& text) { return error_line([&] { parse_queue(text, "q.toml", all); }); };
  EXPECT_EQ(queue(""), "[queue] expected 1 to 1000 blocks [[step]], got 0, q.toml:1:1");
  EXPECT_EQ(queue("[[step]]\ntitle = 'a'\nexperiment = 'task2'\nscale = 'tiny'\n"),
            "[step.scale] expected quick, small or paper, got 'tiny', q.toml:4:9");
  EXPECT_NE(queue("[[step]]\ntitle = 'a'\nexperiment = 'task22'\n").find("did you mean task2?, q.toml:3:14"),
            std::string::npos);
  EXPECT_NE(error_line([] { read_catalogue("/nowhere"); }).find("[experiments] shipped configs not found, /nowhere"),
            std::string::npos);
}

}  // namespace
}  // namespace sb::test
