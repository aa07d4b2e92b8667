// Reader of .npy: any bytes give an array whose values fill its shape, or one line.
#include "base/npy.h"

#include <cstdint>
#include <cstdlib>

#include "base/error.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    const sb::NpyArray array = sb::parse_npy(bytes, "fuzz");
    uint64_t values = 1;
    for (const uint64_t each : array.shape) values *= each;
    expect(array.values.size() == values * static_cast<uint64_t>(array.width));
  } catch (const sb::Error& error) {
    const std::string line = error.what();
    expect(error.code() == sb::Exit::bad_input && line.find('\n') == std::string::npos);
  }
  return 0;
}
