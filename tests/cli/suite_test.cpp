// A suite and its runs as processes: signals, terminals, killed parents, held locks, too few descriptors.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "cli/program_run.h"
#include "store/result.h"
#include "store/run_lock.h"
#include "store/seal.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

// Two runs that end at once, or after more updates than anybody waits for.
std::string suite_text(const std::string& updates, const std::string& more = "") {
  return "[grid]\nrun.seed = [1, 2]\n[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n[task]\nlength = 10\n"
         "[model]\nname = 'gla'\nwidth = 16\nlayers = 1\n[train]\nbatch = 2\nupdates = " +
         updates +
         "\nwarmup = 1\n[eval]\nevery = 0\nvalid_samples = 2\ntest_samples = 2\nceiling_samples = 2\nbatch = 2\n" +
         more;
}

class SuiteProcesses : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::ofstream(folder_.file("suite.toml")) << text;
    return folder_.file("suite.toml");
  }
  std::vector<std::string> command(const std::string& file, const std::string& jobs = "2") const {
    return {"suite", file, "--out", root(), "--jobs", jobs, "--threads", jobs};
  }
  std::string root() const { return folder_.file("runs"); }

  // Paths below the runs' folders that begin with `name`.
  std::vector<std::string> files(const std::string& name) const {
    std::vector<std::string> out;
    std::error_code gone;
    for (const auto& run : fs::directory_iterator(root(), gone))
      for (const auto& entry : fs::directory_iterator(run.path(), gone))
        if (entry.path().filename().string().starts_with(name)) out.push_back(entry.path().string());
    std::sort(out.begin(), out.end());
    return out;
  }
  size_t saved() const {
    std::set<std::string> runs;
    for (const auto& path : files("checkpoint-")) runs.insert(fs::path(path).parent_path().string());
    return runs.size();
  }
  template <class Condition>
  static bool eventually(const Condition& holds) {
    for (int tries = 0; tries < 60000; ++tries) {
      if (holds()) return true;
      ::usleep(20'000);
    }
    return false;
  }
  bool begun(size_t runs) const {
    return eventually([&] { return files("lock").size() >= runs; });
  }
  TemporaryFolder folder_;
};

char state_of(pid_t pid) {
  const std::string stat = whole_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t name = stat.rfind(')');
  return name == std::string::npos ? 'X' : stat[name + 2];
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = whole_file(entry.path().string() + "/stat");
    const size_t end = stat.rfind(')');
    if (end != std::string::npos && std::stol(stat.substr(end + 4)) == parent)
      out.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return out;
}

