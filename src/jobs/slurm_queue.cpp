#include "jobs/slurm_queue.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/number.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "jobs/slurm_job.h"
#include "jobs/tool.h"
#include "store/json_fields.h"

namespace sb {
namespace {

constexpr size_t kLargestSubmission = size_t{64} << 20;
constexpr double kPatience = 120;          // seconds; Slurm's own tools give up before
constexpr int kMaxMissing = 10;            // consecutive missing folders after which the search stops
constexpr uint64_t kMaxIndex = 4'000'000;  // above Slurm's maximum
constexpr size_t kUsualArrayLimit = 1001;  // default of MaxArraySize

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
    out.label = document.value("label", "");
    if (!std::all_of(out.label.begin(), out.label.end(), is_of_a_name)) throw refused();
    for (const auto& task : document.at("tasks")) {
      out.tasks.push_back(task.get<std::vector<std::string>>());
      if (!std::all_of(out.tasks.back().begin(), out.tasks.back().end(), is_run_id)) throw refused();
    }
    for (const auto& job : document.at("jobs")) {
      Submission::Job each{job.at("id").get<std::string>(), job.at("first").get<size_t>(),
                           job.at("count").get<size_t>()};
      if (!is_number(each.id) && !(each.id.empty() && !out.label.empty())) throw refused();
      if (each.first > out.tasks.size() || each.count > out.tasks.size() - each.first) throw refused();
      out.jobs.push_back(std::move(each));
    }
    out.table_job = document.value("table_job", "");
    if (!out.table_job.empty() && !is_number(out.table_job)) throw refused();
  } catch (const nlohmann::json::exception&) {
    throw refused();
  }
  return out;
}

// Tasks of all submissions by job and index.
class TaskFinder {
 public:
  explicit TaskFinder(const std::vector<Submission>& submissions) : submissions_(submissions) {
    for (size_t i = 0; i < submissions.size(); ++i)
      for (const auto& job : submissions[i].jobs)
        if (!job.id.empty()) known_[job.id] = {i, &job};
  }

  void add(SlurmTasks& out, const std::string& job, const std::string& index, const SlurmTask& task) const {
    const auto found = known_.find(job);
    const auto number = parse_unsigned(index);
    if (found == known_.end() || !number || *number >= found->second.second->count) return;
    const auto& [place, array] = found->second;
    SlurmTask each = task;
    each.job = job + "_" + index;
    each.log = log_path(submissions_[place].folder, job, *number);
    each.submission = place;
    for (const auto& run : submissions_[place].tasks[array->first + *number]) {
      const auto [at, fresh] = out.try_emplace(run, each);
      if (!fresh && at->second.submission <= place) at->second = each;
    }
  }

 private:
  const std::vector<Submission>& submissions_;
  std::map<std::string, std::pair<size_t, const Submission::Job*>> known_;
};

// Expands "4", or the indices of tasks that are still listed together: "[4-6,9%2]".
std::vector<std::string> indices_of(const std::string& text) {
  if (!text.starts_with('[')) return {text};
  std::vector<std::string> out;
  const std::string inside = text.substr(1, text.find_first_of("]%") - 1);
  for (const auto& part : split(inside, ',')) {
    const size_t dash = part.find('-');
    const auto first = parse_unsigned(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_unsigned(part.substr(dash + 1));
    if (!first || !last || *last > kMaxIndex) continue;
    for (uint64_t index = *first; index <= *last; ++index) out.push_back(std::to_string(index));
  }
  return out;
}

void note_number(Submission& submission, const std::string& name, const std::string& id) {
  if (submission.label.empty() || !name.starts_with(submission.label) || !is_number(id)) return;
  const auto note = [&](std::string& number) {
    if (!number.empty()) return;
    number = id;
    submission.changed = true;
  };
  if (name == table_name(submission.label)) note(submission.table_job);
  for (auto& job : submission.jobs)
    if (name == array_name(submission.label, job.first)) note(job.id);
}

// One row per task of this user's jobs, including hidden partitions.
ToolOutput ask_squeue(const std::string& format) {
  return run_tool(
      {"squeue", "--noheader", "--all", "--array", "--format=" + format, "--user=" + std::to_string(::getuid())},
      kPatience);
}

// Whether sbatch lost its connection after it had sent the job: the job may have been accepted.
bool broke_off(const std::string& complaint) {
  static constexpr std::array<std::string_view, 7> signs = {
      "timed out", "Zero Bytes", "receive failure", "send failure", "shutdown failure", "ncomplete", "Message "};
  return std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return complaint.find(sign) != std::string::npos; });
}

}  // namespace

std::string submission_folder(const std::string& root, int number) {
  return formatted("{}/slurm/{:03}", root, number);
}

void write_submission(const Submission& submission) {
  Json jobs = Json::array();
  for (const auto& job : submission.jobs) jobs.push_back({{"id", job.id}, {"first", job.first}, {"count", job.count}});
  const Json document = {{"label", submission.label},
                         {"jobs", std::move(jobs)},
                         {"table_job", submission.table_job},
                         {"tasks", submission.tasks}};
  replace_file(submission_path(submission.folder), json_document(document, 2));
}

