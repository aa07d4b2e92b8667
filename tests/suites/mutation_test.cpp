#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "../config/model_rules.h"
#include "suites/suite.h"

namespace sb::test {
namespace {

const std::string run_file = R"(# a whole run
[grammar]
vocab = 21
ambiguities = 20
depth = 20
seed = 3
[task]
number = 2
gap_max = 8
noise = 0.25
length = 100
stream = "direct"
[model]
name = "mamba2"
width = 64
layers = 2
d_state = 16
complementary = false
[train]
updates = 200
batch = 16
accumulate = 2
lr = 1e-3
warmup = 20
precision = "fp32"
[eval]
every = 50
gaps = [10, 20, 50]
valid_samples = 100
[quirks]
first_lr_zero = true
[run]
seed = 2
label = "small"
)";

const std::string suite_file = R"(
[suite]
name = "grid"
[grid]
model.name = ["mamba", "gla"]
run.seed = [1, 2]
size = [{grammar.vocab = 11, grammar.ambiguities = 10}, {grammar.vocab = 21, grammar.ambiguities = 20}]
[train]
updates = 10
[[override]]
when = {model.name = "mamba", run.seed = [1, 2]}
set = {model.d_state = 64}
)";

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (uint32_t n = 1 + pick(3); n > 0; --n) once(text);
    return text;
  }

 private:
  uint32_t pick(size_t n) { return static_cast<uint32_t>(random_() % n); }

  void once(std::string& text) {
    static const std::vector<std::string> values = {
        "-1",          "0",  "1e400", "nan",        "\"x\"", "[]", "[[1]]", "true", "1.5", "9223372036854775808",
        "99999999999", "{}", "''",    "1979-05-27", "#"};
    if (text.empty()) return;
    const size_t at = pick(text.size());
    const size_t line_end = std::min(text.find('\n', at), text.size());
    const size_t line_begin = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at);
    switch (pick(9)) {
      case 0:
        text[at] = static_cast<char>(pick(256));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(pick(256)));
        break;
      case 2:
        text.erase(at, 1);
        break;
      case 3:
        text.erase(std::min(line_begin, line_end), line_end - std::min(line_begin, line_end));
        break;
      case 4:
        text.insert(line_end, text.substr(line_begin, line_end - std::min(line_begin, line_end)));
        break;
      case 5:
        text.resize(at);
        break;
      case 6:
        std::swap(text[at], text[pick(text.size())]);
        break;
      default:
        if (const size_t equals = text.find("= ", at); equals != std::string::npos) {
          const size_t end = std::min(text.find('\n', equals), text.size());
          text.replace(equals + 2, end - equals - 2, values[pick(values.size())]);
        }
    }
  }

  std::mt19937 random_;
};

// Valid, or lines that each end in a place, and code 2; returns whether it was refused.
template <class Read>
bool refused_with_places(const std::string& text, const Read& read) {
  static const std::regex ends_in_place(R"(, run\.toml:[0-9]+:[0-9]+( \([0-9]+ of [0-9]+ runs\))?$)");
  try {
    read(text);
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input) << text;
    std::istringstream lines(error.what());
    std::set<std::string> seen;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(std::regex_search(line, ends_in_place)) << line << "\n" << text;
      EXPECT_TRUE(line.starts_with("[")) << line;
      EXPECT_TRUE(seen.insert(line).second) << "said twice: " << line;
    }
    EXPECT_FALSE(seen.empty());
    return true;
  }
}

TEST(MutatedConfigs, AreValidOrRejectedWithLocationOfEveryError) {
  ASSERT_EQ(fault_of(run_file), "");
  int refused = 0;
  for (uint32_t seed = 0; seed < 400; ++seed)
    refused += refused_with_places(Mutator(seed).mutate(run_file), [](const std::string& text) { resolve_text(text); });
  EXPECT_GE(refused, 200);
}

TEST(MutatedSuites, AreValidOrRejectedWithLocationOfEveryError) {
  const auto read = [](const std::string& text) { return parse_suite(text, "run.toml", {}, rules()); };
  ASSERT_EQ(read(suite_file).runs.size(), 8U);
  int refused = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) refused += refused_with_places(Mutator(seed).mutate(suite_file), read);
  EXPECT_GE(refused, 150);
}

}  // namespace
}  // namespace sb::test
