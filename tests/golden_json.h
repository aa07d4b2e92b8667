// Recorded data: gzip or plain JSON files under tests/golden.
#pragma once
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace sb::test {

// zlib reads uncompressed files as they are.
inline std::string read_golden_text(const std::string& name) {
  const std::string path = std::string(SB_TEST_DATA) + "/" + name;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::string text;
  char buffer[1 << 16];
  for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  gzclose(file);
  return text;
}

inline nlohmann::json read_golden(const std::string& name) {
  return nlohmann::json::parse(read_golden_text(name));
}

}  // namespace sb::test
