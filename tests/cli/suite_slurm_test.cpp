// `suite --slurm` and `--status` as a user calls them, with tools in Slurm's place that say what the test wants.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "cli/program_run.h"
#include "store/run_lock.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string suite_text(const std::string& seeds = "[1, 2]") {
  return "[grid]\nrun.seed = " + seeds +
         "\n[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n[task]\nlength = 10\n[model]\nname = 'gla'\nwidth = 16\n"
         "layers = 1\n[train]\nbatch = 2\nupdates = 2\nwarmup = 1\n[eval]\nevery = 0\nvalid_samples = 2\n"
         "test_samples = 2\nceiling_samples = 2\nbatch = 2\n";
}

size_t lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Words of 16 hexadecimal digits.
std::set<std::string> ids_in(const std::string& text) {
  std::set<std::string> out;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (word.size() == 16 && word.find_first_not_of("0123456789abcdef") == std::string::npos) out.insert(word);
    word.clear();
  }
  return out;
}

class SuiteOnSlurm : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.file("tools"));
    // Takes every job and puts it into the queue; files named like a trouble make it.
    tool(
        "sbatch",
        "for word in \"$@\"; do case $word in\n"
        "  --job-name=*) name=${word#--job-name=};;\n  --array=0-*) last=${word#--array=0-};;\nesac; done\n"
        "echo \"$*\" >> calls\n"
        "[ -e refuses ] && { echo 'sbatch: error: invalid account' >&2; exit 1; }\n"
        "id=$(($(cat last-id) + 1)); echo $id > last-id\n"
        "if [ -n \"$last\" ]; then for i in $(seq 0 $last); do echo \"$id|$i|PENDING||Priority|$name\" >> queue; done\n"
        "else echo \"$id|N/A|PENDING||Dependency|$name\" >> queue; fi\n"
        "[ -e kills ] && kill -9 $PPID\n[ -e stops ] && kill -TERM $PPID\n"
        "[ -e times-out ] && { echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1; }\n"
        "[ -e refuses-next ] && mv refuses-next refuses\n"
        "[ -e lock ] && cp lock \"$(cat lock-path)\"\n"
        "echo $id\n");
    tool("squeue",
         "[ -e silent ] && { echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }\n"
         "case \"$*\" in *'%F|%j'*) cut -d '|' -f 1,6 queue;; *) cat queue;; esac\n");
    tool("sacct", "cat accounting\n");
    tool("scontrol", "echo \"MaxArraySize = $(cat array-limit)\"\n");
    put("last-id", "100\n");
    put("queue", "");
    put("array-limit", "1001\n");
    write(suite_text());
  }

  std::string root() const { return folder_.file("runs"); }
  std::string at(const std::string& name) const { return folder_.file("tools/" + name); }
  void put(const std::string& name, const std::string& text) const { std::ofstream(at(name)) << text; }
  void tool(const std::string& name, const std::string& script) const {
    put(name, "#!/bin/sh\nPATH=/usr/bin:/bin\ncd '" + folder_.file("tools") + "'\n" + script);
    ::chmod(at(name).c_str(), 0700);
  }
  void write(const std::string& text) const { std::ofstream(folder_.file("suite.toml")) << text; }

  Outcome call(const Words& arguments) const {
    const std::string path = folder_.file("tools");  // nothing else is to be found
    return Started(arguments, [&] { ::setenv("PATH", path.c_str(), 1); }).wait();
  }
  Outcome suite(const Words& more) const {
    return call(Words{"suite", folder_.file("suite.toml"), "--out", root()} + more);
  }
  bool trains_on_cpu_only() const {
    return call({"doctor"}).out.find("this build trains on the CPU only") != std::string::npos;
  }
  // What `suite --slurm` with these options notes. A build for the CPU submits no jobs for GPUs: there the ids of runs
  // of the GPU, of `text` where given, take the place of those that it did submit.
  void submit(const Words& device, const std::string& text = "") const {
    const bool elsewhere = !device.empty() && trains_on_cpu_only();
    if (!text.empty() && !elsewhere) write(text);
    ASSERT_EQ(suite(Words{"--slurm"} + (elsewhere ? Words{} : device)).code, 0);
    if (!elsewhere) return;
    if (!text.empty()) write(text);
    const auto own = ids_in(record()), other = ids_in(suite(Words{"--list"} + device).out);
    ASSERT_EQ(own.size(), other.size());
    std::string noted = record();
    for (auto from = own.begin(), to = other.begin(); from != own.end(); ++from, ++to)
      noted.replace(noted.find(*from), from->size(), *to);
    std::ofstream(root() + "/slurm/001/submission.json") << noted;
  }
  size_t arrays_submitted() const {
    const std::string calls = whole_file(at("calls"));
    size_t count = 0;
    for (size_t place = 0; (place = calls.find("--array=", place)) != std::string::npos; ++place) ++count;
    return count;
  }
  size_t submitted() const { return lines(whole_file(at("calls"))); }
  std::string record(const std::string& number = "001") const {
    return whole_file(root() + "/slurm/" + number + "/submission.json");
  }
  void refused(const Words& more, const std::string& line) const {
    const Outcome outcome = suite(more);
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_TRUE(outcome.err.starts_with(line)) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1U) << outcome.err;
    EXPECT_FALSE(fs::exists(root()));
  }

  TemporaryFolder folder_;
};

