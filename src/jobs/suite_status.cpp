#include "jobs/suite_status.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/number.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "jobs/run_names.h"
#include "store/checkpoint.h"
#include "store/metrics.h"
#include "store/run_check.h"
#include "store/run_lock.h"
#include "store/run_store.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLargestFailure = 1 << 16;
constexpr size_t kTimingRows = 200;    // last rows from which a rate is computed
constexpr double kShortUpdate = 0.02;  // seconds

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::optional<double> time_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? std::optional(seconds_of(info.st_mtim)) : std::nullopt;
}

// Whether an owner on another machine still sends heartbeats. Both times come from the clock of the file system.
bool beats_still(const std::string& lock, const LockRecord& record, std::optional<double> now) {
  const auto beat = time_of(lock);
  return !now || !beat || *now - *beat <= kMissedBeats * record.heartbeat_seconds;  // true if not known
}

std::string how_far(const std::string& folder, int64_t updates) {
  int64_t saved = 0;
  for (const auto& checkpoint : list_checkpoints(folder)) saved = std::max(saved, checkpoint.update);
  return formatted("{} of {} updates saved", std::min(saved, updates), updates);
}

bool is_number(const char* text) {
  return text != nullptr && parse_unsigned(text).has_value();
}

std::string of_task(const SlurmTask& task, bool why) {
  std::string out = "job " + printable(task.job) + ", " + printable(task.state);
  if (!task.node.empty()) out += " on " + printable(task.node);
  if (why && !task.reason.empty() && task.reason != "None") out += ", " + printable(task.reason);
  return out;
}

std::string running_text(const std::string& folder, const LockRecord& record, int64_t updates) {
  std::string out = "on " + printable(record.host, 100) + ", ";
  const auto pace = pace_of(folder);
  if (!pace) return out + how_far(folder, updates);
  const double left = static_cast<double>(std::max<int64_t>(0, updates - pace->update)) / pace->rate;
  return out + formatted("update {} of {}, {} updates/s, {} left", pace->update, updates,
                         fixed(pace->rate, pace->rate < 10 ? 2 : 0), duration_text(left));
}

}  // namespace

const char* to_string(RunStanding standing) {
  static constexpr std::array names = {"done", "running", "waiting", "stopped", "failed", "lost", "unknown", "missing"};
  return names[static_cast<size_t>(standing)];
}

std::string failure_path(const std::string& folder) {
  return folder + "/" + kFailureFile;
}

void keep_failure(const std::string& folder, const RunFailure& failure) {
  fs::create_directories(folder);
  replace_file(failure_path(folder),
               one_line(failure.line) + "\n" + (failure.task.empty() ? "" : "job " + failure.task + "\n"));
}

