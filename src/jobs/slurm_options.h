// Options of `--slurm`, checked: sbatch receives values only as data, or they are rejected.
#pragma once
#include <string>
#include <vector>

namespace sb {

struct SlurmOptions {
  std::string command = "suite";  // name of the command in messages
  bool submit = false;            // --slurm
  bool dry_run = false;           // show only what would be submitted
  bool requeue = false;
  std::string partition, account, memory, time, signal;
  std::vector<std::string> raw;  // further words for sbatch, each an option with its value
  int cpus = 4, per_task = 1, max_parallel = 0;
};

// Throws bad_input for values that sbatch would not take as data.
void check_slurm_values(const SlurmOptions& options);

// A warning where --mem has no unit: Slurm takes it for megabytes. "" if it has one.
std::string memory_note(const SlurmOptions& options);

bool is_letter_or_digit(char c);  // of ASCII

// Converts "90", "30:00", "2:00:00", "1-12", "1-12:30" or "1-12:30:00" to seconds; throws bad_input.
double parse_slurm_time(const std::string& text, const std::string& where);
// Seconds before the time limit at which runs are asked to save.
double notice_of(const SlurmOptions& options);

// Splits at spaces; both kinds of quotes keep words together. Each word must be an option with its value, "--key=value"
// or "-kvalue", or a flag of sbatch.
std::vector<std::string> split_raw_options(const std::vector<std::string>& texts, const std::string& where);
// Keeps the words that also apply to other jobs: who owns the job and its priority, not its resources.
std::vector<std::string> words_for_any_job(const std::vector<std::string>& words);

}  // namespace sb
