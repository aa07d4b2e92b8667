#include "suites/suite_match.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"

namespace sb {
namespace {

Error match_fault(const std::string& key, const std::string& what, const Place& place) {
  return bad_input("suite." + key, what + ", " + place.text());
}

double size_in(const TomlValue& item) {
  const auto* whole = std::get_if<int64_t>(&item.content);
  const auto* real = std::get_if<double>(&item.content);
  return whole ? static_cast<double>(*whole) : real ? *real : 0;
}

}  // namespace

bool take_match_key(std::optional<SuiteTargets>& match, const TomlMember& member) {
  const TomlValue& value = member.value;
  SuiteTargets now = match.value_or(SuiteTargets{{}, {}, 1, member.place});
  const auto refuse = [&](const std::string& expected) {
    throw match_fault(member.key, "expected " + expected + ", got " + shown(value), value.place);
  };
  if (member.key == "match") {
    const auto* text = value.text();
    now.by = text ? parse_matched_size(*text) : std::nullopt;
    now.place = member.place;
    if (!now.by) refuse(join_or(matched_size_names()));
  } else if (member.key == "match_target") {
    now.sizes.clear();
    for (const auto& item : value.list() ? *value.list() : TomlValue::List{value}) {
      const double size = size_in(item);
      if (!(size >= kLeastMatch && size <= kMaxMatch)) refuse("a number, or several, from 1 to 1e15");
      if (std::find(now.sizes.begin(), now.sizes.end(), size) != now.sizes.end()) refuse("each size once");
      now.sizes.push_back(size);
    }
    if (now.sizes.empty()) refuse("at least one size");
  } else if (member.key == "match_step") {
    const auto* whole = std::get_if<int64_t>(&value.content);
    if (!whole || *whole < 1 || *whole > kMaxMatchStep) refuse("an integer from 1 to " + std::to_string(kMaxMatchStep));
    now.step = static_cast<int>(*whole);
  } else {
    return false;
  }
  match = std::move(now);
  return true;
}

void check_match(const std::optional<SuiteTargets>& match, const ModelRules& rules) {
  if (!match) return;
  if (!match->by) throw match_fault("match", "required by match_target and match_step", match->place);
  if (match->sizes.empty()) throw match_fault("match", "requires match_target", match->place);
  if (!rules.match) throw match_fault("match", "matching sizes requires a program built with libtorch", match->place);
}

}  // namespace sb
