#include "jobs/slurm_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "jobs/time_budget.h"

namespace sb {
namespace {

constexpr size_t kLongestName = 200;
constexpr double kUsualNotice = 300;  // seconds
constexpr int kMaxNotice = 65535;     // Slurm's own bound

bool is_name(const std::string& text, const std::string& more) {
  return !text.empty() && text.size() <= kLongestName && text.front() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter_or_digit(c) || more.find(c) != std::string::npos; });
}

void expect_name(const std::string& where, const std::string& text, const std::string& more) {
  if (text.empty() || is_name(text, more)) return;
  throw bad_input(where, formatted("expected letters, digits and {}, got '{}'", more, printable(text, 200)));
}

// Whether users may not pass this option of sbatch. Such an option is set by the suite itself, replaces the script,
// hides the job id, or selects a cluster whose queue is not read. sbatch also accepts abbreviations of them.
bool is_ours(const std::string& word) {
  static constexpr std::array<std::string_view, 15> ours = {
      "--array", "--dependency", "--parsable", "--wrap",       "--wait",    "--test-only", "--clusters", "--output",
      "--error", "--job-name",   "--signal",   "--no-requeue", "--requeue", "--time",      "--quiet"};
  const std::string key = word.substr(0, word.find('='));
  if (!word.starts_with("--")) return std::string_view("adWMoetJQ").find(word[1]) != std::string_view::npos;
  return std::any_of(ours.begin(), ours.end(), [&](std::string_view each) { return each.starts_with(key); });
}

void expect_options(const std::string& where, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (!word.starts_with('-') || word.find_first_not_of('-') == std::string::npos ||
        word.find_first_of(" \t\n") < word.find('=') || word.find(" --") != std::string::npos)
      throw bad_input(where, "expected one option, as --key=value, got '" + printable(word, 200) + "'");
    if (is_ours(word))
      throw bad_input(where,
                      "the suite sets this option itself or cannot work with it, got '" + printable(word, 200) + "'");
  }
}

}  // namespace

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void check_slurm_values(const SlurmOptions& options) {
  const std::string& command = options.command;
  expect_name(command + " --partition", options.partition, "_.,+-");
  expect_name(command + " --account", options.account, "_.@+-");
  expect_name(command + " --mem", options.memory, ".");
  const double limit = options.time.empty() ? 0 : parse_slurm_time(options.time, command + " --time");
  const double notice = notice_of(options);
  if (limit > 0 && notice >= limit)
    throw bad_input(command + " --signal", "expected less than --time, got '" + printable(options.signal) + "'");
  if (notice > kMaxNotice)
    throw bad_input(command + " --signal",
                    formatted("expected at most {}s, got '{}'", kMaxNotice, printable(options.signal)));
  expect_options(command + " --sbatch", options.sbatch);
}

double parse_slurm_time(const std::string& text, const std::string& where) {
  const Error refused = bad_input(
      where, "expected a time in Slurm's format, such as 2:00:00 or 1-12:00:00, got '" + printable(text) + "'");
  const size_t dash = text.find('-');
  std::vector<uint64_t> fields;
  for (const auto& field : split(dash == std::string::npos ? text : text.substr(dash + 1), ':')) {
    const auto number = parse_unsigned(field);
    if (!number || *number > 1'000'000) throw refused;
    fields.push_back(*number);
  }
  if (fields.size() > 3) throw refused;
  uint64_t seconds = 0;
  if (dash != std::string::npos) {  // days-hours[:minutes[:seconds]]
    const auto days = parse_unsigned(text.substr(0, dash));
    if (!days || *days > 10000) throw refused;
    fields.resize(3, 0);
    seconds = ((*days * 24 + fields[0]) * 60 + fields[1]) * 60 + fields[2];
  } else if (fields.size() == 3) {
    seconds = (fields[0] * 60 + fields[1]) * 60 + fields[2];
  } else {  // minutes[:seconds]
    seconds = fields[0] * 60 + (fields.size() == 2 ? fields[1] : 0);
  }
  if (seconds == 0) throw refused;
  return static_cast<double>(seconds);
}

double notice_of(const SlurmOptions& options) {
  const double limit = options.time.empty() ? 0 : parse_slurm_time(options.time, options.command + " --time");
  if (!options.signal.empty()) return parse_duration(options.signal, options.command + " --signal");
  return limit > 0 ? std::min(kUsualNotice, std::floor(limit / 4)) : kUsualNotice;
}

}  // namespace sb
