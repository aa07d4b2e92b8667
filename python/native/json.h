// Converts parts of a result to and from the JSON exchanged between the native module and the Python package.
#pragma once
#include <string>

#include "store/result_fields.h"

namespace sb::python {

template <class T>
std::string json_of(const T& value) {
  FieldWriter writer;
  describe(writer, value);
  return writer.out.dump();
}

template <class T>
T from_json(const std::string& text, const char* what) {
  const nlohmann::json parsed = parse_bounded(text, kMaxResultBytes, "record", what);
  FieldReader reader(parsed, "record", what);
  T out;
  describe(reader, out);
  return out;
}

}  // namespace sb::python
