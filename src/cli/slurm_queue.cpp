#include "cli/slurm_queue.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/slurm_job.h"
#include "cli/tool.h"
#include "runs/json_fields.h"

namespace sb::cli {
namespace {

constexpr size_t kLargestSubmission = size_t{64} << 20;
constexpr int kMostSubmissions = 100000;
constexpr double kPatience = 120;          // seconds; Slurm's own tools give up before
constexpr size_t kUsualArrayLimit = 1001;  // MaxArraySize where nothing is said

std::string submission_path(const std::string& folder) {
  return folder + "/submission.json";
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string::npos;
}

bool is_run_id(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Submission parse_submission(const std::string& text, const std::string& folder) {
  const std::string path = submission_path(folder);
  const nlohmann::json document = parse_bounded(text, kLargestSubmission, "suite", path);
  const auto refused = [&] { return bad_input("suite", printable(path, 400) + ": expected jobs and tasks"); };
  Submission out;
  out.folder = folder;
  try {
    for (const auto& task : document.at("tasks")) {
      out.tasks.push_back(task.get<std::vector<std::string>>());
      if (!std::all_of(out.tasks.back().begin(), out.tasks.back().end(), is_run_id)) throw refused();
    }
    for (const auto& job : document.at("jobs")) {
      Submission::Job each{job.at("id").get<std::string>(), job.at("first").get<size_t>(),
                           job.at("count").get<size_t>()};
      if (!is_number(each.id) || each.first > out.tasks.size() || each.count > out.tasks.size() - each.first)
        throw refused();
      out.jobs.push_back(std::move(each));
    }
    out.table_job = document.value("table_job", "");
  } catch (const nlohmann::json::exception&) {
    throw refused();
  }
  return out;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out = {""};
  for (const char c : text) {
    if (c == at) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// Tasks of all submissions by job and index. A run that was submitted again is found under its last task.
class TaskFinder {
 public:
  explicit TaskFinder(const std::vector<Submission>& submissions) {
    for (const auto& submission : submissions)
      for (const auto& job : submission.jobs) known_[job.id] = {&submission, &job};
  }

  void add(std::map<std::string, SlurmTask>& out, const std::string& job, const std::string& index,
           const SlurmTask& task) const {
    const auto found = known_.find(job);
    const auto number = parse_unsigned(index);
    if (found == known_.end() || !number || *number >= found->second.second->count) return;
    const auto& [submission, array] = found->second;
    SlurmTask each = task;
    each.job = job + "_" + index;
    each.log = log_path(submission->folder, job, *number);
    for (const auto& run : submission->tasks[array->first + *number]) out.insert_or_assign(run, each);
  }

 private:
  std::map<std::string, std::pair<const Submission*, const Submission::Job*>> known_;
};

}  // namespace

std::string submission_folder(const std::string& root, int number) {
  return formatted("{}/slurm/{:03}", root, number);
}

void write_submission(const Submission& submission) {
  Json jobs = Json::array();
  for (const auto& job : submission.jobs) jobs.push_back({{"id", job.id}, {"first", job.first}, {"count", job.count}});
  const Json document = {{"jobs", std::move(jobs)}, {"table_job", submission.table_job}, {"tasks", submission.tasks}};
  write_file_atomically(submission_path(submission.folder), json_document(document, 2));
}

std::vector<Submission> read_submissions(const std::string& root) {
  std::vector<Submission> out;
  for (int number = 1; number < kMostSubmissions; ++number) {
    const std::string folder = submission_folder(root, number);
    if (::access(folder.c_str(), F_OK) != 0) break;
    try {
      Submission each = parse_submission(read_file(submission_path(folder), kLargestSubmission), folder);
      if (!each.jobs.empty()) out.push_back(std::move(each));
    } catch (const Error&) {  // it was stopped before anything was submitted
    }
  }
  return out;
}

std::map<std::string, SlurmTask> tasks_in_queue(const std::vector<Submission>& submissions, const std::string& lines) {
  static const std::set<std::string> over = {"COMPLETED", "FAILED",        "CANCELLED", "TIMEOUT",  "NODE_FAIL",
                                             "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"};
  const TaskFinder finder(submissions);
  std::map<std::string, SlurmTask> out;
  for (const auto& line : split(lines, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() < 5 || over.contains(fields[2])) continue;
    finder.add(out, fields[0], fields[1], {"", fields[2], fields[3], fields[4], ""});
  }
  return out;
}

std::map<std::string, SlurmTask> tasks_in_accounting(const std::vector<Submission>& submissions,
                                                     const std::string& lines) {
  const TaskFinder finder(submissions);
  std::map<std::string, SlurmTask> out;
  for (const auto& line : split(lines, '\n')) {
    const auto fields = split(line, '|');
    const size_t bar = fields[0].find('_');
    if (fields.size() < 4 || bar == std::string::npos) continue;
    finder.add(out, fields[0].substr(0, bar), fields[0].substr(bar + 1), {"", fields[1], fields[2], fields[3], ""});
  }
  return out;
}

std::optional<std::map<std::string, SlurmTask>> ask_queue(const std::vector<Submission>& submissions,
                                                          std::string& fault) {
  if (submissions.empty()) return std::map<std::string, SlurmTask>{};
  const ToolOutput said =
      run_tool({"squeue", "--noheader", "--array", "--format=%F|%K|%T|%N|%r", "--user=" + std::to_string(::getuid())},
               kPatience);
  if (said.found && said.code == 0) return tasks_in_queue(submissions, said.out);
  fault = "squeue: " + complaint_of(said);
  return std::nullopt;
}

std::map<std::string, SlurmTask> ask_accounting(const std::vector<Submission>& submissions) {
  std::vector<std::string> ids;
  for (const auto& submission : submissions)
    for (const auto& job : submission.jobs) ids.push_back(job.id);
  if (ids.empty()) return {};
  const ToolOutput said = run_tool({"sacct", "--noheader", "--parsable2", "--allocations", "--array",
                                    "--format=JobID,State,NodeList,ExitCode", "--jobs=" + joined(ids, ",")},
                                   kPatience);
  return said.found && said.code == 0 ? tasks_in_accounting(submissions, said.out) : std::map<std::string, SlurmTask>{};
}

size_t ask_array_limit() {
  const ToolOutput said = run_tool({"scontrol", "show", "config"}, kPatience);
  for (const auto& line : split(said.out, '\n')) {
    if (!line.starts_with("MaxArraySize")) continue;
    const size_t digits = line.find_first_of("0123456789");
    if (digits == std::string::npos) break;
    const auto limit = parse_unsigned(line.substr(digits, line.find_first_not_of("0123456789", digits) - digits));
    if (limit && *limit > 1) return *limit;
  }
  return kUsualArrayLimit;
}

}  // namespace sb::cli
