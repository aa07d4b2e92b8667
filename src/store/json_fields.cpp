#include "store/json_fields.h"

#include <set>

#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

using Parsed = nlohmann::json;
constexpr int deepest = 16;
constexpr size_t most_values = 500'000;

// Bounds bytes, depth and number of values. The depth matters because nlohmann copies and destroys values recursively,
// although its parser does not recurse.
void check_extent(std::string_view text, size_t most_bytes, const char* where, const std::string& file) {
  const auto refuse = [&](const std::string& what) { throw bad_input(where, what + ", " + printable(file, 400)); };
  if (text.size() > most_bytes) refuse("expected at most " + bytes_text(static_cast<double>(most_bytes)) + " of JSON");
  int depth = 0;
  size_t values = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    quoted = c == '"';
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == '[' || c == '{' || c == ',') ++values;
    if (depth > deepest) refuse("JSON nested deeper than " + std::to_string(deepest));
    if (values > most_values) refuse("JSON of more than " + std::to_string(most_values) + " values");
  }
}

std::string shown(const Parsed* value) {
  if (!value) return "nothing";
  if (value->is_object()) return "an object";
  if (value->is_array()) return "a list of " + std::to_string(value->size());
  return printable(value->dump(-1, ' ', true, Parsed::error_handler_t::replace));
}

}  // namespace

Parsed parse_bounded(std::string_view text, size_t most_bytes, const char* where, const std::string& file) {
  check_extent(text, most_bytes, where, file);
  std::vector<std::set<std::string>> open;
  bool twice = false;
  const Parsed::parser_callback_t watch = [&](int, Parsed::parse_event_t event, Parsed& value) {
    if (event == Parsed::parse_event_t::object_start) open.emplace_back();
    if (event == Parsed::parse_event_t::object_end) open.pop_back();
    if (event == Parsed::parse_event_t::key) twice = twice || !open.back().insert(value.get<std::string>()).second;
    return true;
  };
  Parsed parsed = Parsed::parse(text, watch, false);
  if (!parsed.is_object()) throw bad_input(where, "expected a JSON object, " + printable(file, 400));
  if (twice) throw bad_input(where, "an object with the same key twice, " + printable(file, 400));
  return parsed;
}

FieldReader::FieldReader(const Parsed& in, const char* key, const FieldReader& outer)
    : in_(in), where_(outer.where_), file_(outer.file_), outer_(&outer), key_(key) {
  if (!in.is_object()) outer.refuse(key, "an object", &in);
}

void FieldReader::refuse(const std::string& key, const std::string& expected, const Parsed* got) const {
  std::string path = key;
  for (const FieldReader* r = this; r->outer_; r = r->outer_) path = std::string(r->key_) + "." + path;
  throw bad_input(where_, path + ": expected " + expected + ", got " + shown(got) + ", " + printable(file_, 400));
}

const Parsed* FieldReader::find(const char* key) const {
  const auto found = in_.find(key);
  return found == in_.end() ? nullptr : &*found;
}

const Parsed& FieldReader::required(const char* key) const {
  const Parsed* found = find(key);
  if (!found) refuse(key, "a value", nullptr);
  return *found;
}

const Parsed* FieldReader::find_list(const char* key, size_t most) const {
  const Parsed* list = find(key);
  if (list && (!list->is_array() || list->size() > most)) {
    refuse(key, "a list of at most " + std::to_string(most), list);
  }
  return list;
}

double FieldReader::as_real(const Parsed& value, const char* key, double low, double high) const {
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!(number >= low && number <= high)) refuse(key, shortest(low) + ".." + shortest(high), &value);
  return number;
}

int64_t FieldReader::as_whole(const Parsed& value, const char* key, int64_t least, int64_t most) const {
  // The parser stores non-negative integers as uint64, which may exceed int64.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  const int64_t number = fits ? value.get<int64_t>() : 0;
  if (!fits || number < least || number > most) {
    refuse(key, "an integer in " + std::to_string(least) + ".." + std::to_string(most), &value);
  }
  return number;
}

std::string FieldReader::as_text(const Parsed& value, const char* key, size_t most) const {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > most) {
    refuse(key, "text of at most " + std::to_string(most) + " bytes", value.is_string() ? nullptr : &value);
  }
  return value.get<std::string>();
}

void FieldReader::seed(const char* key, uint64_t& value) {
  const Parsed& found = required(key);
  if (!found.is_number_unsigned()) refuse(key, "an unsigned 64-bit integer", &found);
  value = found.get<uint64_t>();
}

void FieldReader::truth(const char* key, bool& value) {
  const Parsed& found = required(key);
  if (!found.is_boolean()) refuse(key, "true or false", &found);
  value = found.get<bool>();
}

void FieldReader::texts(const char* key, std::vector<std::string>& values, size_t most) {
  const Parsed* list = find_list(key, most);
  if (!list) return;
  for (const auto& item : *list) values.push_back(as_text(item, key, most_text));
}

void FieldReader::texts(const char* key, std::map<std::string, std::string>& values, size_t most) {
  const Parsed& object = required(key);
  if (!object.is_object() || object.size() > most) {
    refuse(key, "an object of at most " + std::to_string(most), &object);
  }
  for (const auto& [name, value] : object.items()) {
    if (name.size() > most_text) refuse(key, "names of at most " + std::to_string(most_text) + " bytes", &object);
    values[name] = as_text(value, key, most_text);
  }
}

}  // namespace sb