TEST_F(SuiteProcesses, IgnoreInheritedSignalSettings) {
  const auto before = [] {
    ::signal(SIGCHLD, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
  };
  EXPECT_EQ(Started(command(write(suite_text("2"))), before).wait().code, 0);
  fs::remove_all(root());
  Started suite(command(write(suite_text("1000000"))), before);
  ASSERT_TRUE(begun(2));
  suite.signal(SIGTERM);
  EXPECT_EQ(suite.wait().code, 75);
  EXPECT_EQ(saved(), 2U);
}

// Regression: every run was started and failed.
TEST_F(SuiteProcesses, RejectFileAsRunsFolder) {
  const std::string file = write(suite_text("2"));
  std::ofstream(root()) << "a file";
  EXPECT_EQ(Started(command(file)).wait().code, 2);
  EXPECT_TRUE(fs::is_regular_file(root()));
}

TEST_F(SuiteProcesses, RunsSaveIfSuiteIsKilled) {
  Started suite(command(write(suite_text("1000000"))));
  ASSERT_TRUE(begun(2));
  const auto runs = children_of(suite.pid());
  ASSERT_EQ(runs.size(), 2U);
  suite.signal(SIGKILL);
  suite.wait();
  EXPECT_TRUE(eventually([&] {
    return std::all_of(runs.begin(), runs.end(),
                       [](pid_t run) { return state_of(run) == 'X' || state_of(run) == 'Z'; });
  }));
  EXPECT_EQ(saved(), 2U);
}

TEST_F(SuiteProcesses, CountRunsFinishedByAnotherProcessAsDone) {
  ASSERT_EQ(run(command(write(suite_text("2")))).code, 0);
  const std::string result = files("result.json").front(), lock = files("lock").front();
  fs::rename(result, result + ".kept");
  auto held = std::make_unique<RunLock>(lock);
  Started suite(command(folder_.file("suite.toml")));
  ASSERT_TRUE(eventually([&] { return !children_of(suite.pid()).empty(); }));
  fs::rename(result + ".kept", result);
  held.reset();
  EXPECT_TRUE(exits(suite.wait(), 0, "[suite] 2 of 2 runs done"));
}

// The first run may be stopped before it has anything to save.
TEST_F(SuiteProcesses, StopRunningRunsIfOutOfFileDescriptors) {
  const auto few = [] {
    const rlimit limit{20, 20};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  };
  Started suite(command(write(suite_text("1000000"))), few);
  const Outcome outcome = suite.wait();
  EXPECT_TRUE(exits(outcome, 74, "[suite] cannot make a ",
                    ": the limit of open files is too low, 20; raise it with `ulimit -n`\n"));
  for (const std::string& lock : files("lock")) {
    const auto record = lock_record(lock);
    EXPECT_TRUE(!record || !record->held) << lock;
    EXPECT_EQ(saved(), 1U) << outcome.err;
  }
}

TEST_F(SuiteProcesses, NameTooLowOpenFileLimit) {
  for (const rlim_t most : {rlim_t{6}, rlim_t{10}}) {
    Started suite(command(write(suite_text("2"))), [most] {
      for (int inherited = 3; inherited < 256; ++inherited) ::close(inherited);
      const rlimit limit{most, most};
      ::setrlimit(RLIMIT_NOFILE, &limit);
    });
    const Outcome outcome = suite.wait();
    EXPECT_EQ(outcome.code, 74) << outcome.err;
    EXPECT_EQ(outcome.err, "[suite] cannot make a pipe: the limit of open files is too low, " + std::to_string(most) +
                               "; raise it with `ulimit -n`\n");
  }
}

TEST_F(SuiteProcesses, UnreadableResultFailsOnlyItsRun) {
  Started suite(command(write(suite_text("1500")), "1"));
  ASSERT_TRUE(begun(1));
  fs::create_directory(fs::path(files("lock").front()).parent_path() / "result.json");
  EXPECT_TRUE(exits(suite.wait(), 1, "[suite] 1 of 2 runs done, 1 failed"));
}

TEST_F(SuiteProcesses, RunConfigAsFirstReadFromPipeOrFile) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = suite_text("2");
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  EXPECT_TRUE(exits(run(command("/dev/fd/" + std::to_string(ends[0]))), 0));
  ::close(ends[0]);
  fs::remove_all(root());
  Started suite(command(write(suite_text("50")), "1"));
  ASSERT_TRUE(begun(1));
  write("nonsense");
  EXPECT_TRUE(exits(suite.wait(), 0));
  EXPECT_EQ(files("result.json").size(), 2U);
}

TEST_F(SuiteProcesses, UseAutomatonAsFirstRead) {
  const std::string automaton = folder_.file("automaton.json");
  ASSERT_EQ(run({"grammar", "--vocab", "6", "--ambiguities", "2", "--depth", "3", "--json", automaton}).code, 0);
  std::string text = suite_text("50");
  text.replace(text.find("vocab = 6\nambiguities = 2\ndepth = 3"), 35, "automaton = '" + automaton + "'");
  Started suite(command(write(text), "1"));
  ASSERT_TRUE(begun(1));
  fs::remove(automaton);
  EXPECT_TRUE(exits(suite.wait(), 0));
  EXPECT_EQ(files("automaton.json").size(), 2U);
}

