// Config and suite readers: any bytes give a value or one line a fault, and what resolves survives its own text.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "suites/suite.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

// One line a fault.
void check_line(const sb::Error& error) {
  const std::string lines = error.what();
  expect(error.code() == sb::Exit::bad_input && lines.starts_with("["));
  for (size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', end + 1))
    expect(lines.substr(end + 1).starts_with("["));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Reading other files is not what is tested here.
  if (size > 4096 || text.find("extends") != std::string::npos || text.find("automaton") != std::string::npos ||
      text.find("base") != std::string::npos)
    return 0;
  const sb::ModelRules rules;
  try {
    const auto config = sb::resolve(sb::parse_settings(text, "fuzz.toml"), rules, "fuzz.toml");
    const auto again =
        sb::resolve(sb::parse_settings(sb::config_toml(config, true), "again.toml"), rules, "again.toml");
    expect(again.canonical == config.canonical);
  } catch (const sb::Error& error) {
    check_line(error);
  }
  try {
    // Large grids are legal and slow.
    if (std::count(text.begin(), text.end(), ',') < 12) sb::parse_suite(text, "fuzz.toml", {}, rules);
  } catch (const sb::Error& error) {
    check_line(error);
  }
  try {
    sb::Settings settings;
    sb::add_overrides(settings, {text});
    sb::resolve(settings, rules, "fuzz.toml");
  } catch (const sb::Error& error) {
    check_line(error);
  }
  return 0;
}
