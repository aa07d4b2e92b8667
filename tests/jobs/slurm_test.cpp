// What a suite asks of Slurm, and what it makes of Slurm's answers; without Slurm.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "jobs/slurm_job.h"
#include "jobs/slurm_queue.h"
#include "jobs/tool.h"

namespace sb {
namespace {

using test::TemporaryFolder;

SlurmJob job_in(const std::string& root) {
  SlurmJob job;
  job.name = "a $(touch stolen) 'name'\n#SBATCH --wrap=id";
  job.label = "sb-x-1a2b";
  job.program = "/bin/echo";
  job.root = root;
  job.folder = root + "/slurm/001";
  job.suite = job.folder + "/frozen-suite.json";
  job.tasks = {{"0123456789abcdef", "1123456789abcdef"}, {"2123456789abcdef"}};
  job.options.time = "2:00:00";
  job.options.memory = "16G";
  job.options.partition = "gpu,short";
  job.gpus = 1;
  return job;
}

TEST(Slurm, ParsesTimesAsSlurmDoes) {
  const std::vector<std::pair<std::string, double>> times = {{"90", 5400},          {"30:15", 1815},
                                                             {"2:00:00", 7200},     {"1-12", 129600},
                                                             {"1-12:30", 131400.0}, {"1-12:30:05", 131405}};
  for (const auto& [text, seconds] : times) EXPECT_EQ(parse_slurm_time(text, "x"), seconds) << text;
  for (const char* text : {"", "0", "1:2:3:4", "a", "1-", "-1", "1:", ":1", "1.5", " 1", "1-2:3:4:5", "1--2"})
    EXPECT_THROW(parse_slurm_time(text, "x"), Error) << text;
}

TEST(Slurm, PassesOptionsToSbatchUnchanged) {
  SlurmJob job = job_in("/runs");
  job.options.sbatch = {"--qos=long", "--comment=two words", "-Ca100", "--x=$(id)", "--exclusive", "--no-such-option"};
  EXPECT_NO_THROW(check_slurm_values(job.options));
  for (const auto& command : {tasks_command(job, 0, 2, ""), table_command(job, {"1"})})
    EXPECT_NE(std::search(command.begin(), command.end(), job.options.sbatch.begin(), job.options.sbatch.end()),
              command.end());
}

TEST(Slurm, RejectsOptionsThatSuiteSetsItself) {
  const auto line_of = [](const std::string& word) {
    SlurmOptions options;
    options.sbatch = {"--qos=long", word};
    return error_line([&] { check_slurm_values(options); });
  };
  for (const char* word : {"--wrap=id", "--wra=id", "-a1", "-d1", "--array", "--depend=1", "--parsable", "--wait",
                           "--job-name=x", "-Jx", "--quiet", "-Q", "--time=1", "-t1", "--signal=USR1"})
    EXPECT_TRUE(line_of(word).starts_with("[suite --sbatch] the suite sets this option itself")) << word;
  for (const char* word : {"", " ", "script.sh", "-", "--", "--qos long", "--qos=long --constraint=a100"})
    EXPECT_TRUE(line_of(word).starts_with("[suite --sbatch] expected one option, as --key=value, got '")) << word;
}

TEST(Slurm, TableJobRequestsNoComputeResources) {
  SlurmJob job = job_in("/runs");
  job.options.cpus = 8;
  EXPECT_EQ(table_command(job, {"1", "2"}),
            (std::vector<std::string>{"sbatch", "--parsable", "--job-name=sb-x-1a2b-table", "--dependency=afterany:1:2",
                                      "--output=/runs/slurm/001/table.log", "/runs/slurm/001/table.sh"}));
  EXPECT_NE(table_script(job).find("#SBATCH --cpus-per-task=1\n"), std::string::npos);
  EXPECT_EQ(table_script(job).find("--gres"), std::string::npos);
  EXPECT_NE(tasks_script(job).find("#SBATCH --cpus-per-task=8\n"), std::string::npos);
}

TEST(Slurm, RejectsValuesOtherThanNamesAndNumbers) {
  const std::vector<std::pair<std::string SlurmOptions::*, std::string>> places = {
      {&SlurmOptions::partition, "[suite --partition]"},
      {&SlurmOptions::account, "[suite --account]"},
      {&SlurmOptions::memory, "[suite --mem]"},
      {&SlurmOptions::time, "[suite --time]"},
      {&SlurmOptions::signal, "[suite --signal]"}};
  const std::vector<std::string> hostile = {"a b",
                                            " ",
                                            "a'b",
                                            "a\"b",
                                            "$(id)",
                                            "`id`",
                                            "$x",
                                            "a\nb",
                                            "a\n#SBATCH --wrap=id",
                                            "-p",
                                            "--wrap=id",
                                            "a;b",
                                            "a#b",
                                            "a\\b",
                                            "a|b",
                                            "a&b",
                                            "a/b",
                                            "a\tb",
                                            std::string("a\0b", 3),
                                            "\xc3\xa4",
                                            std::string(201, 'a')};
  for (const auto& [member, where] : places)
    for (const auto& value : hostile) {
      SlurmOptions options;
      options.*member = value;
      const std::string line = error_line([&] { check_slurm_values(options); });
      EXPECT_TRUE(line.starts_with(where + " expected ")) << where << " " << value << ": " << line;
      EXPECT_TRUE(lacks(line, "\n"));
    }
  SlurmOptions options;
  options.partition = "gpu-a100,short_2.x";
  options.account = "group.me@place";
  options.memory = "16G";
  options.time = "1-12:00:00";
  options.signal = "10m";
  EXPECT_NO_THROW(check_slurm_values(options));
  options.signal = "20h";
  EXPECT_THROW(check_slurm_values(options), Error) << "Slurm's own bound";
}

TEST(Slurm, QuotesWordsForShell) {
  const std::vector<std::string> words = {
      "plain", "", "two words", "it's", "\"", "$(touch stolen)", "`id`", "a\nb", "\\", "*", "#", "!x", "~", "a=b;c"};
  const ToolOutput said = run_tool({"/bin/sh", "-c", "printf '%s\\0' " + shell_line(words)}, 60);
  std::string expected;
  for (const auto& word : words) expected += word + std::string(1, '\0');
  EXPECT_EQ(said.out, expected) << said.err;
}

TEST(Slurm, PassesArgumentsToToolsUnchanged) {
  EXPECT_EQ(run_tool({"printf", "%s|", "a b", "$(id)", "x\ny"}, 60).out, "a b|$(id)|x\ny|");
  EXPECT_EQ(run_tool({"false"}, 60).code, 1);
  EXPECT_FALSE(run_tool({"no-such-tool-anywhere"}, 60).found);
  const ToolOutput slow = run_tool({"sleep", "600"}, 0.3);
  EXPECT_EQ(slow.code, 128 + 9);
  EXPECT_NE(complaint_of(slow).find("longer than"), std::string::npos);
}

TEST(Slurm, WritesOneLineDirectivesForAnySuiteName) {
  const std::string script = tasks_script(job_in("/runs"));
  size_t directives = 0;
  for (size_t at = 0; (at = script.find("#SBATCH", at)) != std::string::npos; ++at, ++directives)
    EXPECT_TRUE(at == 0 || script[at - 1] == '\n');
  EXPECT_NE(script.find("#SBATCH --job-name=sb-a___touch_stolen___name___SBATCH_--wrap_id\n"), std::string::npos)
      << script;
  EXPECT_NE(script.find("#SBATCH --gres=gpu:1\n"), std::string::npos);
  EXPECT_NE(script.find("#SBATCH --signal=B:USR2@300\n"), std::string::npos);
  EXPECT_EQ(directives, 11U) << script;
  EXPECT_EQ(script.find("scontrol"), std::string::npos) << "only with --requeue";
}

// Runs the script in bash: each hostile path reaches the program as one argument.
TEST(Slurm, ScriptPassesPathsAsData) {
  TemporaryFolder folder;
  SlurmJob job = job_in(folder.file("a 'b' \"c\" $(touch " + folder.file("stolen") + ") `id` ; x #"));
  std::filesystem::create_directories(job.folder);
  write_file_atomically(folder.file("show"), "#!/bin/sh\nprintf '[%s]' \"$@\"\n");
  ASSERT_EQ(::chmod(folder.file("show").c_str(), 0700), 0);
  job.program = folder.file("show");
  write_file_atomically(tasks_path(job), tasks_script(job));
  write_file_atomically(table_path(job), table_script(job));
  const ToolOutput said = run_tool({"env", "SLURM_ARRAY_TASK_ID=0", "bash", tasks_path(job), "1"}, 60);
  EXPECT_EQ(said.out, "[suite][" + job.suite + "][--out][" + job.root +
                          "][--where][run.id=2123456789abcdef][--no-table][--threads][4][--gpus][1]")
      << said.err;
  EXPECT_EQ(run_tool({"env", "SLURM_ARRAY_TASK_ID=0", "bash", tasks_path(job), "0"}, 60)
                    .out.find("run.id=0123456789abcdef,1123456789abcdef]") == std::string::npos,
            false);
  EXPECT_EQ(run_tool({"bash", table_path(job)}, 60).out,
            "[suite][" + job.suite + "][--out][" + job.root + "][--table-only]")
      << "nothing is done, and there is nothing to report";
  write_file_atomically(job.root + "/table.json", "{}");
  const ToolOutput table = run_tool({"bash", table_path(job)}, 60);
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(table.out, "[suite][" + job.suite + "][--out][" + job.root + "][--table-only][report][" + job.root +
                           "][--out][" + job.root + "/report.html]");
  EXPECT_FALSE(std::filesystem::exists(folder.file("stolen")));
}

TEST(Slurm, RequeuesSavedTasksButNotCancelledOnes) {
  TemporaryFolder folder;
  SlurmJob job = job_in(folder.file("runs"));
  std::filesystem::create_directories(job.folder);
  job.options.requeue = true;
  job.program = folder.file("work");
  // Saves and ends with 75 on either signal, as our program does.
  write_file_atomically(job.program, "#!/bin/bash\ntrap 'exit 75' USR2 TERM\ntouch '" + folder.file("ready") +
                                         "'\nwhile :; do sleep 0.05; done\n");
  write_file_atomically(folder.file("scontrol"), "#!/bin/sh\necho \"$@\" >> '" + folder.file("asked") + "'\n");
  for (const char* tool : {"work", "scontrol"}) ASSERT_EQ(::chmod(folder.file(tool).c_str(), 0700), 0);
  write_file_atomically(tasks_path(job), tasks_script(job));
  const auto ended_by = [&](const std::string& signal) {
    std::filesystem::remove(folder.file("ready"));
    std::filesystem::remove(folder.file("asked"));
    const ToolOutput said =
        run_tool({"bash", "-c",
                  "PATH=\"$1:$PATH\" SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 bash \"$2\" 0 & shell=$!; "
                  "until [ -e \"$1/ready\" ]; do sleep 0.02; done; kill -\"$3\" $shell; wait $shell; echo $?",
                  "test", folder.path(), tasks_path(job), signal},
                 60);
    return said.out;
  };
  EXPECT_EQ(ended_by("USR2"), "75\n");
  EXPECT_EQ(read_file(folder.file("asked"), 100), "requeue 7_1\n");
  EXPECT_EQ(ended_by("TERM"), "75\n");
  EXPECT_FALSE(std::filesystem::exists(folder.file("asked")));
  // A signal before the script knows its child is passed on.
  std::string slow = tasks_script(job);
  slow.replace(slow.find("child=$!"), 8, "sleep 0.5; child=$!");
  write_file_atomically(tasks_path(job), slow);
  EXPECT_EQ(ended_by("TERM"), "75\n");
  EXPECT_EQ(ended_by("USR2"), "75\n");
}

TEST(Slurm, SplitsArraysAtLimit) {
  SlurmJob job = job_in("/ru%ns");
  job.options.max_parallel = 50;
  job.options.sbatch = {"--qos=x"};
  EXPECT_EQ(tasks_command(job, 0, 2, "12"),
            (std::vector<std::string>{"sbatch", "--parsable", "--job-name=sb-x-1a2b-0", "--array=0-1%50",
                                      "--output=/ru%%ns/slurm/001/%A_%a.log", "--dependency=afterany:12", "--qos=x",
                                      "/ru%ns/slurm/001/tasks.sh", "0"}));
  EXPECT_EQ(arrays_of(2500, 1001).size(), 3U);
  EXPECT_EQ(arrays_of(2500, 1001).back(), (std::pair<size_t, size_t>{2002, 498}));
  EXPECT_EQ(arrays_of(3, 1001).size(), 1U);
}

TEST(Slurm, RejectsPathsThatSlurmWouldAlter) {
  for (const char* path : {"/a\nb", "/a\\b", "/a\tb"}) EXPECT_THROW(check_paths(job_in(path)), Error) << path;
  EXPECT_NO_THROW(check_paths(job_in("/a b'\"$(x)%a")));
}

TEST(Slurm, ReadsSubmissionsAndFindsTasks) {
  TemporaryFolder root;
  const std::string a = "0123456789abcdef", b = "1123456789abcdef", c = "2123456789abcdef";
  for (const int number : {1, 2}) {
    std::filesystem::create_directories(submission_folder(root.path(), number));
    if (number == 1) continue;  // nothing was submitted there
    write_submission(
        {submission_folder(root.path(), number), "sb-x-1", {{a, b}, {c}}, {{"7", 0, 1}, {"8", 1, 1}}, "9"});
  }
  auto submissions = read_submissions(root.path());
  ASSERT_EQ(submissions.size(), 1U);
  EXPECT_EQ(submissions[0].table_job, "9");
  const auto queue = tasks_in_queue(
      submissions, "7|0|RUNNING|n1|None|x\n8|0|FAILED|n1|x|x\n8|5|PENDING||x|x\n9|N/A|PENDING||x|x\n\nx\n|||||\n");
  ASSERT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.at(a).job, "7_0");
  EXPECT_EQ(queue.at(b).node, "n1");
  const auto over = tasks_in_accounting(submissions, "8_0|NODE_FAIL|n2|0:0\n8|COMPLETED|n2|0:0\n8_x|A|b|c\n");
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over.at(c).state, "NODE_FAIL");
  EXPECT_EQ(over.at(c).log, submissions[0].folder + "/8_0.log");
  const std::string run = "[[\"" + a + "\"]]";
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"),
        R"x({"jobs":[{"id":"$(x)","first":0,"count":1}],"tasks":)x" + run + "}",
        R"x({"jobs":[{"id":"1","first":1,"count":9}],"tasks":)x" + run + "}",
        R"x({"jobs":[{"id":"","first":0,"count":1}],"tasks":)x" + run + "}",
        R"x({"label":"a b","jobs":[{"id":"1","first":0,"count":1}],"tasks":)x" + run + "}",
        R"x({"table_job":"x","jobs":[{"id":"1","first":0,"count":1}],"tasks":)x" + run + "}",
        R"x({"jobs":[{"id":"1","first":0,"count":1}],"tasks":"1"})x" + std::string(),
        R"x({"jobs":[{"id":"1","first":0,"count":1}],"tasks":[["../x"]]})x" + std::string()}) {
    write_file_atomically(submissions[0].folder + "/submission.json", text);
    EXPECT_TRUE(read_submissions(root.path()).empty()) << text;
  }
}

