// Progress with a clock of its own: rates, what is said into a log, and what a terminal shows.
#include "jobs/progress.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "jobs/board.h"
#include "jobs/devices.h"
#include "jobs/run_names.h"
#include "jobs/suite_overview.h"
#include "suites/suite.h"

namespace sb {
namespace {

struct Fake {
  double now = 100;
  int columns = 80, rows = 24;
  std::string text;

  Console console(bool terminal) {
    return {terminal, [this] { return now; }, [this] { return std::pair(columns, rows); },
            [this](std::string_view more) { text += more; }};
  }
  std::string take() { return std::exchange(text, {}); }
};

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

TEST(Pace, ExcludesEarlierUpdatesAndPauses) {
  Pace pace;
  pace.reach(0, 1000);  // resumed there
  EXPECT_EQ(pace.rate(), 0);
  EXPECT_EQ(pace.left(10), -1);
  double now = 0;
  for (int64_t i = 1; i <= 90; ++i) pace.reach(now += 1 / 9.0, 1000 + i);
  EXPECT_NEAR(pace.rate(), 9, 1e-9);
  pace.pause(now);
  pace.resume(now += 60);
  for (int64_t i = 91; i <= 180; ++i) pace.reach(now += 1 / 9.0, 1000 + i);
  EXPECT_NEAR(pace.rate(), 9, 1e-6);
  // 18 more updates take 2 s, and the pauses seen so far are a third of a second each.
  EXPECT_NEAR(pace.left(18), 2 + 18 * 60.0 / 180, 1e-6);
}

TEST(Pace, FollowsSpeedChangeWithinWindow) {
  Pace pace;
  double now = 0;
  int64_t done = 0;
  pace.reach(now, done);
  for (int i = 0; i < 1000; ++i) pace.reach(now += 0.1, ++done);
  for (int i = 0; i < 30; ++i) pace.reach(now += 1, ++done);
  EXPECT_NEAR(pace.rate(), 1, 0.05);
}

TEST(Pace, ExcludesUnendedPause) {
  Pace pace;
  pace.reach(0, 0);
  pace.reach(1, 10);
  pace.pause(1);
  pace.reach(500, 11);
  pace.reach(501, 21);
  EXPECT_NEAR(pace.rate(), 10, 1e-9);
}

TEST(Progress, FormatsRates) {
  EXPECT_EQ(rate_text(1234.4), "1,234/s");
  EXPECT_EQ(rate_text(12.34), "12.3/s");
  EXPECT_EQ(rate_text(0.456), "0.46/s");
  EXPECT_EQ(rate_text(0.02), "50.0 s each");
  EXPECT_EQ(rate_text(0), "?/s");
}

TEST(Progress, WritesLogLineEveryTwentySeconds) {
  Fake fake;
  Progress progress("samples", 1000, fake.console(false));
  for (uint64_t i = 1; i <= 100; ++i) {
    fake.now += 0.5;
    progress.update(i);
  }
  EXPECT_EQ(count(fake.text, "\n"), 2U);
  EXPECT_EQ(fake.text.substr(0, fake.text.find('\n')), "samples 4 %, 40 of 1,000, 2.00/s, 8 min 0 s left");
}

RunProgress at(const std::string& phase, int64_t update, double valid = -1) {
  return {phase, update, 100, 1.25, valid};
}

TEST(RunProgressReport, ReportsAccuracyAfterEvaluation) {
  Fake fake;
  RunProgressReport report("gla  task 1  seed 1", fake.console(false));
  report.report(at("train", 50));
  report.report(at("valid", 50));
  EXPECT_EQ(fake.take(), "");
  report.report(at("evaluated", 50, 0.5));
  EXPECT_EQ(fake.take(), "gla  task 1  seed 1  update 50 of 100: loss 1.2500, valid accuracy 0.5000\n");
  report.report(at("train", 100, 0.5));
  report.report(at("valid", 100, 0.5));
  report.report(at("evaluated", 100, 0.75));
  EXPECT_EQ(fake.take(), "gla  task 1  seed 1  update 100 of 100: loss 1.2500, valid accuracy 0.7500\n");
}

TEST(RunProgressReport, LogsLongPhasesAndUpdates) {
  Fake fake;
  RunProgressReport report("gla  task 1  seed 1", fake.console(false));
  report.report(at("train", 1));
  for (int i = 0; i < 240; ++i) {
    fake.now += 0.25;
    report.tick();
  }
  std::string text = fake.take();
  EXPECT_EQ(count(text, "\n"), 3U) << text;
  EXPECT_NE(text.find("update 1 of 100: 1 %, 20.0 s in this update"), std::string::npos) << text;
  report.report(at("ceiling", 100, 0.5));
  fake.take();
  for (int i = 0; i < 360; ++i) {
    fake.now += 0.25;
    report.tick();
  }
  text = fake.take();
  EXPECT_EQ(count(text, "\n"), 4U) << text;
  EXPECT_NE(text.find("ceiling for 40.0 s, loss 1.250, valid 0.500"), std::string::npos) << text;
}

TEST(LiveLines, AreCutToTerminalWidthAndErasedIfWrapped) {
  Fake fake;
  fake.columns = 21;
  {
    LiveLines lines(fake.console(true));
    lines.show({std::string(30, 'a'), "ö"});
    EXPECT_EQ(fake.take(), std::string(19, 'a') + "…\nö\n");
    lines.show({std::string(30, 'a'), "ö"});
    EXPECT_EQ(fake.take(), "");  // nothing new
    fake.columns = 11;           // 20 characters now take two rows
    lines.show({"b"});
    EXPECT_EQ(fake.take(), "\r\x1b[3A\x1b[Jb\n");
    lines.say("said");
    EXPECT_EQ(fake.take(), "\r\x1b[1A\x1b[Jsaid\nb\n");
    fake.rows = 3;
    lines.show({"1", "2", "3", "4"});
    EXPECT_EQ(fake.take(), "\r\x1b[1A\x1b[J1\n  … 3 more\n");
  }
  EXPECT_EQ(fake.take(), "\r\x1b[2A\x1b[J");  // the cursor is where it was
}

TEST(Board, LogsStateOfRunsEveryTwentySeconds) {
  Fake fake;
  Board board(14, 1, 22, fake.console(false));
  board.started(0, "mamba2  task 1  seed 1");
  EXPECT_EQ(fake.take(), "started: mamba2  task 1  seed 1\n");
  board.said(0, R"({"phase":"train","update":10,"updates":100,"loss":1.5,"valid":-1})");
  fake.now += 2;
  board.said(0, R"({"phase":"train","update":20,"updates":100,"loss":1.5,"valid":-1})");
  for (const char* other : {"", "x", "[]", "{}", R"({"phase":1})", R"({"phase":"train","update":"a"})",
                            R"({"phase":"train","update":1e300,"updates":1,"loss":1,"valid":1})"})
    board.said(0, other);
  board.time_left(150);
  board.tick();
  EXPECT_EQ(fake.take(), "");
  fake.now += 18;
  board.tick();
  EXPECT_EQ(fake.take(),
            "1 of 14 runs done, about 2 min 30 s left\n"
            "  mamba2  task 1  seed 1  20 %  5.00/s  16.0 s left, 18.0 s in this update  loss 1.500\n");
  ASSERT_NE(board.progress(0), nullptr);
  EXPECT_EQ(board.progress(0)->update, 20);
  board.over(0, "test 0.500 of 0.900, 20.0 s", true);
  EXPECT_EQ(fake.take(), "[ 2/14] mamba2  task 1  seed 1  test 0.500 of 0.900, 20.0 s\n");
}

TEST(Board, ShowsHeaderAndAlignedColumnsOnTerminal) {
  Fake fake;
  fake.columns = 100;
  Board board(3, 0, 35, fake.console(true));
  board.started(0, "mamba2               task 1  seed 1");
  board.started(1, "gated_delta_product  task 1  seed 1");
  board.said(1, R"({"phase":"train","update":5,"updates":100,"loss":1.5,"valid":-1})");
  board.time_left(std::nullopt);
  board.tick();
  EXPECT_EQ(fake.take(),
            "0 of 3 runs done\n"
            "  mamba2               task 1  seed 1  starting\n"
            "  gated_delta_product  task 1  seed 1  5 %       loss 1.500\n");
  board.drop(0);
  board.drop(1);
  board.tick();
  EXPECT_EQ(fake.take(), "\r\x1b[3A\x1b[J") << "runs that were stopped leave no line";
}

TEST(Board, FinishedLinesFitAHundredColumns) {
  Fake fake;
  Board board(2, 0, 200, fake.console(false));
  board.started(0, std::string(200, 'n'));
  fake.take();
  board.over(0, "test 0.500 of 0.900, 1 min 20 s", true);
  const std::string line = fake.take();
  EXPECT_EQ(display_width(line), 101U) << line;  // with its line feed
  EXPECT_NE(line.find("n…  test 0.500 of 0.900, 1 min 20 s\n"), std::string::npos) << line;
}

TEST(RunNames, HaveModelTaskSeedAndFewestDistinguishingKeys) {
  using Names = std::set<std::string>;
  const auto names = [](const std::string& text) {
    const auto all = run_names(parse_suite(text, "suite.toml", {}, {}).runs);
    return Names(all.begin(), all.end());
  };
  EXPECT_EQ(
      names("[grid]\ntask.number = [1]\nmodel.name = ['mamba2', 'gla']\nrun.seed = [1, 2]\n"),
      (Names{"mamba2  task 1  seed 1", "mamba2  task 1  seed 2", "gla     task 1  seed 1", "gla     task 1  seed 2"}));
  const Names grid = names(
      "[grid]\ntask.number = [1]\nmodel.name = ['mamba2']\ntrain.lr = [1e-3, 2e-3]\nrun.seed = [1, 2]\n"
      "model.d_state = [16, 32]\n");
  EXPECT_EQ(grid.size(), 8U);
  EXPECT_TRUE(grid.contains("mamba2  task 1  seed 1  d_state 16  lr 0.001")) << *grid.begin();
  EXPECT_EQ(names("[grid]\nhow = [{task.number = 1, train.updates = 10, train.batch = 4}, {task.number = 2, "
                  "train.updates = 20, train.batch = 8}]\nmodel.name = ['gla']\n"),
            (Names{"gla  task 1  seed 1", "gla  task 2  seed 1"}))
      << "what follows from the task is not said";
}

TEST(RunNames, HaveKeysOfTheGridThatDiffer) {
  const Suite suite = parse_suite(
      "[grid]\nwhich = [{task.machine = 'parity', task.length = 40}, {task.machine = 'a5', task.length = 32}]\n"
      "model.name = ['delta_net']\nmodel.expand_k = [1, 2]\ntrain.seed = [1, 2]\n[task]\nkind = 'word_problem'\n",
      "suite.toml", {}, {});
  const auto all = run_names(suite.runs, suite.axes);
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(all[0], "delta_net  task word_problem  length 40  machine parity  expand_k 1  train.seed 1") << all[0];
  EXPECT_EQ(all[7], "delta_net  task word_problem  length 32  machine a5      expand_k 2  train.seed 2") << all[7];
}

TEST(Overview, SchedulesRunsOverParallelJobs) {
  EXPECT_DOUBLE_EQ(seconds_in_parallel({}, 2), 0);
  EXPECT_DOUBLE_EQ(seconds_in_parallel({4, 4, 4}, 2), 8) << "the third waits for one of the others";
  EXPECT_DOUBLE_EQ(seconds_in_parallel({4, 4, 4}, 1), 12);
  EXPECT_DOUBLE_EQ(seconds_in_parallel({5, 1, 1, 1}, 2), 5);
  EXPECT_DOUBLE_EQ(seconds_in_parallel({5, 1}, 8), 5);
}

TEST(Devices, GpuRunsDefaultToOneJob) {
  const Suite suite = parse_suite("[grid]\ntrain.device = ['cpu', 'cuda']\n", "suite.toml", {}, {});
  const ResolvedConfig &cpu = suite.runs.at(0), &gpu = suite.runs.at(1);
  EXPECT_EQ(usual_jobs({&cpu, &cpu}, 16), 16);
  EXPECT_EQ(usual_jobs({&cpu, &gpu}, 16), 1);
  EXPECT_EQ(usual_jobs({}, 16), 16);
}

TEST(Devices, NotesUnusableGpuIfDeviceIsAuto) {
  const auto runs = [](const std::string& device, bool gpu) {
    ModelRules rules;
    rules.has_gpu = [gpu] { return gpu; };
    return std::vector{resolve_config_text(device, "run.toml", {}, rules)};
  };
  const std::string given = "[train]\ndevice = 'cpu'\n", open = "[train]\ndevice = 'auto'\n";
  for (const std::string& text : {std::string(), open}) {
    EXPECT_NE(cpu_note(runs(text, false), true, "no driver").find(": no driver"), std::string::npos);
    EXPECT_EQ(cpu_note(runs(text, false), false, "no CUDA in this build"), "");
    EXPECT_EQ(cpu_note(runs(text, true), true, ""), "");
  }
  EXPECT_EQ(cpu_note(runs(given, false), true, "no driver"), "") << "as asked for";
}

}  // namespace
}  // namespace sb
