// An archive of runs gives the verdicts and the page of the folder it was made from, byte for byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../report/synthetic.h"
#include "cli/program_run.h"
#include "report/axes.h"
#include "store/gzip.h"
#include "store/run_store.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

// Three models on three tasks and four grammars, one run of them diverged, as finished runs of `root`.
void make_runs(const std::string& root) {
  const Suite suite = suite_of(
      "[suite]\nname = 'three'\n[model]\nlayers = 8\nwidth = 256\ndropout = 0\n[grammar]\nvocab = 21\n"
      "ambiguities = 20\ndepth = 20\n[train]\nupdates = 60\nwarmup = 1\n[eval]\ngaps = [10, 20, 50, "
      "100]\n[grid]\ntask.number = [1, 2, "
      "3]\n"
      "model.name = ['delta_net', 'gated_delta_net', 'mamba2']\nrun.seed = [1, 2, 3, 4]\n");
  for (const auto& config : suite.runs) {
    RunStore store(root, config);
    for (int update = 1; update <= 60; ++update) store.add({update, "train", {{"loss", 1.0 / update}}});
    Result result = result_of(config);
    result.params = 4'700'000;
    result.topological_entropy = 2.5;
    const bool first = result.model == "delta_net";
    for (auto* figure : {&*result.test, &*result.valid}) {
      figure->accuracy = (first ? .5 : .8) + .01 * noise_of(config.run_id);
      figure->stderr_ = figure->ceiling->stderr_ = .001;
    }
    if (result.model == "mamba2" && result.task == 3 && result.grammar_seed == 2) {
      result.status = "diverged";
      result.test.reset();
      result.valid.reset();
      result.grid.clear();
      result.divergence = DivergenceFigure{17, 2, "state"};
      store.finish(std::move(result), {});
      continue;
    }
    const double weight = 1;
    store.finish(std::move(result), {{"weight", "F64", {1}, &weight}});
  }
  record_suite(root, suite, [] { return false; });
}

std::vector<std::string> archive_names() {
  std::vector<std::string> names = {"runs.tar"};
  if (has_gzip()) names.emplace_back("runs.tar.gz");
  return names;
}

TEST(Archives, GiveSameVerdictsAsTheirFolder) {
  const TemporaryFolder folder;
  make_runs(folder.file("runs"));
  const auto verdict = [](const std::string& of, const std::string& experiment, const std::string& format) {
    return run({"experiments", "verdict", experiment, of, "--format", format});
  };
  for (const auto& name : archive_names()) {
    ASSERT_EQ(run({"pack", folder.file("runs"), folder.file(name)}).code, 0);
    for (const char* experiment : {"main_table", "task3", "mixing_generalises"})
      for (const char* format : {"text", "json"}) {
        const Outcome there = verdict(folder.file("runs"), experiment, format);
        const Outcome here = verdict(folder.file(name), experiment, format);
        EXPECT_EQ(there.code, 0) << there.err;
        EXPECT_EQ(here.code, 0) << here.err;
        EXPECT_EQ(here.out, there.out) << name << ", " << experiment;
        EXPECT_EQ(here.err, there.err) << name << ", " << experiment;
        const bool judged = here.out.find("4 grammars, 1 seed each") != std::string::npos;
        EXPECT_TRUE(judged || std::string(format) == "json" || std::string(experiment) == "task3") << here.out;
      }
  }
}

TEST(Archives, GiveSameFindingsAndTableAsTheirFolder) {
  const TemporaryFolder folder;
  const std::string readme =
      "<!-- results: `selectivbench experiments findings` writes this table -->\n<!-- /results -->\n";
  const auto written = [&](const std::string& place) {
    std::ofstream(folder.file(place + "/README.md")) << readme;
    const Outcome outcome = run({"experiments", "findings", "--results", folder.file(place + "/results"), "--out",
                                 folder.file(place + "/findings.md"), "--readme", folder.file(place + "/README.md")});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err + whole_file(folder.file(place + "/findings.md")) +
           whole_file(folder.file(place + "/README.md"));
  };
  make_runs(folder.file("folder/results"));
  const std::string page = written("folder");
  EXPECT_NE(page.find("36 runs; 1 diverged"), std::string::npos) << page;
  EXPECT_NE(page.find("4 grammars, 1 seed each"), std::string::npos) << page;
  for (const auto& name : archive_names()) {
    fs::create_directories(folder.file(name + "-in/results"));
    ASSERT_EQ(run({"pack", folder.file("folder/results"), folder.file(name + "-in/results/" + name)}).code, 0);
    EXPECT_EQ(written(name + "-in"), page) << name;
  }
}

}  // namespace
}  // namespace sb::test
