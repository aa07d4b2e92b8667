#include "findings/toml_fields.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"

namespace sb {

Error toml_fault(const std::string& what, const Place& place) {
  return bad_input("claims", what + ", " + place.text());
}

Error unknown_toml_key(const TomlMember& member, const std::vector<std::string>& known) {
  return toml_fault(
      "unknown key '" + printable(member.key) + "', expected " + join_or(known) + did_you_mean(member.key, known),
      member.place);
}

void read_members(const TomlValue& table, const TomlTakers& takers) {
  if (!table.table()) throw toml_fault("expected a table, got " + shown(table), table.place);
  for (const auto& member : *table.table()) {
    const auto taker =
        std::find_if(takers.begin(), takers.end(), [&](const auto& each) { return each.first == member.key; });
    if (taker == takers.end()) {
      std::vector<std::string> known;
      for (const auto& [key, take] : takers) known.push_back(key);
      throw unknown_toml_key(member, known);
    }
    taker->second(member);
  }
}

std::string toml_string(const TomlMember& member, size_t least, size_t most) {
  const auto* text = member.value.text();
  if (!text || text->size() < least || text->size() > most)
    throw toml_fault(printable(member.key) + ": expected text of " + std::to_string(least) + " to " +
                         std::to_string(most) + " bytes, got " + shown(member.value),
                     member.value.place);
  return *text;
}

std::vector<std::string> toml_strings(const TomlMember& member) {
  const auto* list = member.value.list();
  if (!list) throw toml_fault(printable(member.key) + ": expected a list, got " + shown(member.value), member.place);
  std::vector<std::string> out;
  for (const auto& item : *list) out.push_back(toml_string({member.key, member.place, item}, 1, 200));
  return out;
}

std::string toml_choice(const TomlMember& member, const std::vector<std::string>& names) {
  const auto* text = member.value.text();
  if (!text || std::find(names.begin(), names.end(), *text) == names.end())
    throw toml_fault(printable(member.key) + ": expected " + join_or(names) + ", got " + shown(member.value) +
                         (text ? did_you_mean(*text, names) : ""),
                     member.value.place);
  return *text;
}

int64_t toml_whole(const TomlMember& member, int64_t least, int64_t most) {
  const auto* whole = std::get_if<int64_t>(&member.value.content);
  if (!whole || *whole < least || *whole > most)
    throw toml_fault(printable(member.key) + ": expected a whole number from " + std::to_string(least) + " to " +
                         std::to_string(most) + ", got " + shown(member.value),
                     member.value.place);
  return *whole;
}

double toml_real(const TomlMember& member, double low, double high) {
  const auto* whole = std::get_if<int64_t>(&member.value.content);
  const auto* real = std::get_if<double>(&member.value.content);
  const double value = whole ? static_cast<double>(*whole) : real ? *real : NAN;
  if (!(value >= low && value <= high))
    throw toml_fault(printable(member.key) + ": expected a number from " + shortest(low) + " to " + shortest(high) +
                         ", got " + shown(member.value),
                     member.value.place);
  return value;
}

bool toml_truth(const TomlMember& member) {
  if (const bool* truth = std::get_if<bool>(&member.value.content)) return *truth;
  throw toml_fault(member.key + ": expected true or false, got " + shown(member.value), member.value.place);
}

}  // namespace sb
