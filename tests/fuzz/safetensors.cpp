// Safetensors reader: any bytes give a file whose every tensor can be read, or one line; what is read writes back.
#include "base/safetensors.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = sb::Safetensors::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    double sum = 0;
    for (const auto& tensor : file.tensors()) {
      for (const double value : tensor.as_doubles()) sum += value == value ? 1 : 0;
      expect(file.find(tensor.name) != nullptr);
    }
    expect(sum >= 0);
    const auto again = sb::Safetensors::parse(sb::write_safetensors(file.tensors(), file.metadata()), "again");
    expect(again.metadata() == file.metadata() && again.tensors().size() == file.tensors().size());
  } catch (const sb::Error& error) {
    const std::string line = error.what();
    expect(error.code() == sb::Exit::bad_input && line.find('\n') == std::string::npos);
  }
  return 0;
}
