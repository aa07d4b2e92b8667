#include "config/size_match.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

// 4,700,000 or 1.5
std::string amount_text(double value) {
  return value == std::floor(value) && value < 1e18 ? grouped(static_cast<uint64_t>(value)) : shortest(value);
}

}  // namespace

const std::vector<std::string>& matched_size_names() {
  static const std::vector<std::string> names = {"params", "state", "flops"};
  return names;
}

std::optional<MatchedSize> parse_matched_size(std::string_view name) {
  const auto& names = matched_size_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<MatchedSize>(found - names.begin());
}

const char* to_string(MatchedSize size) {
  return matched_size_names()[static_cast<size_t>(size)].c_str();
}

const char* in_words(MatchedSize size) {
  static constexpr const char* words[] = {"parameters", "state elements per layer", "FLOPs per token"};
  return words[static_cast<size_t>(size)];
}

std::string size_fault(const SizeMatch& asked, const std::optional<SizeFound>& nearest) {
  std::string what;
  if (!nearest) {
    what = formatted("no width has any {} with these switches", in_words(asked.by));
  } else if (std::abs(nearest->size - asked.target) > kMatchTolerance * asked.target) {
    what = formatted("the nearest is width {} with {}", nearest->width, amount_text(nearest->size));
  } else {
    return "";
  }
  return formatted("{}, expected {} {} within {} %", what, amount_text(asked.target), in_words(asked.by),
                   100 * kMatchTolerance);
}

std::vector<std::string> match_lines(const std::vector<MatchedNetwork>& networks) {
  std::map<std::pair<MatchedSize, double>, std::vector<const MatchedNetwork*>> targets;
  for (const auto& each : networks) targets[{each.by, each.target}].push_back(&each);
  std::vector<std::string> lines;
  for (const auto& [asked, found] : targets) {
    const auto by_size = [](const auto* a, const auto* b) {
      return std::pair(a->size, a->model) < std::pair(b->size, b->model);
    };
    const auto [least, most] = std::minmax_element(found.begin(), found.end(), by_size);
    const auto end_of = [&asked = asked](const MatchedNetwork& each) {
      return formatted("{} ({})", fixed(each.size / asked.second, 3), printable(each.model));
    };
    const std::string closely = found.size() == 1 ? end_of(**least) : end_of(**least) + " to " + end_of(**most);
    lines.push_back(formatted("{} matched to {}: {} of it", in_words(asked.first), amount_text(asked.second), closely));
  }
  return lines;
}

}  // namespace sb
