// Archives of runs: any bytes, with the checksums of headers and the packing list made anew or not, give files or one
// line; what was read survives being written.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attempt.h"
#include "base/tar.h"
#include "store/run_tree.h"
#include "store/thinned_metrics.h"

namespace {

// So that changes behind a header are met too.
std::string summed(std::string bytes) {
  for (size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    if (bytes.compare(at + 257, 5, "ustar") != 0) continue;
    bytes.replace(at + 148, 8, "        ");
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[at + i]);
    for (size_t i = 6; i-- > 0; sum /= 8) bytes[at + 148 + i] = static_cast<char>('0' + sum % 8);
    bytes[at + 154] = '\0';
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  attempt([&] { sb::parse_archive(bytes, "fuzz.tar"); });
  attempt([&] {
    auto files = sb::parse_tar(summed(bytes), "fuzz.tar", 1000);
    for (const auto& file : files) expect(sb::is_tar_name(file.name));
    std::erase_if(files, [](const auto& file) { return file.name == sb::packing_list_name; });
    files.push_back({sb::packing_list_name, sb::packing_list(files)});
    expect(sb::parse_archive(sb::tar_bytes(files), "again.tar").size() + 1 == files.size());
  });
  attempt([&] {
    const auto thinned = sb::parse_thinned(bytes, "thinned.json");
    expect(sb::parse_thinned(sb::thinned_text(thinned), "again").rows.size() == thinned.rows.size());
  });
  return 0;
}
