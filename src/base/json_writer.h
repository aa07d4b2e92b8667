// Writes one JSON value piece by piece; numbers are shortest round-trip, NaN and infinities become null.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace sb {

class JsonWriter {
 public:
  // With `indent`, members and elements of the outer levels stand on lines of their own; deeper ones stay in line.
  explicit JsonWriter(bool indent = true) : indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool truth);
  template <std::integral T>
  JsonWriter& value(T number) {
    separate();
    out_ += std::to_string(number);
    return *this;
  }
  JsonWriter& null();

  template <class T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  template <class Range>
  JsonWriter& array(std::string_view name, const Range& content) {
    key(name).begin_array();
    for (const auto& item : content) value(item);
    return end_array();
  }

  const std::string& text() const { return out_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void new_line();

  std::string out_;
  bool indent_;
  int depth_ = 0;
  bool first_ = true;  // of its array or object
  bool after_key_ = false;
};

// With quotes; invalid UTF-8 is replaced by U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace sb