TEST_F(SuiteOnSlurm, RejectsGpusWithoutGpuSupport) {
  if (!trains_on_cpu_only()) GTEST_SKIP() << "this build trains on a GPU";
  refused({"--slurm", "--gpus", "1"},
          "[suite --gpus] every job would fail, because the nodes run this program: this build");
  EXPECT_FALSE(fs::exists(at("calls")));
  EXPECT_EQ(suite({"--slurm", "--gpus", "1", "--dry-run"}).code, 0);
}

// Regression: a node without a GPU assumed CPU runs, and a node with one assumed GPU runs.
TEST_F(SuiteOnSlurm, StatusUsesSubmittedDeviceOnAnyMachine) {
  for (const Words& device : {Words{"--gpus", "1"}, Words{}}) {
    fs::remove_all(root());
    put("queue", "");
    submit(device);
    const auto ids = ids_in(record());
    ASSERT_EQ(ids.size(), 2U);
    EXPECT_EQ(ids_in(suite({"--status"}).out), ids);
    EXPECT_NE(suite({"--status"}).err.find("[suite] 2 runs, 2 waiting\n"), std::string::npos);
    EXPECT_EQ(ids_in(suite({"--list"}).out), ids);
    EXPECT_EQ(suite({"--where", "run.id=" + *ids.begin(), "--table-only"}).code, 0);
  }
}

TEST_F(SuiteOnSlurm, ListUsesDeviceSubmittedLast) {
  submit({"--gpus", "1"});
  ASSERT_EQ(suite({"--slurm", "--where", "run.seed=1"}).code, 0);
  EXPECT_EQ(ids_in(suite({"--where", "run.seed=1", "--list"}).out), ids_in(record("002")));
}

TEST_F(SuiteOnSlurm, StatusAcceptsSuiteThatRequiresOtherDevice) {
  std::string text = suite_text();
  text.insert(text.find("batch = 2\nupdates"), "precision = 'amp'\n");
  submit({"--gpus", "1"}, text);
  EXPECT_EQ(ids_in(suite({"--status"}).out), ids_in(record()));
}

TEST_F(SuiteOnSlurm, SubmittedRunsAreUnknownIfQueueFails) {
  ASSERT_EQ(suite({"--slurm"}).code, 0);
  const auto said = [&](const std::string& note, const std::string& sum) {
    const Outcome status = suite({"--status"});
    EXPECT_EQ(status.code, 0);
    EXPECT_TRUE(status.err.starts_with("note: squeue: " + note)) << status.err;
    EXPECT_TRUE(status.err.ends_with(sum + "\n")) << status.err;
    EXPECT_EQ(lines(status.err), 2U) << status.err;
  };
  put("silent", "");
  said("slurm_load_jobs error: Unable to contact slurm controller; the state of", "[suite] 2 runs, 2 unknown");
  put("accounting", "101_0|CANCELLED by 0|None assigned|0:0\n101_1|PENDING|None assigned|0:0\n");
  said("slurm_load_jobs", "[suite] 2 runs, 1 waiting, 1 lost");
  put("accounting", "101_0|SOMETHING|x|0:0\ngarbage\n|\n101_1|\n");
  said("slurm_load_jobs", "[suite] 2 runs, 2 unknown");
  fs::remove(at("squeue"));
  said("", "[suite] 2 runs, 2 unknown");
  EXPECT_TRUE(exits(suite({"--slurm"}), 69));
  EXPECT_EQ(arrays_submitted(), 1U);
}

