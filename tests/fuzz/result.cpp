// Readers of results and saved evaluations: any bytes give a value or one line, and what was read survives its own
// text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "store/evaluation_file.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

template <class Read, class Text>
void check(const std::string& text, const Read& read, const Text& text_of) {
  try {
    const auto value = read(text, "fuzz.json");
    const std::string once = text_of(value);
    expect(text_of(read(once, "again.json")) == once);
  } catch (const sb::Error& error) {
    const std::string line = error.what();
    expect(error.code() == sb::Exit::bad_input && line.starts_with("[") && line.find('\n') == std::string::npos);
    expect(line.ends_with("fuzz.json"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text, sb::parse_result, sb::result_text);
  check(text, sb::parse_evaluation, sb::evaluation_text);
  return 0;
}
