#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

constexpr size_t kMaxName = 64;
constexpr int kMaxPoint = 100000;               // of a test axis, as results hold it
constexpr double kMaxWhole = int64_t{1} << 53;  // bounds are doubles

bool is_name(const std::string& text) {
  constexpr const char* letters = "abcdefghijklmnopqrstuvwxyz";
  return !text.empty() && text.size() <= kMaxName &&
         std::string_view(letters).find(text[0]) != std::string_view::npos &&
         text.find_first_not_of(std::string(letters) + "0123456789_") == std::string::npos;
}

void check_name(const std::string& where, const std::string& what, const std::string& name) {
  if (!is_name(name))
    throw bad_input(where, formatted("{}, expected up to {} lower-case letters, digits and _, a letter first, got '{}'",
                                     what, kMaxName, printable(name)));
}

void check_free(const std::string& where, const std::vector<std::string>& reserved, const std::string& name) {
  for (const std::string& taken : reserved)
    if (taken == name) throw bad_input(where, "this name is reserved");
}

void check_number(const std::string& where, const TaskKey& key) {
  const bool whole = std::holds_alternative<int64_t>(key.initial);
  const auto bound = [&](double value) {
    return std::isfinite(value) && (!whole || (value == std::floor(value) && std::abs(value) <= kMaxWhole));
  };
  if (!bound(key.least) || !bound(key.most) || key.least > key.most)
    throw bad_input(where, formatted("range, expected {} with least <= most, got {:g}..{:g}",
                                     whole ? "whole numbers" : "finite numbers", key.least, key.most));
  const double initial = whole ? static_cast<double>(std::get<int64_t>(key.initial)) : std::get<double>(key.initial);
  if (!(initial >= key.least && initial <= key.most))
    throw bad_input(where, formatted("default, expected {:g}..{:g}, got {:g}", key.least, key.most, initial));
}

void check_key(const std::string& kind, const TaskKey& key) {
  const std::string where = kind + ", task." + printable(key.name);
  check_name(where, "name of a key", key.name);
  check_free(where, reserved_task_keys(), key.name);
  if (key.meaning.empty()) throw bad_input(where, "meaning, expected a text");
  const auto* text = std::get_if<std::string>(&key.initial);
  if (!text) return check_number(where, key);
  if (key.file) {
    if (!text->empty() || !key.choices.empty()) throw bad_input(where, "a file has neither default nor choices");
    return;
  }
  if (std::find(key.choices.begin(), key.choices.end(), *text) == key.choices.end())
    throw bad_input(where, "default, expected one of the choices, got '" + printable(*text) + "'");
}

void check_axis(const std::string& kind, const TestAxis& axis) {
  const std::string where = kind + ", eval." + printable(axis.key);
  check_name(where, "key of the test axis", axis.key);
  check_name(where, "name of the test axis", axis.name);
  if (axis.least < 0 || axis.most > kMaxPoint || axis.least > axis.most)
    throw bad_input(where, formatted("range of the test axis, expected least <= most within 0..{}, got {}..{}",
                                     kMaxPoint, axis.least, axis.most));
  if (axis.meaning.empty() || axis.title.empty())
    throw bad_input(where, "meaning and title of the axis, expected texts");
  if (kind == kGapsKind) return;
  check_free(where, reserved_eval_keys(), axis.key);
  if (axis.name == "gap")
    throw bad_input(where, "name of the test axis, expected another than that of gaps, got 'gap'");
}

}  // namespace

const std::vector<std::string>& reserved_task_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = {"kind", "number", "length", "stream", "objective", "noise"};
    for (const char* prefix : {"gap_", "test_gap_"})
      for (const char* key : {"law", "min", "max", "probability", "start", "content", "mu", "sigma"})
        out.push_back(std::string(prefix) + key);
    return out;
  }();
  return names;
}

const std::vector<std::string>& reserved_eval_keys() {
  static const std::vector<std::string> names = {"every", "valid_samples", "test_samples", "batch",
                                                 "gaps",  "grid_samples",  "chunk",        "ceiling_samples"};
  return names;
}

void check_row(const TaskRow& row) {
  check_name("task.kind", "name of a kind", row.name);
  if (row.make == nullptr) throw bad_input(row.name, "make, expected a function");
  if (row.about.title.empty()) throw bad_input(row.name, "about.title, expected a text");
  if (row.length < 1) throw bad_input(row.name, formatted("length, expected at least 1, got {}", row.length));
  std::set<std::string> names;
  for (const TaskKey& key : row.keys) {
    check_key(row.name, key);
    if (!names.insert(key.name).second) throw bad_input(row.name + ", task." + key.name, "duplicate key");
  }
  if (row.axis) check_axis(row.name, *row.axis);
}

}  // namespace sb
