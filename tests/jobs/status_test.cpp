// Where a run stands, by its folder and by what Slurm says or does not say.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "../base/temporary_folder.h"
#include "base/file.h"
#include "base/format.h"
#include "jobs/suite_status.h"
#include "store/run_lock.h"

namespace sb {
namespace {

using test::TemporaryFolder;

TEST(Status, UnlockedRunIsMissingWaitingStoppedFailedOrLost) {
  TemporaryFolder root;
  const std::string folder = root.file("0123456789abcdef");
  SlurmView slurm;
  const auto standing = [&] { return run_status(folder, 60, slurm, clock_of(root.path())).standing; };
  EXPECT_EQ(standing(), RunStanding::missing);
  slurm.submitted = true;
  EXPECT_EQ(standing(), RunStanding::lost);
  slurm.queued = SlurmTask{"7_0", "PENDING", "", "Priority", ""};
  EXPECT_EQ(standing(), RunStanding::waiting);
  slurm.queued.reset();
  std::filesystem::create_directories(folder);
  write_file_atomically(folder + "/config.json", "{}");
  {
    const RunLock held(folder + "/lock");
    EXPECT_EQ(standing(), RunStanding::running);
  }
  EXPECT_EQ(standing(), RunStanding::stopped);
  LockRecord record = own_record();
  record.place = "another machine";
  record.heartbeat_seconds = 3600;
  write_file_atomically(folder + "/lock", lock_text(record));
  EXPECT_EQ(standing(), RunStanding::running) << "it has just been written";
  record.heartbeat_seconds = 0.05;
  write_file_atomically(folder + "/lock", lock_text(record));
  for (int tries = 0; tries < 6000 && standing() == RunStanding::running; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(standing(), RunStanding::lost);
  keep_failure(folder, {"[memory] not enough", ""});
  EXPECT_EQ(standing(), RunStanding::failed);
  EXPECT_EQ(run_status(folder, 60, slurm, std::nullopt).standing, RunStanding::running) << "nobody says otherwise";
}

std::string timing_row(int update, double wall, const std::string& phase = "train") {
  return formatted("{{\"update\":{},\"phase\":\"{}\",\"wall\":{:.3f}}}\n", update, phase, wall);
}

std::optional<UpdateRate> pace_with(const std::string& rows) {
  TemporaryFolder root;
  write_file_atomically(root.file("timing.jsonl"), rows);
  return pace_of(root.path());
}

TEST(Status, PaceUsesLastRows) {
  EXPECT_FALSE(pace_of(TemporaryFolder().path()));
  std::string rows;
  for (int update = 0; update < 500; ++update)
    rows += timing_row(update, update < 250 ? update : 250 + (update - 250) * 0.5);
  const auto pace = pace_with(rows);
  ASSERT_TRUE(pace);
  EXPECT_EQ(pace->update, 500);
  EXPECT_NEAR(pace->rate, 2, 1e-9);
}

TEST(Status, PaceExcludesTimeBetweenSessions) {
  std::string rows;
  for (int update = 0; update <= 20; ++update) rows += timing_row(update, 1000 + 0.5 * update);
  rows += timing_row(21, 1020, "valid");
  for (int update = 20; update < 40; ++update) rows += timing_row(update, 90000 + 0.5 * update);  // a day later
  const auto pace = pace_with(rows);
  ASSERT_TRUE(pace);
  EXPECT_EQ(pace->update, 40);
  EXPECT_NEAR(pace->rate, 2, 1e-6);
}

TEST(Status, MeasuresPaceOfMillisecondUpdates) {
  std::string rows;
  for (int update = 0; update < 200; ++update)
    rows += timing_row(update, 1000 + 0.0014 * update + (update > 150 ? 9 : 0));
  const auto pace = pace_with(rows);
  ASSERT_TRUE(pace);
  EXPECT_NEAR(pace->rate, 1 / 0.0014, 20);
}

TEST(Status, SubmittedRunIsUnknownWithoutQueue) {
  TemporaryFolder root;
  const std::string run = "0123456789abcdef", folder = root.file(run);
  const auto view = [&](const std::optional<SlurmTasks>& queue, const SlurmTasks& accounting) {
    return run_status(folder, 60, slurm_view(run, {run}, queue, accounting), clock_of(root.path()));
  };
  const SlurmTask cancelled = {"7_0", "CANCELLED", "n1", "0:15", "", false}, pending = {"7_0", "PENDING", "", "", ""};
  EXPECT_EQ(view(std::nullopt, {}).standing, RunStanding::unknown);
  EXPECT_EQ(view(std::nullopt, {{run, pending}}).standing, RunStanding::waiting);
  EXPECT_EQ(view(std::nullopt, {{run, cancelled}}).standing, RunStanding::lost);
  EXPECT_EQ(view(SlurmTasks{}, {{run, pending}}).standing, RunStanding::lost) << "squeue knows better";
  EXPECT_EQ(view(SlurmTasks{{run, pending}}, {{run, cancelled}}).standing, RunStanding::waiting);
  std::filesystem::create_directories(folder);
  write_file_atomically(folder + "/config.json", "{}");
  { const RunLock held(folder + "/lock"); }
  EXPECT_EQ(view(std::nullopt, {}).standing, RunStanding::unknown) << "stopped, or about to go on";
  EXPECT_EQ(view(SlurmTasks{}, {}).standing, RunStanding::stopped);
  EXPECT_EQ(slurm_view(run, {}, std::nullopt, {}).submitted, false);
}

TEST(Status, CountsUnconfirmedSubmissionsOnlyWithoutQueue) {
  const std::string a = "0123456789abcdef", b = "1123456789abcdef";
  const std::vector<Submission> submissions = {{"/x", "l", {{a}, {b}}, {{"7", 0, 1}, {"", 1, 1}}, ""}};
  EXPECT_EQ(submitted_runs(submissions, false), std::set<std::string>{a});
  EXPECT_EQ(submitted_runs(submissions, true), (std::set<std::string>{a, b}));
}

TEST(Status, RunIsFailedDuringItsTaskAndWaitingForLaterTask) {
  TemporaryFolder root;
  const std::string folder = root.file("0123456789abcdef");
  SlurmView slurm;
  slurm.submitted = true;
  keep_failure(folder, {"[memory] not enough", "7_0"});
  const auto status = [&](const std::string& job, const std::string& state) {
    slurm.queued = SlurmTask{job, state, "n1", "", ""};
    return run_status(folder, 60, slurm, std::nullopt);
  };
  EXPECT_EQ(status("7_0", "RUNNING").standing, RunStanding::failed);
  EXPECT_EQ(status("7_0", "RUNNING").text, "[memory] not enough; job 7_0, RUNNING on n1");
  EXPECT_EQ(status("7_0", "PENDING").standing, RunStanding::waiting) << "queued again, it will be tried again";
  EXPECT_EQ(status("8_0", "RUNNING").standing, RunStanding::waiting) << "of a later submission";
  EXPECT_NE(status("8_0", "RUNNING").text.find("failed before: [memory] not enough"), std::string::npos);
}

TEST(Status, ForgetsFailureIfRunWasLockedSince) {
  TemporaryFolder root;
  const std::string folder = root.file("0123456789abcdef");
  keep_failure(folder, {"[memory] not enough", ""});
  ASSERT_TRUE(last_failure(folder));
  EXPECT_EQ(last_failure(folder)->line, "[memory] not enough");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  { const RunLock held(folder + "/lock"); }
  EXPECT_FALSE(last_failure(folder)) << "its lock is younger";
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  keep_failure(folder, {"again\nand\x1b more", "7_1"});
  EXPECT_EQ(last_failure(folder)->task, "7_1");
  EXPECT_EQ(last_failure(folder)->line.find_first_of("\n\x1b"), std::string::npos);
  write_file_atomically(folder + "/result.json", "{}");
  EXPECT_FALSE(last_failure(folder)) << "there is a result";
}

TEST(Status, FailureNamesItsTask) {
  ::unsetenv("SLURM_ARRAY_TASK_ID");
  ::setenv("SLURM_ARRAY_JOB_ID", "7", 1);
  EXPECT_EQ(this_slurm_task(), "");
  ::setenv("SLURM_ARRAY_TASK_ID", "3", 1);
  EXPECT_EQ(this_slurm_task(), "7_3");
  ::setenv("SLURM_ARRAY_TASK_ID", "3; rm", 1);
  EXPECT_EQ(this_slurm_task(), "");
  ::unsetenv("SLURM_ARRAY_JOB_ID");
  ::unsetenv("SLURM_ARRAY_TASK_ID");
}

}  // namespace
}  // namespace sb
