// One description of a struct's fields for both directions of JSON. `describe(fields, value)` names each field with its
// bounds; FieldWriter writes the object, FieldReader checks and reads it. Absent is not zero: empty lists and absent
// optionals are not written.
#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sb {

constexpr int64_t most_count = int64_t{1} << 53;
constexpr size_t most_text = 4096;

// Parses a JSON object; rejects duplicate keys. Size, depth and number of values are bounded before parsing. Throws
// bad_input "[where] …, file".
nlohmann::json parse_bounded(std::string_view text, size_t most_bytes, const char* where, const std::string& file);

// The parameter of describe(): a `Struct` to write, which is const, or to read into.
template <class T, class Struct>
concept Described = std::is_same_v<std::remove_const_t<T>, Struct>;

class FieldWriter {
 public:
  using Json = nlohmann::ordered_json;
  static constexpr bool reading = false;
  Json out = Json::object();

  void real(const char* key, const double& value, double, double) { out[key] = value; }
  void real(const char* key, const std::optional<double>& value, double, double) {
    if (value) out[key] = *value;
  }
  template <class T>
  void whole(const char* key, const T& value, int64_t, int64_t) {
    out[key] = value;
  }
  template <class T>
  void whole(const char* key, const std::optional<T>& value, int64_t, int64_t) {
    if (value) out[key] = *value;
  }
  void seed(const char* key, const uint64_t& value) { out[key] = value; }
  void truth(const char* key, const bool& value) { out[key] = value; }
  void text(const char* key, const std::string& value, size_t = most_text) { out[key] = value; }
  void text(const char* key, const std::optional<std::string>& value, size_t = most_text) {
    if (value) out[key] = *value;
  }
  template <class T>
  void numbers(const char* key, const std::vector<T>& values, double, double, size_t) {
    if (values.empty()) return;
    Json& list = out[key] = Json::array();
    for (const auto& value : values) list.push_back(number(value));
  }
  void texts(const char* key, const std::vector<std::string>& values, size_t) {
    if (!values.empty()) out[key] = values;
  }
  void texts(const char* key, const std::map<std::string, std::string>& values, size_t) {
    Json& object = out[key] = Json::object();
    for (const auto& [name, value] : values) object[name] = value;
  }
  template <class T>
  void object(const char* key, const T& value) {
    FieldWriter inner;
    describe(inner, value);
    out[key] = std::move(inner.out);
  }
  template <class T>
  void object(const char* key, const std::optional<T>& value) {
    if (value) object(key, *value);
  }
  template <class T>
  void objects(const char* key, const std::vector<T>& values, size_t) {
    if (values.empty()) return;
    Json& list = out[key] = Json::array();
    for (const auto& value : values) {
      FieldWriter inner;
      describe(inner, value);
      list.push_back(std::move(inner.out));
    }
  }

 private:
  static Json number(double value) { return value; }
  static Json number(int value) { return value; }
  static Json number(int64_t value) { return value; }
  static Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
};

class FieldReader {
 public:
  using Json = nlohmann::json;
  static constexpr bool reading = true;

  FieldReader(const Json& in, const char* where, const std::string& file) : in_(in), where_(where), file_(file) {}

  void real(const char* key, double& value, double low, double high) { value = as_real(required(key), key, low, high); }
  void real(const char* key, std::optional<double>& value, double low, double high) {
    if (const Json* found = find(key)) value = as_real(*found, key, low, high);
  }
  template <class T>
  void whole(const char* key, T& value, int64_t least, int64_t most) {
    value = static_cast<T>(as_whole(required(key), key, least, most));
  }
  template <class T>
  void whole(const char* key, std::optional<T>& value, int64_t least, int64_t most) {
    if (const Json* found = find(key)) value = static_cast<T>(as_whole(*found, key, least, most));
  }
  void seed(const char* key, uint64_t& value);
  void truth(const char* key, bool& value);
  void text(const char* key, std::string& value, size_t most = most_text) { value = as_text(required(key), key, most); }
  void text(const char* key, std::optional<std::string>& value, size_t most = most_text) {
    if (const Json* found = find(key)) value = as_text(*found, key, most);
  }
  template <class T>
  void numbers(const char* key, std::vector<T>& values, double low, double high, size_t most) {
    const Json* list = find_list(key, most);
    if (!list) return;
    for (const auto& item : *list) values.push_back(number<T>(item, key, low, high));
  }
  void texts(const char* key, std::vector<std::string>& values, size_t most);
  void texts(const char* key, std::map<std::string, std::string>& values, size_t most);
  template <class T>
  void object(const char* key, T& value) {
    const Json& found = required(key);
    FieldReader inner(found, key, *this);
    describe(inner, value);
  }
  template <class T>
  void object(const char* key, std::optional<T>& value) {
    const Json* found = find(key);
    if (!found) return;
    FieldReader inner(*found, key, *this);
    describe(inner, value.emplace());
  }
  template <class T>
  void objects(const char* key, std::vector<T>& values, size_t most) {
    const Json* list = find_list(key, most);
    if (!list) return;
    for (const auto& item : *list) {
      FieldReader inner(item, key, *this);
      describe(inner, values.emplace_back());
    }
  }

  // Throws "[where] a.b: expected …, got …, file".
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const Json* got) const;

 private:
  FieldReader(const Json& in, const char* key, const FieldReader& outer);

  const Json* find(const char* key) const;  // null if absent
  const Json& required(const char* key) const;
  const Json* find_list(const char* key, size_t most) const;
  double as_real(const Json& value, const char* key, double low, double high) const;
  int64_t as_whole(const Json& value, const char* key, int64_t least, int64_t most) const;
  std::string as_text(const Json& value, const char* key, size_t most) const;
  template <class T>
  T number(const Json& item, const char* key, double low, double high) const {
    if constexpr (std::is_same_v<T, std::optional<double>>) {
      return item.is_null() ? std::nullopt : T(as_real(item, key, low, high));
    } else if constexpr (std::is_floating_point_v<T>) {
      return as_real(item, key, low, high);
    } else {
      return static_cast<T>(as_whole(item, key, static_cast<int64_t>(low), static_cast<int64_t>(high)));
    }
  }

  const Json& in_;
  const char* where_;
  const std::string& file_;
  const FieldReader* outer_ = nullptr;
  const char* key_ = nullptr;
};

}  // namespace sb
