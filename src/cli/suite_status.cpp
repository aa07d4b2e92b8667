#include "cli/suite_status.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/run_names.h"
#include "runs/checkpoint.h"
#include "runs/metrics.h"
#include "runs/run_lock.h"
#include "runs/run_store.h"

namespace sb::cli {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLargestFailure = 1 << 16;
constexpr size_t kTimingRows = 200;  // of the end, that a rate is taken over

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of a holder on another machine: both times are the file system's own.
bool beats_still(const std::string& lock, const LockRecord& record, std::optional<double> now) {
  struct stat info {};
  if (!now || ::stat(lock.c_str(), &info) != 0) return true;  // nobody says otherwise
  return *now - seconds_of(info.st_mtim) <= kMissedBeats * record.every;
}

std::string how_far(const std::string& folder, int64_t updates) {
  int64_t saved = 0;
  for (const auto& checkpoint : list_checkpoints(folder)) saved = std::max(saved, checkpoint.update);
  return formatted("{} of {} updates saved", std::min(saved, updates), updates);
}

std::string first_line(const std::string& text) {
  return printable(text.substr(0, text.find('\n')), 300);
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
  return out + formatted("update {} of {}, {} a second, {} left", pace->update, updates,
                         fixed(pace->rate, pace->rate < 10 ? 2 : 0), duration_text(left));
}

}  // namespace

const char* to_string(RunStanding standing) {
  static constexpr std::array names = {"done", "running", "waiting", "stopped", "failed", "lost", "missing"};
  return names[static_cast<size_t>(standing)];
}

std::string failure_path(const std::string& folder) {
  return folder + "/" + kFailureFile;
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
    const std::string path = folder + "/timing.jsonl", text = read_file(path, largest_metrics);
    size_t from = text.size();
    for (size_t rows = 0; rows <= kTimingRows && from > 0; ++rows) {
      const size_t line = from < 2 ? std::string::npos : text.rfind('\n', from - 2);
      from = line == std::string::npos ? 0 : line + 1;
    }
    std::vector<std::pair<int64_t, double>> walls;
    for (const auto& row : parse_metrics(std::string_view(text).substr(from), path))
      for (const auto& [name, value] : row.values)
        if (row.phase == "train" && name == "wall") walls.emplace_back(row.update, value);
    if (walls.size() < 2) return std::nullopt;
    const double seconds = walls.back().second - walls.front().second;
    if (!(seconds > 0)) return std::nullopt;
    return UpdateRate{walls.back().first + 1, static_cast<double>(walls.back().first - walls.front().first) / seconds};
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
  if (slurm.queued) return {RunStanding::waiting, of_task(*slurm.queued, true)};
  const std::string ended = slurm.over ? "; " + of_task(*slurm.over, false) : "";
  try {
    return {RunStanding::failed, first_line(read_file(failure_path(folder), kLargestFailure)) + ended};
  } catch (const Error&) {
  }
  if (held) return {RunStanding::lost, "last by " + holder_text(*record) + ", " + how_far(folder, updates) + ended};
  std::error_code ignored;
  if (record && fs::exists(folder + "/config.json", ignored))
    return {RunStanding::stopped, how_far(folder, updates) + ended};
  if (slurm.submitted) return {RunStanding::lost, "submitted, and no longer in the queue" + ended};
  return {RunStanding::missing, ""};
}

void print_status(const std::string& root, const Suite& suite, const KnownRuns& known) {
  const auto submissions = read_submissions(root);
  std::string fault;
  const auto queue = ask_queue(submissions, fault);
  if (!queue) complain("note: " + fault);
  const auto over = ask_accounting(submissions);
  std::map<std::string, bool> submitted;
  for (const auto& submission : submissions)
    for (const auto& task : submission.tasks)
      for (const auto& id : task) submitted[id] = true;
  const auto now = clock_of(root);
  const auto find = [](const auto& tasks, const std::string& id) {
    const auto found = tasks.find(id);
    return found == tasks.end() ? std::nullopt : std::optional(found->second);
  };
  const auto varying = varying_keys(suite.runs);
  using Align = TextTable::Align;
  TextTable table({}, {Align::left, Align::left, Align::left, Align::left});
  std::map<RunStanding, size_t> counts;
  for (const auto& run : suite.runs) {
    SlurmView view;
    if (queue) view.queued = find(*queue, run.run_id);
    view.over = find(over, run.run_id);
    view.submitted = submitted.contains(run.run_id);
    RunStatusLine line = known.find(run.run_id) != nullptr
                             ? RunStatusLine{RunStanding::done, "elsewhere"}
                             : run_status(root + "/" + run.run_id, run.values.train.updates, view, now);
    ++counts[line.standing];
    table.row({run.run_id, to_string(line.standing), line.text, run_name(run, varying)});
  }
  print(table.text());
  std::string sum = formatted("[suite] {} runs", suite.runs.size());
  for (const auto& [standing, count] : counts) sum += formatted(", {} {}", count, to_string(standing));
  complain(sum);
}

}  // namespace sb::cli
