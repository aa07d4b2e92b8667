#include "jobs/slurm_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr double kUsualNotice = 300;  // seconds

std::vector<std::string> words_of(const std::string& text, const std::string& where) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (const char c : text) {
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
  if (options.time.empty()) return kUsualNotice;
  return std::min(kUsualNotice, std::floor(parse_slurm_time(options.time, options.command + " --time") / 4));
}

std::vector<std::string> split_raw_options(const std::vector<std::string>& texts, const std::string& where) {
  std::vector<std::string> out;
  for (const auto& text : texts)
    for (auto& word : words_of(text, where)) {
      if (word.size() < 2 || word.front() != '-' || word == "--")
        throw bad_input(where, "expected options as --key=value, got '" + printable(word, 200) + "'");
      if (word.starts_with("-M") || word.starts_with("--cl"))  // --clusters, in any abbreviation
        throw bad_input(where, "jobs on other clusters cannot be found again, got '" + printable(word, 200) + "'");
      out.push_back(std::move(word));
    }
  return out;
}

std::vector<std::string> words_for_any_job(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 13> names = {
      "--account", "--chdir", "--comment", "--export",    "--get-user-env", "--mail-type", "--mail-user",
      "--mem",     "--nice",  "--qos",     "--partition", "--reservation",  "--wckey"};
  std::vector<std::string> out;
  std::copy_if(words.begin(), words.end(), std::back_inserter(out), [&](const std::string& word) {
    if (!word.starts_with("--")) return std::string_view("ADpq").find(word[1]) != std::string_view::npos;
    // sbatch accepts the beginning of a name.
    const std::string key = word.substr(0, word.find('='));
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return name.starts_with(key); });
  });
  return out;
}

}  // namespace sb