std::optional<RunFailure> last_failure(const std::string& folder) {
  const auto failed = time_of(failure_path(folder)), held = time_of(folder + "/lock");
  if (!failed || (held && *held > *failed) || time_of(folder + "/result.json")) return std::nullopt;
  try {
    const auto lines = split(read_file(failure_path(folder), kLargestFailure), '\n');
    RunFailure out{printable(lines[0], 300), ""};
    if (lines.size() > 1 && lines[1].starts_with("job ")) out.task = lines[1].substr(4);
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string this_slurm_task() {
  const char *job = std::getenv("SLURM_ARRAY_JOB_ID"), *index = std::getenv("SLURM_ARRAY_TASK_ID");
  return is_number(job) && is_number(index) ? std::string(job) + "_" + index : "";
}

std::optional<double> clock_of(const std::string& folder) {
  const std::string path = folder + "/clock.partial-" + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return std::nullopt;
  struct stat info {};
  const bool known = ::write(fd, "x", 1) == 1 && ::fsync(fd) == 0 && ::fstat(fd, &info) == 0;
  ::close(fd);
  ::unlink(path.c_str());
  return known ? std::optional(seconds_of(info.st_mtim)) : std::nullopt;
}

std::optional<UpdateRate> pace_of(const std::string& folder) {
  try {
    const std::string path = folder + "/timing.jsonl", text = read_file(path, kMaxMetricsBytes);
    size_t from = text.size();
    for (size_t rows = 0; rows <= kTimingRows && from > 0; ++rows) {
      const size_t line = from < 2 ? std::string::npos : text.rfind('\n', from - 2);
      from = line == std::string::npos ? 0 : line + 1;
    }
    std::map<int64_t, double> walls;  // a repeated update counts with its last time
    for (const auto& row : parse_metrics(std::string_view(text).substr(from), path))
      for (const auto& [name, value] : row.values)
        if (row.phase == "train" && name == "wall") walls[row.update] = value;
    std::vector<double> seconds;  // per update
    for (auto at = walls.begin(), before = at; at != walls.end(); before = at++)
      if (at != before)
        seconds.push_back((at->second - before->second) / static_cast<double>(at->first - before->first));
    if (seconds.empty()) return std::nullopt;
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    // Times are in milliseconds, too coarse for the median of short updates: uses the mean of those without a pause.
    const double longest = std::max(10 * *middle, kShortUpdate);
    double sum = 0, count = 0;
    for (const double each : seconds)
      if (each >= 0 && each <= longest) sum += each, ++count;
    const double typical = *middle < kShortUpdate ? sum / count : *middle;
    if (!(typical > 0)) return std::nullopt;
    return UpdateRate{walls.rbegin()->first + 1, 1 / typical};
  } catch (const Error&) {
    return std::nullopt;
  }
}

RunStatusLine run_status(const std::string& folder, int64_t updates, const SlurmView& slurm,
                         std::optional<double> now) {
  if (has_result(folder)) return {RunStanding::done, ""};
  const std::string lock = folder + "/lock";
  const auto record = lock_record(lock);
  const bool held = record && record->held;
  if (held && lock_is_held(lock).value_or(beats_still(lock, *record, now)))
    return {RunStanding::running, running_text(folder, *record, updates)};
  const auto failure = last_failure(folder);
  if (slurm.queued) {
    const SlurmTask& task = *slurm.queued;
    const auto state = slurm_state(task.state);
    if (failure && failure->task == task.job && state && state->at_work)  // other runs of the task still run
      return {RunStanding::failed, failure->line + "; " + of_task(task, false)};
    return {RunStanding::waiting, of_task(task, true) + (failure ? "; failed before: " + failure->line : "")};
  }
  std::string ended = slurm.over ? "; " + of_task(*slurm.over, false) : "";
  if (slurm.over && is_there(slurm.over->log)) ended += ", " + one_line(slurm.over->log);
  if (failure) return {RunStanding::failed, failure->line + ended};
  if (slurm.submitted && !slurm.answered && !slurm.over)
    return {RunStanding::unknown, "submitted, " + how_far(folder, updates)};
  if (held) return {RunStanding::lost, "last by " + holder_text(*record) + ", " + how_far(folder, updates) + ended};
  if (record && is_there(folder + "/config.json")) return {RunStanding::stopped, how_far(folder, updates) + ended};
  if (slurm.submitted) return {RunStanding::lost, "submitted, and no longer in the queue" + ended};
  return {RunStanding::missing, ""};
}

std::set<std::string> submitted_runs(const std::vector<Submission>& submissions, bool intended) {
  std::set<std::string> out;
  for (const auto& submission : submissions)
    for (const auto& job : submission.jobs)
      for (size_t task = job.first; task < job.first + job.count && (intended || !job.id.empty()); ++task)
        out.insert(submission.tasks[task].begin(), submission.tasks[task].end());
  return out;
}

SlurmView slurm_view(const std::string& run, const std::set<std::string>& submitted,
                     const std::optional<SlurmTasks>& queue, const SlurmTasks& accounting) {
  SlurmView view;
  view.answered = queue.has_value();
  view.submitted = submitted.contains(run);
  if (queue)
    if (const auto found = queue->find(run); found != queue->end()) view.queued = found->second;
  if (const auto found = accounting.find(run); found != accounting.end()) {
    if (!found->second.alive) view.over = found->second;
    if (found->second.alive && !queue) view.queued = found->second;
  }
  return view;
}

void print_status(const std::string& root, const Suite& suite, const KnownRuns& known, const Host& host) {
  auto submissions = read_submissions(root);
  std::string fault;
  const auto queue = ask_queue(submissions, fault);
  if (!queue) host.complain("note: " + fault + "; the state of submitted runs is unknown");
  const auto accounting = ask_accounting(submissions);
  const auto submitted = submitted_runs(submissions, !queue);  // jobs without an id count only if queue is unknown
  const auto now = clock_of(root);
  const auto names = run_names(suite.runs);
  TextTable table({}, "llll");
  std::map<RunStanding, size_t> counts;
  for (size_t i = 0; i < suite.runs.size(); ++i) {
    const ResolvedConfig& run = suite.runs[i];
    const SlurmView view = slurm_view(run.run_id, submitted, queue, accounting);
    RunStatusLine line = known.find(run.run_id) != nullptr
                             ? RunStatusLine{RunStanding::done, "elsewhere"}
                             : run_status(root + "/" + run.run_id, run.values.train.updates, view, now);
    ++counts[line.standing];
    table.row({run.run_id, to_string(line.standing), line.text, names[i]});
  }
  host.print(table.text());
  std::string sum = "[suite] " + counted(suite.runs.size(), "run");
  for (const auto& [standing, count] : counts) sum += formatted(", {} {}", count, to_string(standing));
  host.complain(sum);
}

}  // namespace sb
