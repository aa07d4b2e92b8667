// What `--slurm` is asked for, checked: values reach sbatch as the data they are meant to be, or are refused.
#pragma once
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace sb::cli {

struct SlurmOptions {
  std::string command = "suite";  // for messages about its options
  bool submit = false;            // --slurm
  bool dry_run = false;           // only show what would be submitted
  bool requeue = false;
  std::string partition, account, memory, time, signal;
  std::vector<std::string> raw;  // words for sbatch, each an option with its value
  int cpus = 4, per_task = 1, max_parallel = 0;
};

void add_slurm_options(Arguments& arguments, SlurmOptions& options);
// Throws bad_input for options without --slurm, for those that mean nothing with it, and for what check_slurm_values
// refuses.
void check_slurm_options(const SlurmOptions& options, const Arguments& arguments);
// Throws bad_input for what sbatch would not take as the data it is meant to be.
void check_slurm_values(const SlurmOptions& options);

// A warning where --mem has no unit: Slurm takes it for megabytes. "" if it has one.
std::string memory_note(const SlurmOptions& options);

bool is_letter_or_digit(char c);  // of ASCII

// "90", "30:00", "2:00:00", "1-12", "1-12:30", "1-12:30:00" in seconds; throws bad_input.
double parse_slurm_time(const std::string& text, const std::string& where);
// Seconds before the limit that runs are asked to save.
double notice_of(const SlurmOptions& options);

// Words between spaces, quotes of either kind kept together; each must be an option with its value, "--key=value" or
// "-kvalue", or a flag of sbatch.
std::vector<std::string> split_raw_options(const std::vector<std::string>& texts, const std::string& where);
// Those of these words that say whose a job is and how urgent, not what it needs.
std::vector<std::string> words_for_any_job(const std::vector<std::string>& words);

}  // namespace sb::cli
