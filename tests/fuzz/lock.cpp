// Locks are written by other machines: any bytes give nothing or a record that survives its own text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "store/lock_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto record = sb::parse_lock({reinterpret_cast<const char*>(data), size});
  if (!record) return 0;
  const std::string text = sb::lock_text(*record);
  const auto again = sb::parse_lock(text);
  if (!again || sb::lock_text(*again) != text) std::abort();
  sb::look_for(*record);
  return 0;
}