TEST_F(SuiteProcesses, CtrlCSavesEveryRunEvenIfPressedTwice) {
  const auto arguments = command(write(suite_text("1000000")));
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    std::vector<char*> argv = {const_cast<char*>(SB_PROGRAM)};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(SB_PROGRAM, argv.data());
    ::_exit(127);
  }
  // By default a terminal throws away what it has not shown yet when Ctrl-C is pressed.
  termios settings{};
  ASSERT_EQ(::tcgetattr(terminal, &settings), 0);
  settings.c_lflag |= NOFLSH;
  ASSERT_EQ(::tcsetattr(terminal, TCSANOW, &settings), 0);
  std::string shown;
  const auto listen = [&](int milliseconds) {
    pollfd asked{terminal, POLLIN, 0};
    char buffer[4096];
    if (::poll(&asked, 1, milliseconds) <= 0) return true;
    const ssize_t got = ::read(terminal, buffer, sizeof buffer);
    if (got > 0) shown.append(buffer, static_cast<size_t>(got));
    return got > 0;
  };
  ASSERT_TRUE(eventually([&] {
    listen(20);
    return files("lock").size() == 2 && shown.find("loss") != std::string::npos;
  }));
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  listen(100);
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  while (listen(60'000)) {
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ::close(terminal);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 75) << shown;
  EXPECT_EQ(saved(), 2U);
  // Two lines: that it stops, and what is left.
  ASSERT_NE(shown.find("[suite] stopping"), std::string::npos) << shown;
  const std::string last = shown.substr(shown.find("[suite] stopping"));
  EXPECT_EQ(std::count(last.begin(), last.end(), '['), 2 + std::count(last.begin(), last.end(), '\x1b')) << last;
  EXPECT_NE(last.find("2 stopped (update "), std::string::npos) << last;
  EXPECT_TRUE(last.ends_with("; the same command resumes\r\n")) << last;
}

TEST_F(SuiteProcesses, RunSavesAndStopsIfProgressPipeCloses) {
  const std::string file = write(suite_text("1000000"));
  const std::string id = run({"suite", file, "--list"}).out.substr(0, 16);
  const auto nobody_reads = [] {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(126);
    ::close(ends[0]);
    ::dup2(ends[1], 1);
  };
  EXPECT_TRUE(
      exits(Started({"suite", file, "--only", id, "--out", root(), "--threads", "1"}, nobody_reads).wait(), 75));
  EXPECT_EQ(saved(), 1U);
}

// A run takes its lock just before its first update: a run without a lock ended before that.
TEST_F(SuiteProcesses, SignalDuringPreparationStopsRunsAtOnce) {
  std::string text = suite_text("1000000");
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"vocab = 6", "vocab = 141"}, {"ambiguities = 2", "ambiguities = 140"}, {"depth = 3", "depth = 140"}})
    text.replace(text.find(from), from.size(), to);
  {
    Started suite(command(write(text)));
    ASSERT_TRUE(eventually([&] {
      const auto runs = children_of(suite.pid());
      return runs.size() == 2 &&
             std::any_of(runs.begin(), runs.end(), [](pid_t run) { return processor_seconds(run) > 1; });
    }));
    suite.signal(SIGTERM);
    EXPECT_TRUE(exits(suite.wait(), 75));
    EXPECT_EQ(files("lock").size(), 0U);
  }
  text.erase(0, text.find("[grammar]"));
  std::ofstream(folder_.file("run.toml")) << text;
  Started job({"train", folder_.file("run.toml"), "--out", root(), "--threads", "1"});
  ASSERT_TRUE(job.wait_until_it_has_worked_for(2));
  job.signal(SIGINT);
  EXPECT_EQ(job.wait().code, 75);
  EXPECT_EQ(files("lock").size(), 0U);
}

