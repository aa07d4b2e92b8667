// Claims and experiment files: any bytes give a value or one line that names the file.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "findings/claims.h"
#include "suites/experiment.h"

namespace {

template <class Act>
void expect_one_line(const Act& act) {
  try {
    act();
  } catch (const sb::Error& error) {
    const std::string line = error.what();
    if (error.code() != sb::Exit::bad_input || !line.starts_with("[") || line.find('\n') != std::string::npos)
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (size > 8192) return 0;
  expect_one_line([&] {
    for (const auto& claim : sb::parse_claims(text, "fuzz.toml").claims)
      for (const auto& comparison : claim.comparisons)
        if (comparison.name().find('\n') != std::string::npos) std::abort();
  });
  expect_one_line([&] { sb::parse_experiment(text, "fuzz.toml"); });
  return 0;
}