TEST(Slurm, MissingSubmissionFolderDoesNotHideLaterOnes) {
  TemporaryFolder root;
  EXPECT_EQ(last_submission(root.path()), 0);
  for (const int number : {1, 3}) {
    std::filesystem::create_directories(submission_folder(root.path(), number));
    write_submission({submission_folder(root.path(), number), "l", {{"0123456789abcdef"}}, {{"7", 0, 1}}, ""});
  }
  EXPECT_EQ(last_submission(root.path()), 3);
  EXPECT_EQ(read_submissions(root.path()).size(), 2U);
}

TEST(Slurm, ParsesKnownStatesOnly) {
  for (const char* text : {"CANCELLED by 1000", "CANCELLED+", "Cancelled", "CANCELLED"}) {
    const auto state = slurm_state(text);
    ASSERT_TRUE(state) << text;
    EXPECT_EQ(state->name, "CANCELLED");
    EXPECT_FALSE(state->alive);
  }
  EXPECT_TRUE(slurm_state("RUNNING")->at_work);
  EXPECT_TRUE(slurm_state("PENDING")->alive);
  EXPECT_FALSE(slurm_state("REQUEUED")->at_work);
  for (const char* text : {"", " ", "RUNNINGS", "x", "\x1b[2J", "JobID"}) EXPECT_FALSE(slurm_state(text)) << text;
}