int last_submission(const std::string& root) {
  int last = 0;
  for (int number = 1; number < kMaxSubmissions && number <= last + kMaxMissing; ++number)
    if (::access(submission_folder(root, number).c_str(), F_OK) == 0) last = number;
  return last;
}

std::vector<Submission> read_submissions(const std::string& root) {
  std::vector<Submission> out;
  for (int number = 1, last = last_submission(root); number <= last; ++number) {
    const std::string folder = submission_folder(root, number);
    try {
      Submission each = parse_submission(read_file(submission_path(folder), kLargestSubmission), folder);
      if (!each.jobs.empty()) out.push_back(std::move(each));
    } catch (const Error&) {  // stopped before anything was submitted
    }
  }
  return out;
}

std::optional<SlurmState> slurm_state(const std::string& text) {
  static const std::set<std::string> over = {"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE",
                                             "FAILED",    "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
                                             "PREEMPTED", "RECONFIG_FAIL", "REVOKED",   "TIMEOUT"};
  static const std::set<std::string> waits = {"CONFIGURING",  "PENDING",       "REQUEUED",    "REQUEUE_FED",
                                              "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"};
  static const std::set<std::string> works = {"COMPLETING", "RESIZING",  "RUNNING", "SIGNALING",
                                              "STAGE_OUT",  "SUSPENDED", "STOPPED"};
  std::string name = text.substr(0, text.find_first_of(" +"));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  if (over.contains(name)) return SlurmState{name, false, false};
  if (waits.contains(name)) return SlurmState{name, true, false};
  if (works.contains(name)) return SlurmState{name, true, true};
  return std::nullopt;
}

SlurmTasks tasks_in_queue(std::vector<Submission>& submissions, const std::string& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& line : split(lines, '\n')) {
    auto fields = split(line, '|');
    if (fields.size() < 6) continue;
    for (auto& submission : submissions) note_number(submission, fields[5], fields[0]);
    rows.push_back(std::move(fields));
  }
  const TaskFinder finder(submissions);
  SlurmTasks out;
  for (const auto& fields : rows) {
    const auto state = slurm_state(fields[2]);
    if (state && !state->alive) continue;  // a task of unknown state is in the queue nevertheless
    finder.add(out, fields[0], fields[1], {"", state ? state->name : fields[2], fields[3], fields[4], ""});
  }
  return out;
}

SlurmTasks tasks_in_accounting(const std::vector<Submission>& submissions, const std::string& lines) {
  const TaskFinder finder(submissions);
  SlurmTasks out;
  for (const auto& line : split(lines, '\n')) {
    const auto fields = split(line, '|');
    const size_t bar = fields[0].find('_');
    if (fields.size() < 4 || bar == std::string::npos) continue;
    const auto state = slurm_state(fields[1]);
    if (!state) continue;
    const std::string node = fields[2].starts_with("None") ? "" : fields[2];
    for (const auto& index : indices_of(fields[0].substr(bar + 1)))
      finder.add(out, fields[0].substr(0, bar), index, {"", state->name, node, fields[3], "", state->alive});
  }
  return out;
}

std::optional<SlurmTasks> ask_queue(std::vector<Submission>& submissions, std::string& fault) {
  if (submissions.empty()) return SlurmTasks{};
  const ToolOutput said = ask_squeue("%F|%K|%T|%N|%r|%j");
  if (said.found && said.code == 0) return tasks_in_queue(submissions, said.out);
  fault = complaint_of(said, "squeue");
  return std::nullopt;
}

SlurmTasks ask_accounting(const std::vector<Submission>& submissions) {
  std::vector<std::string> ids;
  for (const auto& submission : submissions)
    for (const auto& job : submission.jobs)
      if (!job.id.empty()) ids.push_back(job.id);
  if (ids.empty()) return {};
  const ToolOutput said = run_tool({"sacct", "--noheader", "--parsable2", "--allocations", "--array",
                                    "--format=JobID,State,NodeList,ExitCode", "--jobs=" + joined(ids, ",")},
                                   kPatience);
  return said.found && said.code == 0 ? tasks_in_accounting(submissions, said.out) : SlurmTasks{};
}

Submitted submit_job(const std::vector<std::string>& command, const std::string& name, double seconds) {
  const ToolOutput said = run_tool(command, seconds);
  if (!said.found) return {"", "cannot start sbatch: " + complaint_of(said)};
  const std::string id = said.out.substr(0, said.out.find_first_not_of("0123456789"));  // "123" or "123;cluster"
  if (said.code == 0 && is_number(id)) return {id, ""};
  Submitted out{"", complaint_of(said, "sbatch")};
  // The controller may have accepted the job, or may still do so. Only if sbatch exited by itself with another error
  // was the job certainly not accepted.
  out.certain = said.code != 0 && said.code < 128 && !broke_off(said.err);
  if (out.certain) return out;
  for (const auto& line : split(ask_squeue("%F|%j").out, '\n')) {
    const size_t bar = line.find('|');
    if (bar != std::string::npos && line.substr(bar + 1) == name && is_number(line.substr(0, bar)))
      out.id = line.substr(0, bar);
  }
  return out;
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

}  // namespace sb
