// The list of figures beside them: any bytes, sealed anew or not, give names of figures or one line, and nothing that
// leads out of the folder.
#include <cstdint>
#include <string>

#include "attempt.h"
#include "page/figure_files.h"
#include "store/seal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto read = [](const std::string& text) {
    const auto digests = sb::parse_figure_list(text, "fuzz.json");
    for (const auto& [name, digest] : digests) expect(name.find('/') == std::string::npos && !name.starts_with('.'));
    expect(sb::parse_figure_list(sb::figure_list(digests), "again.json") == digests);
  };
  attempt([&] { read(bytes); });
  if (bytes.find('}') != std::string::npos) attempt([&] { read(sb::sealed_json(bytes)); });
  return 0;
}
