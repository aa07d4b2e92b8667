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

void expect_memory(const std::string& where, const std::string& text) {
  if (text.empty()) return;
  const bool unit = std::string("KMGT").find(text.back()) != std::string::npos;
  const auto number = parse_unsigned(text.substr(0, text.size() - (unit ? 1 : 0)));
  if (!number || *number == 0 || *number > 1'000'000'000)
    throw bad_input(where, "expected a size such as 16G or 4000M, got '" + printable(text) + "'");
}

bool has_no_unit(const std::string& memory) {
  return !memory.empty() && memory.back() >= '0' && memory.back() <= '9';
}

std::string key_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

// sbatch takes what begins like an option for it.
template <class Names>
bool begins_one_of(const Names& names, const std::string& key) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view each) { return each.starts_with(key); });
}

// Options of sbatch that are made here, those that would put something else in the place of the script or keep a job's
// number from us, and other clusters than the one whose queue is asked.
bool is_ours(const std::string& word) {
  static constexpr std::array<std::string_view, 15> ours = {
      "--array", "--dependency", "--parsable", "--wrap",       "--wait",    "--test-only", "--clusters", "--output",
      "--error", "--job-name",   "--signal",   "--no-requeue", "--requeue", "--time",      "--quiet"};
  if (word.starts_with("--")) return key_of(word).size() > 2 && begins_one_of(ours, key_of(word));
  return word.size() > 1 && word.front() == '-' &&
         std::string_view("adWMoetJQ").find(word[1]) != std::string_view::npos;
}

// A word that is not whole by itself would take the next one, the script's path, for its value.
bool is_whole_option(const std::string& word) {
  static constexpr std::array<std::string_view, 14> flags = {
      "--contiguous", "--exclusive",     "--get-user-env", "--hold",   "--ignore-pbs", "--nice",          "--no-kill",
      "--overcommit", "--oversubscribe", "--propagate",    "--reboot", "--spread-job", "--use-min-nodes", "--verbose"};
  static constexpr std::string_view short_flags = "HOksv";
  if (!word.starts_with("--")) {
    if (word.size() < 2 || word.front() != '-' || !is_letter_or_digit(word[1])) return false;
    return (short_flags.find(word[1]) != std::string_view::npos) == (word.size() == 2);
  }
  if (std::find(flags.begin(), flags.end(), word) != flags.end()) return true;
  const std::string key = key_of(word).substr(2);
  return !key.empty() && key.front() != '-' && word.size() > key.size() + 3 &&
         std::all_of(key.begin(), key.end(), [](char c) { return is_letter_or_digit(c) || c == '-'; });
}

std::vector<std::string> words_of(const std::string& text, const std::string& where) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127)
      throw bad_input(where, "expected no control characters, got '" + printable(text, 200) + "'");
    if (quote == 0 && c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) throw bad_input(where, "expected a closing quote, got '" + printable(text, 200) + "'");
  if (words.empty()) words.emplace_back();  // no option either
  return words;
}

}  // namespace

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void check_slurm_values(const SlurmOptions& options) {
  const std::string& command = options.command;
  expect_name(command + " --partition", options.partition, "_.,+-");
  expect_name(command + " --account", options.account, "_.@+-");
  expect_memory(command + " --mem", options.memory);
  const double limit = options.time.empty() ? 0 : parse_slurm_time(options.time, command + " --time");
  const double notice = notice_of(options);
  if (limit > 0 && notice >= limit)
    throw bad_input(command + " --signal", "expected less than --time, got '" + printable(options.signal) + "'");
  if (notice > kMaxNotice)
    throw bad_input(command + " --signal",
                    formatted("expected at most {}s, got '{}'", kMaxNotice, printable(options.signal)));
  split_raw_options(options.raw, command + " --sbatch");
}

std::string memory_note(const SlurmOptions& options) {
  if (!has_no_unit(options.memory)) return "";
  return formatted("warning: Slurm reads --mem {} as {} megabytes; for gigabytes write --mem {}G", options.memory,
                   options.memory, options.memory);
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

std::vector<std::string> split_raw_options(const std::vector<std::string>& texts, const std::string& where) {
  std::vector<std::string> out;
  for (const auto& text : texts)
    for (auto& word : words_of(text, where)) {
      if (is_ours(word))
        throw bad_input(where,
                        "the suite sets this option itself or cannot work with it, got '" + printable(word, 200) + "'");
      if (!is_whole_option(word))
        throw bad_input(where, "expected options as --key=value, got '" + printable(word, 200) + "'");
      out.push_back(std::move(word));
    }
  return out;
}

std::vector<std::string> words_for_any_job(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 12> names = {
      "--account",   "--chdir", "--comment", "--export",    "--get-user-env", "--mail-type",
      "--mail-user", "--nice",  "--qos",     "--partition", "--reservation",  "--wckey"};
  std::vector<std::string> out;
  std::copy_if(words.begin(), words.end(), std::back_inserter(out), [&](const std::string& word) {
    return word.starts_with("--") ? begins_one_of(names, key_of(word))
                                  : std::string_view("ADpq").find(word[1]) != std::string_view::npos;
  });
  return out;
}

}  // namespace sb