TEST_F(SuiteOnSlurm, DoesNotResubmitAfterCrash) {
  put("kills", "");
  EXPECT_EQ(suite({"--slurm"}).code, -1);
  fs::remove(at("kills"));
  EXPECT_NE(suite({"--status"}).err.find("2 waiting"), std::string::npos);
  EXPECT_TRUE(exits(suite({"--slurm"}), 75, "nothing to submit"));
  EXPECT_NE(record().find("\"id\": \"101\""), std::string::npos) << record();
  EXPECT_EQ(arrays_submitted(), 1U);
  EXPECT_EQ(submitted(), 2U) << "and a job for the table, which was missing";
  EXPECT_EQ(suite({"--slurm"}).code, 75);
  EXPECT_EQ(submitted(), 2U);
  EXPECT_FALSE(fs::exists(root() + "/slurm/002"));
}

TEST_F(SuiteOnSlurm, FindsJobInQueueIfSbatchTimesOut) {
  put("times-out", "");
  EXPECT_TRUE(exits(suite({"--slurm"}), 0));
  EXPECT_NE(record().find("\"id\": \"101\""), std::string::npos) << record();
  EXPECT_EQ(suite({"--slurm"}).code, 75);
  EXPECT_EQ(arrays_submitted(), 1U);
}

TEST_F(SuiteOnSlurm, ReportsSbatchErrorAndLeavesNoFiles) {
  put("refuses", "");
  const Outcome outcome = suite({"--slurm"});
  EXPECT_EQ(outcome.code, 69);
  EXPECT_EQ(outcome.err, "[suite --slurm] sbatch: error: invalid account\n");
  EXPECT_FALSE(fs::exists(root() + "/slurm/001"));
  fs::remove(at("refuses"));
  EXPECT_EQ(suite({"--slurm"}).code, 0);
  EXPECT_TRUE(fs::exists(root() + "/slurm/001/submission.json"));
  fs::remove_all(root());
  fs::remove(at("sbatch"));
  EXPECT_EQ(suite({"--slurm"}).code, 69);
  EXPECT_FALSE(fs::exists(root() + "/slurm/001"));
}

TEST_F(SuiteOnSlurm, KeepsSubmittedArraysIfLaterOneFails) {
  put("array-limit", "2\n");
  write(suite_text("[1, 2, 3]"));
  put("refuses-next", "");
  EXPECT_TRUE(exits(suite({"--slurm"}), 69, "submitted before it: job 101"));
  fs::remove(at("refuses"));
  EXPECT_TRUE(exits(suite({"--slurm"}), 0, "2 in Slurm's queue, 1 run submitted in 1 task"));
  EXPECT_EQ(ids_in(record("002").substr(record("002").find("tasks"))).size(), 1U);
}

TEST_F(SuiteOnSlurm, StopsOnSignalAfterRecordingSubmission) {
  write(suite_text("[1, 2, 3]"));
  put("array-limit", "2\n");
  put("stops", "");
  EXPECT_TRUE(exits(suite({"--slurm"}), 75, "stopped; submitted: job 101; the same command submits the rest"));
  EXPECT_EQ(arrays_submitted(), 1U);
  EXPECT_NE(record().find("\"101\""), std::string::npos) << record();
  fs::remove(at("stops"));
  const Outcome rest = suite({"--slurm"});
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(arrays_submitted(), 2U) << "the rest, and nothing twice";
}

TEST_F(SuiteOnSlurm, StopsSubmittingIfLockIsLost) {
  put("array-limit", "2\n");
  write(suite_text("[1, 2, 3]"));
  LockRecord other = own_record();
  other.place = "another machine";
  put("lock", lock_text(other));
  put("lock-path", root() + "/slurm/lock");
  EXPECT_EQ(suite({"--slurm"}).code, 76);
  EXPECT_EQ(submitted(), 1U);
}

TEST_F(SuiteOnSlurm, RejectsLocalOptions) {
  refused({"--slurm", "--threads", "2"}, "[suite --threads] cannot be combined with --slurm; use --cpus");
  refused({"--slurm", "--time-limit", "9m"}, "[suite --time-limit] cannot be combined with --slurm; use --time");
  refused({"--slurm", "--only", "0123456789abcdef"},
          "[suite --only] cannot be combined with --slurm; use --where run.id=ID");
  for (const char* word : {"", " ", "--", "qos=long"})
    refused({"--slurm", "--sbatch", word}, "[suite --sbatch] expected one option, as --key=value, got '");
  refused({"--slurm", "--sbatch", "--job-name=x"}, "[suite --sbatch] the suite sets this option itself");
  EXPECT_EQ(submitted(), 0U);
}