TEST(Slurm, ParsesAccountingRobustly) {
  const std::string a = "0123456789abcdef", b = "1123456789abcdef", c = "2123456789abcdef";
  const std::vector<Submission> submissions = {{"/runs/slurm/001", "l", {{a}, {b}, {c}}, {{"7", 0, 3}}, ""},
                                               {"/runs/slurm/002", "m", {{a}}, {{"8", 0, 1}, {"", 0, 1}}, ""}};
  const auto tasks =
      tasks_in_accounting(submissions,
                          "8_0|RUNNING|None assigned|0:0\n7_0|CANCELLED by 0|n1|0:15\n"
                          "7_[1-2%4]|PENDING|None assigned|0:0\n7_1.batch|COMPLETED|n1|0:0\n"
                          "7_1.extern|COMPLETED|n1|0:0\n7_2|SOMETHING_NEW|n1|0:0\n"
                          "7_99999999999999999999|FAILED|n1|1:0\n7_[|FAILED|n|1:0\n7_[9-1]|FAILED|n|1:0\n"
                          "7_[0-99999999999]|FAILED|n|1:0\n_0|FAILED|n|1:0\n|||\nJobID|State|a|b\n");
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks.at(a).job, "8_0") << "its last one, in whatever order they are listed";
  EXPECT_TRUE(tasks.at(a).alive);
  EXPECT_EQ(tasks.at(a).node, "");
  EXPECT_EQ(tasks.at(b).state, "PENDING");
  EXPECT_EQ(tasks.at(c).job, "7_2");
}