// From the first milliseconds on: while libraries load, the config is read and the grammar is built.
TEST_F(SuiteProcesses, SignalDuringStartupExitsWith75) {
  std::string text = suite_text("1000000");
  const std::string from = "vocab = 6\nambiguities = 2\ndepth = 3";
  text.replace(text.find(from), from.size(), "vocab = 256\nambiguities = 255\ndepth = 255");
  const std::string suite = write(text);
  text.erase(0, text.find("[grammar]"));
  std::ofstream(folder_.file("run.toml")) << text;
  for (const auto& arguments :
       {std::vector<std::string>{"train", folder_.file("run.toml"), "--out", root()}, command(suite)})
    for (const double worked : {0.0, .02, .1, .3, .5, 1.2}) {
      Started job(arguments);
      job.wait_until_it_watches_for_signals();
      ASSERT_TRUE(arguments.front() == "suite" || job.wait_until_it_has_worked_for(worked)) << worked;
      job.signal(worked == .5 ? SIGINT : SIGTERM);
      const Outcome outcome = job.wait();
      EXPECT_EQ(outcome.code, 75) << arguments.front() << " after " << worked << " s of work: " << outcome.err;
      if (arguments.front() == "suite") break;  // it waits for its runs, whose work is theirs
    }
}

TEST_F(SuiteProcesses, SignalsWithinTwoSecondsCountOnceAndLaterOneExitsAtOnce) {
  std::string one = suite_text("1000000");
  one.erase(0, one.find("[grammar]"));
  std::ofstream(folder_.file("run.toml")) << one;
  const std::vector<std::string> train = {"train", folder_.file("run.toml"), "--out", root(), "--threads", "1"};
  {
    Started job(train);
    ASSERT_TRUE(begun(1));
    for (const int signal : {SIGINT, SIGTERM, SIGUSR2, SIGTERM}) job.signal(signal);
    EXPECT_EQ(job.wait().code, 75);
    EXPECT_EQ(saved(), 1U);
  }
  fs::remove_all(root());
  // An update of minutes: nothing is saved before the second signal.
  Started job(train + std::vector<std::string>{"--set", "model.width=512", "--set", "model.layers=8", "--set",
                                               "train.batch=256", "--set", "task.length=400"});
  ASSERT_TRUE(begun(1));
  ASSERT_TRUE(eventually([&] { return processor_seconds(job.pid()) > 3; }));  // well within the first update
  job.signal(SIGINT);
  ASSERT_TRUE(eventually([&] { return job.errors_so_far().find("stopping") != std::string::npos; }));
  ::usleep(2'300'000);
  job.signal(SIGINT);
  EXPECT_EQ(job.wait().code, 75);
  EXPECT_EQ(saved(), 0U);
}

// No run can finish in a few seconds: it is started, saved at the limit and resumed later.
TEST_F(SuiteProcesses, RunsSaveAtTimeLimit) {
  const std::string file = write(suite_text("100000000"));
  // A busy machine may need longer for the first update.
  for (int seconds = 3; seconds < 200 && saved() == 0; seconds *= 2) {
    const Outcome outcome =
        run(command(file) + std::vector<std::string>{"--time-limit", std::to_string(seconds) + "s"});
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    const bool begun = outcome.err.find("2 not started, since time is too short") == std::string::npos;
    EXPECT_EQ(outcome.err.find("[suite] time limit reached: runs finish their update and save") != std::string::npos,
              begun)
        << outcome.err;
    EXPECT_NE(outcome.err.find("the same command resumes"), std::string::npos) << outcome.err;
  }
  EXPECT_GE(saved(), 1U);
}

TEST_F(SuiteProcesses, FinishShortRunsWithinTimeLimit) {
  EXPECT_TRUE(exits(run(command(write(suite_text("3"))) + std::vector<std::string>{"--time-limit", "100h"}), 0));
}

TEST_F(SuiteProcesses, CountRunsOfReusedArchiveAsDone) {
  const std::string file = write(suite_text("3"));
  ASSERT_EQ(run(command(file) + std::vector<std::string>{"--where", "run.seed=1"}).code, 0);
  EXPECT_EQ(files("result.json").size(), 1U);
  ASSERT_EQ(run({"pack", root(), folder_.file("one.tar")}).code, 0);
  const std::string table = run({"table", root()}).out;
  EXPECT_EQ(run({"table", folder_.file("one.tar")}).out, table);
  fs::remove_all(root());
  const Outcome rest = run(command(file) + std::vector<std::string>{"--reuse", folder_.file("one.tar")});
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(files("result.json").size(), 1U) << "the other seed alone";
  EXPECT_NE(rest.out.find("2"), std::string::npos);
  const Outcome both = run(command(file) + std::vector<std::string>{"--have", folder_.file("one.tar"), "--list"});
  EXPECT_NE(both.err.find("0 missing"), std::string::npos) << both.err;
  // Unpacked it is a folder of runs that are done.
  ASSERT_EQ(std::system(("tar -xf " + folder_.file("one.tar") + " -C " + root()).c_str()), 0);
  EXPECT_NE(run(command(file) + std::vector<std::string>{"--list"}).err.find("0 missing"), std::string::npos);
  EXPECT_EQ(run({"check", root(), folder_.file("one.tar")}).code, 0);
}

