// Any bytes sent to `watch` give nothing, or a request whose parts are safe to compare and to print.
#include <cstddef>
#include <cstdint>
#include <string>

#include "attempt.h"
#include "page/http_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view head(reinterpret_cast<const char*>(data), size);
  const auto request = sb::read_request(head);
  if (!request) return 0;
  expect(!request->method.empty() && request->path.find('?') == std::string::npos);
  for (const std::string* part : {&request->method, &request->path, &request->host, &request->if_none_match})
    expect(part->find_first_of("\r\n") == std::string::npos);
  return 0;
}