TEST(Slurm, FindsUnrecordedJobByName) {
  const std::string a = "0123456789abcdef", b = "1123456789abcdef";
  std::vector<Submission> submissions = {{"/runs/slurm/001", "sb-x-1a2b", {{a}, {b}}, {{"7", 0, 1}, {"", 1, 1}}, ""}};
  const auto queue = tasks_in_queue(submissions,
                                    "7|0|RUNNING|n1|None|sb-x-1a2b-0\n9|0|PENDING||Priority|sb-x-1a2b-1\n"
                                    "10|N/A|PENDING||Dependency|sb-x-1a2b-table\n11|0|PENDING||x|sb-x-ffff-1\n");
  EXPECT_EQ(queue.at(b).job, "9_0");
  EXPECT_EQ(submissions[0].jobs[1].id, "9");
  EXPECT_EQ(submissions[0].table_job, "10");
  EXPECT_TRUE(submissions[0].changed);
}

// A folder of tools that comes first where programs are looked for, for as long as this lives.
class ToolsOnPath {
 public:
  ToolsOnPath() : before_(std::getenv("PATH")) { ::setenv("PATH", (folder_.path() + ":" + before_).c_str(), 1); }
  ~ToolsOnPath() { ::setenv("PATH", before_.c_str(), 1); }
  void add(const std::string& name, const std::string& script) const {
    write_file_atomically(folder_.file(name), "#!/bin/sh\n" + script);
    ASSERT_EQ(::chmod(folder_.file(name).c_str(), 0700), 0);
  }