TEST_F(SuiteProcesses, TableOfSelectedRunsKeepsOtherFinishedRuns) {
  const std::string file = write(suite_text("3"));
  const auto selected = [&](const char* seed) {
    return run(command(file) + std::vector<std::string>{"--where", std::string("run.seed=") + seed});
  };
  ASSERT_EQ(selected("1").code, 0);
  const auto finished = [&] {
    return nlohmann::json::parse(whole_file(root() + "/table.json")).at("finished").get<int>();
  };
  EXPECT_EQ(finished(), 1) << "runs that were not asked for are not missing";
  EXPECT_TRUE(nlohmann::json::parse(whole_file(root() + "/table.json")).at("missing").empty());
  ASSERT_EQ(selected("2").code, 0);
  EXPECT_EQ(finished(), 2);
  const std::string both = whole_file(root() + "/table.txt");
  ASSERT_EQ(run(command(file)).code, 0);
  EXPECT_EQ(whole_file(root() + "/table.txt"), both);
}

// Several ranks share a run's work, so their time says nothing about a run in one process.
TEST_F(SuiteProcesses, EstimatesIgnoreRunsOfSeveralRanks) {
  const std::string file = write(suite_text("3"));
  ASSERT_EQ(run(command(file) + std::vector<std::string>{"--where", "run.seed=1"}).code, 0);
  const std::string path = files("result.json").front();
  const auto listed = [&](int64_t world) {
    Result result = parse_result(whole_file(path), path);
    result.made->train_seconds = 36'000;
    result.made->total_seconds = 36'001;
    result.made->world = world;
    write_file_atomically(path, sealed_json(result_text(result)));
    return run({"suite", file, "--out", root(), "--list"}).out;
  };
  EXPECT_NE(listed(1).find("10 h"), std::string::npos) << listed(1);
  EXPECT_EQ(listed(2).find("10 h"), std::string::npos) << listed(2);
}

TEST_F(SuiteProcesses, StatusReportsStateOfEachRun) {
  const std::string file = write(suite_text("2"));
  const auto status = [&] { return run({"suite", file, "--out", root(), "--status"}); };
  EXPECT_NE(status().err.find("[suite] 2 runs, 2 missing"), std::string::npos) << status().err;
  ASSERT_EQ(run(command(file) + std::vector<std::string>{"--where", "run.seed=1"}).code, 0);
  EXPECT_NE(status().err.find("[suite] 2 runs, 1 done, 1 missing"), std::string::npos) << status().err;
  // A folder in the place of a file that the other run needs.
  const std::string list = run({"suite", file, "--out", root(), "--list"}).out;
  const std::string missing = list.substr(list.rfind('\n', list.size() - 2) + 1, 16);
  fs::create_directories(fs::path(root()) / missing / "metrics.jsonl");
  EXPECT_EQ(run(command(file)).code, 1);
  const Outcome failed = status();
  EXPECT_NE(failed.err.find("1 done, 1 failed"), std::string::npos) << failed.err;
  EXPECT_NE(failed.out.find("metrics.jsonl"), std::string::npos) << failed.out;
  fs::remove(fs::path(root()) / missing / "metrics.jsonl");
  ASSERT_EQ(run(command(file)).code, 0);
  EXPECT_NE(status().err.find("[suite] 2 runs, 2 done"), std::string::npos) << status().err;
}

