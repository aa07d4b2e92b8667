// What runs cost, and what may be begun within a limit of time, with a clock of its own.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "jobs/cost_table.h"
#include "jobs/devices.h"
#include "jobs/suite_overview.h"
#include "jobs/time_budget.h"
#include "jobs/workers.h"
#include "store/result.h"

namespace sb {
namespace {

using Estimates = std::vector<std::optional<double>>;

TEST(TimeBudget, ParsesDurations) {
  EXPECT_EQ(parse_duration("90", "x"), 90);
  EXPECT_EQ(parse_duration("90s", "x"), 90);
  EXPECT_EQ(parse_duration("9m", "x"), 540);
  EXPECT_EQ(parse_duration("1.5h", "x"), 5400);
  for (const char* text : {"", "m", "0", "0.5s", "-1m", "9 m", "9min", "nan", "1001h", "1e99"})
    EXPECT_THROW(parse_duration(text, "x"), Error) << text;
}

TEST(TimeBudget, StartsFirstRunThatCanFinish) {
  double now = 1000;
  TimeBudget budget(90, [&] { return now; });
  EXPECT_EQ(budget.left(), 90);
  EXPECT_EQ(budget.next({80.0, 20.0}), 0U);
  now += 30;
  EXPECT_EQ(budget.next({80.0, 70.0, 20.0}), 2U) << "60 s are left";
  EXPECT_EQ(budget.next({std::nullopt, 20.0}), 0U) << "of which nothing is known";
  EXPECT_EQ(budget.next({80.0, 70.0}), std::nullopt);
  EXPECT_EQ(budget.next({}), std::nullopt);
  EXPECT_FALSE(budget.over());
  now += 60;
  EXPECT_TRUE(budget.over());
  EXPECT_EQ(budget.next({0.0, std::nullopt}), std::nullopt);
}

TEST(TimeBudget, SplitsRunsLongerThanLimit) {
  double now = 0;
  TimeBudget budget(100, [&] { return now; });
  EXPECT_EQ(budget.next({500.0, 60.0}), 1U) << "what can be finished first";
  now = 50;
  EXPECT_EQ(budget.next({60.0, 500.0}), 1U);
  EXPECT_EQ(budget.next({60.0}), std::nullopt) << "that waits for the next time";
  now = 95;
  EXPECT_EQ(budget.next({500.0}), std::nullopt) << "too little is left to be worth its start";
}

TEST(TimeBudget, StartsRunThatFitsLimitButNotLimitMinusStartup) {
  double now = 0;
  TimeBudget budget(100, [&] { return now; });
  now = 5;
  EXPECT_EQ(budget.next({98.0, 99.0}), 0U) << "or every session would end without it";
  EXPECT_EQ(budget.next({99.0}), std::nullopt);
}

TEST(TimeBudget, TakesFirstRunIfUnlimited) {
  TimeBudget budget;
  EXPECT_FALSE(budget.limited());
  EXPECT_FALSE(budget.over());
  EXPECT_EQ(budget.next({1e9, 1.0}), 0U);
}

// Simulates a suite: runs of three models and two seeds that take exactly the estimated time.
TEST(TimeBudget, FinishesEveryRunOnceOverSeveralSessions) {
  std::vector<double> left = {40, 250, 30, 40, 250, 30};
  std::vector<int> begun(left.size(), 0);
  std::vector<size_t> finished;
  for (int piece = 0; piece < 20 && finished.size() < left.size(); ++piece) {
    double now = 0;
    TimeBudget budget(100, [&] { return now; });
    for (;;) {
      std::vector<size_t> waiting;
      Estimates estimates;
      for (size_t i = 0; i < left.size(); ++i) {
        if (left[i] <= 0) continue;
        waiting.push_back(i);
        estimates.emplace_back(left[i]);
      }
      const auto place = budget.next(estimates);
      if (!place) break;
      const size_t run = waiting[*place];
      const double worked = std::min(left[run], budget.left());
      ++begun[run];
      now += worked;
      left[run] -= worked;
      if (left[run] <= 0) finished.push_back(run);
    }
  }
  ASSERT_EQ(finished.size(), left.size());
  for (const size_t run : {0, 2, 3, 5}) EXPECT_EQ(begun[run], 1) << run;
  EXPECT_EQ(finished[0], 0U);
  EXPECT_EQ(finished[1], 2U);
}

constexpr const char* kRates = R"(
[[machine]]
device = "cuda"
name = "a GPU"
source = "measured"
eval_speed = 2.0
start_seconds = 5
models = ["gla", "mamba"]
layers = 8
inputs = 41
outputs = 1601
rates = [{widths = [256, 256], frames = 400, rates = [1000, 500]}, {widths = [1024, 1024], frames = 400, rates = [100, 50]}]
)";

RunConfig run_of(const std::string& model, int width) {
  RunConfig run;
  run.model.name = model;
  run.model.width = width;
  run.task.task = paper_task(1);
  run.train.updates = 10;
  run.train.batch = 2;
  run.train.device = DeviceKind::cuda;
  run.eval = {};
  run.eval.every = 0;
  run.eval.valid_samples = 10;
  run.eval.test_samples = 0;
  return run;
}

double square(const MeasuredRate& row) {
  return static_cast<double>(row.width * row.width);
}

TEST(CostTable, UsesNearestRateOfModelScaledByFlops) {
  const CostTable table(kRates, "rates.toml", square);
  const RunFrames frames = frames_of(run_of("gla", 256));
  EXPECT_EQ(frames.training, 10 * 2 * 400);
  EXPECT_EQ(frames.evaluation, 10 * 400);
  EXPECT_EQ(frames.sample, 400);
  EXPECT_NEAR(table.seconds(run_of("gla", 256), frames, 256 * 256).value(), (8000 + 2000) / 1000.0 + 5, 1e-9);
  EXPECT_NEAR(table.seconds(run_of("gla", 256), frames, 256 * 256, 0.5).value(), (4000 + 2000) / 1000.0 + 5, 1e-9);
  EXPECT_NEAR(table.seconds(run_of("mamba", 512), frames, 512 * 512 * 1.21).value(), 10000 / (50 * 4 / 1.21) + 5, 1e-6);
  EXPECT_NEAR(table.seconds(run_of("s4", 256), frames, 256 * 256).value(), 10000 / 500.0 + 5, 1e-9)
      << "the slowest of the others";
  RunConfig cpu = run_of("gla", 256);
  cpu.train.device = DeviceKind::cpu;
  EXPECT_EQ(table.seconds(cpu, frames, 256 * 256), std::nullopt);
  EXPECT_TRUE(table.seconds_on(DeviceKind::cuda, cpu, frames, 256 * 256));
  EXPECT_EQ(table.seconds(run_of("gla", 256), frames, 0), std::nullopt);
}

TEST(CostTable, FinishedRunsCorrectEstimates) {
  CostTable table(kRates, "rates.toml", square);
  const RunConfig one = run_of("gla", 256), wide = run_of("gla", 1024), other = run_of("mamba", 256);
  const auto seconds = [&](const RunConfig& run) {
    return table.seconds(run, frames_of(run), static_cast<double>(run.model.width * run.model.width)).value();
  };
  const double by_rates = seconds(one), wide_by_rates = seconds(wide), other_by_rates = seconds(other);
  table.learn(one, frames_of(one), 256 * 256, {90, true, 1});
  table.learn(one, frames_of(one), 256 * 256, {90, false, {}});
  table.learn(one, frames_of(one), 256 * 256, {0, false, 1});
  EXPECT_EQ(seconds(one), by_rates) << "diverged, of unknown sharing, or without a time";
  table.learn(one, frames_of(one), 256 * 256, {6 * by_rates, false, 3});
  EXPECT_NEAR(seconds(one), 2 * by_rates, 1e-9) << "three at a time";
  EXPECT_NEAR(seconds(other), 2 * other_by_rates, 1e-9) << "the machine is half as fast";
  table.learn(wide, frames_of(wide), 1024 * 1024, {3 * wide_by_rates, false, 1});
  EXPECT_NEAR(seconds(one), 2 * by_rates, 1e-9);
  EXPECT_NEAR(seconds(wide), 3 * wide_by_rates, 1e-9) << "runs of the same size count first";
  RunConfig exact = one;
  exact.train.precision = Precision::fp64;
  EXPECT_NEAR(seconds(exact), by_rates, 1e-9) << "another precision has another speed";
}

int tasks_made = 0;

// A kind of task without TaskRow::size that counts how often it is made.
std::string counting_kind() {
  TaskRow row = find_task("copying");
  row.name = "counting";
  row.axis->key = "counting_lengths";
  row.make = [](const TaskSetup& setup, const Poll&) -> std::shared_ptr<const Task> {
    ++tasks_made;
    TaskSetup copying = setup;
    copying.kind = "copying";
    return make_task(copying);
  };
  if (!find_kind(row.name)) register_task(row);
  return row.name;
}

TEST(Overview, EstimatesMakeTheTaskOfARunOnce) {
  const test::TemporaryFolder folder;
  Suite suite;
  for (const int width : {256, 1024}) {
    ResolvedConfig run;
    run.values = run_of("gla", width);
    run.values.task.kind = counting_kind();
    run.values.task.keys = {{"symbols", int64_t{8}}};
    run.values.eval.points = {5, 6, 7};
    run.values.eval.grid_samples = 4;
    run.run_id = std::to_string(width);
    suite.runs.push_back(run);
  }
  tasks_made = 0;
  const auto size_of = [](const ResolvedConfig& run) {
    return Size{1, static_cast<double>(run.values.model.width * run.values.model.width)};
  };
  const Overview overview(folder.path(), suite, CostTable(kRates, "rates.toml", square), size_of);
  EXPECT_EQ(tasks_made, 2);
  const double each = 2 * 400 * 10 + (10 * 400 + 4 * 2 * (5 + 6 + 7)) / 2.0;
  for (int tick = 0; tick < 3; ++tick)
    EXPECT_NEAR(overview.seconds_left(suite, 1).value(), each / 1000 + each / 100 + 2 * 5, 1e-6);
  EXPECT_EQ(tasks_made, 2);
}

// A run in another folder took ten times as long as estimated.
TEST(Overview, LearnsFromReusedRunsOnGpusOnly) {
  std::string cpu_rates = kRates;
  cpu_rates.replace(cpu_rates.find("\"cuda\""), 6, "\"cpu\"");
  const auto size_of = [](const ResolvedConfig&) { return Size{1, 256.0 * 256}; };
  for (const DeviceKind device : {DeviceKind::cuda, DeviceKind::cpu}) {
    const test::TemporaryFolder folder;
    Suite suite;
    for (const char* id : {"0123456789abcdef", "fedcba9876543210"}) {
      ResolvedConfig run;
      run.values = run_of("gla", 256);
      run.values.train.device = device;
      run.run_id = id;
      suite.runs.push_back(run);
    }
    const CostTable table(kRates + cpu_rates, "rates.toml", square);
    const double alone = Overview(folder.path(), suite, table, size_of).estimate(suite, 1).value();
    Result result;
    result.run_id = suite.runs[0].run_id;
    result.status = "done";
    result.model = "gla";
    result.width = result.layers = result.states = 1;
    result.made.emplace().total_seconds = 10 * alone;
    result.made->shared_by = 1;
    const std::string elsewhere = folder.file("elsewhere");
    std::filesystem::create_directory(elsewhere);
    std::ofstream(elsewhere + "/result.json") << result_text(result);
    KnownRuns known;
    known.folders[result.run_id] = elsewhere;
    const Overview overview(folder.path(), suite, table, size_of, known);
    ASSERT_EQ(overview.done(), 1U);
    EXPECT_NEAR(overview.estimate(suite, 1).value(), (device == DeviceKind::cuda ? 10 : 1) * alone, 1e-6);
  }
}

// The rates are those of a whole machine with two cores.
TEST(Overview, EstimatesOnACpuDependOnThreads) {
  std::string cpu_rates = kRates;
  cpu_rates.replace(cpu_rates.find("\"cuda\""), 6, "\"cpu\"");
  const test::TemporaryFolder folder;
  Suite suite;
  ResolvedConfig run;
  run.values = run_of("gla", 256);
  run.values.train.device = DeviceKind::cpu;
  run.run_id = "0123456789abcdef";
  suite.runs.push_back(run);
  CostTable table(cpu_rates, "rates.toml", square);
  const auto estimate = [&](double threads) {
    Overview overview(folder.path(), suite, table, [](const ResolvedConfig&) { return Size{1, 256.0 * 256}; });
    overview.threads = threads;
    return overview.estimate(suite, 0).value();
  };
  const double both = estimate(2);
  EXPECT_NEAR(estimate(1), 2 * both, 1e-9);
  TimeTaken taken{6 * both, false, 5, 1};  // one thread took as long as three machines
  table.learn(run.values, frames_of(run.values), 256 * 256, taken);
  EXPECT_NEAR(estimate(2), 3 * both, 1e-9);
  taken.threads.reset();
  table.learn(run.values, frames_of(run.values), 256 * 256, taken);
  EXPECT_NEAR(estimate(2), 3 * both, 1e-9) << "of unknown threads";
}

TEST(CostTable, ReportsInvalidTablesInOneLine) {
  const auto fault = [](const std::string& text) { return error_line([&] { CostTable(text, "r.toml", square); }); };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kRates;
    return fault(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(fault("[x]\n"), "[rates] expected a table with 'machine', r.toml:1:1");
  EXPECT_EQ(with("layers", "layer"), "[rates] expected a table with 'layers', r.toml:2:1");
  EXPECT_EQ(with("\"cuda\"", "\"tpu\""), "[rates] expected cpu or cuda, got 'tpu', r.toml:3:10");
  EXPECT_NE(with("[1000, 500]", "[1000]").find("as many widths and rates as models"), std::string::npos);
}

TEST(Devices, DetectsRankWithoutGpu) {
  const auto run = [](const std::string& text) {
    ModelRules rules;
    rules.has_gpu = [] { return false; };
    return resolve_config_text(text, "run.toml", {}, rules);
  };
  const ResolvedConfig open = run("[train]\ndevice = 'auto'\n"), cpu = run("[train]\ndevice = 'cpu'\n");
  EXPECT_TRUE(lacks_gpu(open, 1, 1, "1"));
  EXPECT_TRUE(lacks_gpu(open, 2, 4, "")) << "more ranks than GPUs that could be seen";
  EXPECT_FALSE(lacks_gpu(open, 0, 1, "0")) << "its GPU is there, something else is wrong";
  EXPECT_FALSE(lacks_gpu(open, 1, 0, "1")) << "a machine without GPUs";
  EXPECT_FALSE(lacks_gpu(cpu, 1, 1, "1")) << "as asked for";
  const test::TemporaryFolder devices;
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"})
    std::ofstream(devices.file(name)) << "";
  EXPECT_EQ(gpus_in(devices.path()), 2);
  EXPECT_EQ(gpus_in(devices.file("nowhere")), 0);
}

TEST(Devices, NamesGpusVisibleToProcess) {
  EXPECT_EQ(visible_gpus(nullptr, 2), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(visible_gpus("", 1), std::vector<std::string>()) << "none can be seen";
  EXPECT_EQ(visible_gpus("3,GPU-abc,5", 2), (std::vector<std::string>{"3", "GPU-abc"}));
  EXPECT_EQ(visible_gpus("2,3", 4), (std::vector<std::string>{"2", "3"})) << "no others are";
  EXPECT_EQ(visible_gpus("1,-1,2", 3), std::vector<std::string>{"1"}) << "none is seen behind one that is not there";
}

}  // namespace
}  // namespace sb