TEST_F(SuiteOnSlurm, RejectsOnlyWithStatusAndTableOnly) {
  for (const char* look : {"--status", "--table-only"})
    refused({look, "--only", "0123456789abcdef"}, "[suite --only] cannot be combined with " + std::string(look));
}

TEST_F(SuiteOnSlurm, TableJobWaitsForOtherSubmissions) {
  ASSERT_EQ(suite({"--slurm", "--where", "run.seed=1"}).code, 0);  // job 101, table 102
  ASSERT_EQ(suite({"--slurm"}).code, 0);                           // job 103 for the other run
  const std::string calls = whole_file(at("calls"));
  EXPECT_NE(calls.find("--dependency=afterany:101:103"), std::string::npos) << calls;
}

TEST_F(SuiteOnSlurm, DryRunNotesUnavailableQueue) {
  ASSERT_EQ(suite({"--slurm"}).code, 0);
  put("silent", "");
  const Outcome outcome = suite({"--slurm", "--dry-run"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.err.starts_with("note: squeue: ")) << outcome.err;
}

TEST_F(SuiteOnSlurm, UnknownRunIdListsAFewRuns) {
  write(suite_text("[1, 2, 3, 4, 5, 6, 7, 8, 9]"));
  const Outcome outcome = suite({"--where", "run.id=zzz", "--list"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(ids_in(outcome.err).size(), 6U) << outcome.err;
  EXPECT_NE(outcome.err.find(" or one of 3 others\n"), std::string::npos) << outcome.err;
}

TEST_F(SuiteOnSlurm, ReportsTableWithoutRuns) {
  const Outcome outcome = suite({"--table-only"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("[suite] none of 2 runs done in ")) << outcome.err;
  EXPECT_EQ(lines(outcome.err), 1U) << outcome.err;
  ASSERT_EQ(suite({"--slurm"}).code, 0);
  EXPECT_EQ(std::system(("bash '" + root() + "/slurm/001/table.sh' 2> /dev/null").c_str()), 0);
  EXPECT_FALSE(fs::exists(root() + "/report.html"));
  EXPECT_NE(suite({"--where", "run.seed=1", "--status"}).err.find("[suite] 1 run, 1 waiting\n"), std::string::npos);
}

TEST_F(SuiteOnSlurm, WritesTableAndReportIfNoRunIsMissing) {
  EXPECT_EQ(suite({"--no-table"}).code, 0);
  EXPECT_FALSE(fs::exists(root() + "/report.html"));
  EXPECT_TRUE(exits(suite({"--slurm"}), 0));
  EXPECT_FALSE(fs::exists(at("calls")));
  EXPECT_TRUE(fs::exists(root() + "/table.json"));
  EXPECT_TRUE(fs::exists(root() + "/report.html"));
  // Who works on a run that is done learns where it is.
  const std::string id = *ids_in(suite({"--list"}).out).begin();
  const Outcome only = suite({"--only", id});
  EXPECT_EQ(only.code, 0);
  EXPECT_EQ(only.err, "[suite] the run is done, " + root() + "/" + id + "\n");
}

TEST_F(SuiteOnSlurm, ExperimentsAreSubmittedLikeSuites) {
  const Words experiment = {"experiments", "run", "task3", "--scale", "quick", "--out", root()};
  ASSERT_TRUE(exits(call(experiment + Words{"--slurm", "--per-task", "4"}), 0));
  const auto ids = ids_in(record());
  EXPECT_FALSE(ids.empty());
  EXPECT_NE(whole_file(root() + "/slurm/001/table.sh").find(" --table-only --table-name task3 "), std::string::npos);
  const Outcome status = call(experiment + Words{"--status"});
  EXPECT_EQ(ids_in(status.out), ids);
  EXPECT_NE(status.err.find(std::to_string(ids.size()) + " waiting"), std::string::npos) << status.err;
  const Outcome odd = call(experiment + Words{"--slurm", "--partition", "$(id)"});
  EXPECT_EQ(odd.code, 2);
  EXPECT_TRUE(odd.err.starts_with("[experiments run --partition] expected letters")) << odd.err;
}

}  // namespace
}  // namespace sb::test