TEST_F(SuiteProcesses, TableCanBeSkippedOrWrittenAlone) {
  const std::string file = write(suite_text("2"));
  ASSERT_EQ(run(command(file) + std::vector<std::string>{"--no-table"}).code, 0);
  EXPECT_FALSE(fs::exists(root() + "/table.json"));
  EXPECT_EQ(run({"suite", file, "--out", root(), "--table-only"}).code, 0);
  EXPECT_TRUE(fs::exists(root() + "/table.json"));
  EXPECT_TRUE(exits(run(command(file) + std::vector<std::string>{"--no-table", "--table-only"}), 2,
                    "[suite --no-table] cannot be combined with --table-only"));
}

TEST_F(SuiteProcesses, TablesReplaceLinksAndKeepTheirTargets) {
  const std::string file = write(suite_text("2")), precious = folder_.file("precious");
  ASSERT_EQ(run(command(file)).code, 0);
  std::ofstream(precious) << "mine";
  const std::vector<std::string> names = {"suite.json", "table.txt",  "table.md",
                                          "table.csv",  "table.json", "table.tex"};
  for (const auto& name : names) {
    fs::remove(root() + "/" + name);
    fs::create_symlink(precious, root() + "/" + name);
  }
  ASSERT_EQ(run({"suite", file, "--out", root(), "--table-only"}).code, 0);
  EXPECT_EQ(whole_file(precious), "mine");
  for (const auto& name : names) EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(root() + "/" + name))) << name;
}

TEST_F(SuiteProcesses, InvalidSlurmOptionsGiveOneLineAndWriteNothing) {
  const std::string file = write(suite_text("3"));
  const auto refused = [&](const std::vector<std::string>& more, const std::string& line) {
    const Outcome outcome = run(std::vector<std::string>{"suite", file, "--out", root(), "--slurm"} + more);
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_TRUE(outcome.err.starts_with(line)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(root()));
  };
  refused({"--partition=$(id)"}, "[suite --partition] expected letters, digits and ");
  refused({"--account=a\n#SBATCH --wrap=id"}, "[suite --account] expected letters, digits and ");
  refused({"--sbatch", "evil.sh"}, "[suite --sbatch] expected one option, as --key=value");
  refused({"--sbatch", "--wrap=id"}, "[suite --sbatch] the suite sets this option itself");
  refused({"--time", "10", "--signal", "11m"}, "[suite --signal] expected less than --time");
  refused({"--list"}, "[suite --slurm] cannot be combined with --list");
  refused({"--set", "train.device=cuda", "--set", "train.precision=fp32"}, "[suite --gpus] expected at least 1");
  EXPECT_TRUE(
      exits(run({"suite", file, "--out", root(), "--partition", "x"}), 2, "[suite --partition] requires --slurm"));
  EXPECT_TRUE(exits(run({"suite", file, "--out", root() + "\nrm", "--slurm", "--dry-run"}), 2,
                    "[suite --out] expected a path without control characters"));
}

TEST_F(SuiteProcesses, InvalidOptionsGiveOneLine) {
  const std::string file = write(suite_text("3"));
  const auto refused = [&](const std::vector<std::string>& more, const std::string& line) {
    const Outcome outcome = run(command(file) + more);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(outcome.err.starts_with(line)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(root()));
  };
  refused({"--time-limit", "soon"}, "[suite --time-limit] expected a time such as 90s, 9m or 1.5h");
  refused({"--where", "model.name=mamba"}, "[suite --where] no run has model.name = 'mamba', expected gla");
  refused({"--reuse", folder_.file("nowhere")}, "[suite --reuse] expected a folder of runs or an archive");
  refused({"--gpus", "0"}, "[suite --gpus]");
  if (run({"doctor"}).out.find("this build trains on the CPU only") != std::string::npos)
    refused({"--gpus", "1"}, "[suite --gpus] requires a GPU: this build trains on the CPU only");
}

TEST(Doctor, ReportsThreadsPerRun) {
  const std::string cores = std::to_string(std::max(1U, std::thread::hardware_concurrency()));
  const Outcome outcome = run({"doctor"});
  EXPECT_NE(outcome.out.find("threads     " + cores + "\n"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace sb::test