 private:
  TemporaryFolder folder_;
  std::string before_;
};

TEST(Slurm, IgnoresUserFiltersOfSlurmTools) {
  const ToolsOnPath tools;
  tools.add("squeue", "env | grep -E '^(SQUEUE|SACCT|SBATCH|SLURM)_' | sort\n");
  ::setenv("SQUEUE_STATES", "RUNNING", 1);
  ::setenv("SACCT_LOCAL", "1", 1);
  ::setenv("SBATCH_CLUSTERS", "south", 1);
  ::setenv("SLURM_CLUSTERS", "north", 1);
  const ToolOutput said = run_tool({"squeue"}, 10);
  for (const char* name : {"SQUEUE_STATES", "SACCT_LOCAL", "SBATCH_CLUSTERS", "SLURM_CLUSTERS"}) ::unsetenv(name);
  EXPECT_EQ(said.out, "SLURM_CLUSTERS=north\n");
}

TEST(Slurm, AsksQueueIfSbatchOutcomeIsUnclear) {
  const ToolsOnPath tools;
  const auto submitted = [] { return submit_job({"sbatch"}, "sb-x-1a2b-0", 0.5); };
  tools.add("squeue", "echo '12|sb-x-1a2b-00'\necho '13|sb-x-1a2b-0'\n");
  for (const char* script :
       {"sleep 600\n", "echo 'sbatch: error: Socket timed out on send/recv operation' >&2\nexit 1\n",
        "echo 'sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received' >&2\nexit 1\n",
        "echo 'sbatch: error: Unable to contact slurm controller (receive failure)' >&2\nexit 1\n", "echo welcome\n",
        "kill -9 $$\n"}) {
    tools.add("sbatch", script);
    EXPECT_EQ(submitted().id, "13") << script;
  }
  tools.add("squeue", "exit 1\n");
  tools.add("sbatch", "kill -9 $$\n");
  EXPECT_EQ(submitted().id, "");
  EXPECT_FALSE(submitted().certain);
  tools.add("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2\nexit 1\n");
  const Submitted refused = submitted();
  EXPECT_TRUE(refused.certain);
  EXPECT_EQ(refused.id, "");
  EXPECT_EQ(refused.complaint, "sbatch: error: invalid partition specified: x");
  tools.add("sbatch", "echo '14;cluster'\n");
  EXPECT_EQ(submitted().id, "14");
}

}  // namespace
}  // namespace sb
