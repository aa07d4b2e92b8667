#include "base/suggest.h"

#include <algorithm>
#include <numeric>

namespace sb {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> above(b.size() + 1), here(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    here[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      here[j] = std::min({replaced, above[j] + 1, here[j - 1] + 1});
    }
    std::swap(above, here);
  }
  return above[b.size()];
}

std::string nearest(std::string_view typed, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 64;
  if (typed.size() > kLongestName) return "";
  std::string best;
  size_t least = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(typed, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& candidates) {
  const std::string name = nearest(typed, candidates);
  return name.empty() ? "" : ", did you mean " + name + "?";
}

std::vector<std::string> nearest_first(std::string_view typed, std::vector<std::string> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(typed, a) < edit_distance(typed, b);
  });
  return candidates;
}

std::string join_or(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string join_some(const std::vector<std::string>& names, size_t most) {
  if (names.size() <= most) return join_or(names);
  std::vector<std::string> some(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(most));
  some.push_back("one of " + std::to_string(names.size() - most) + " others");
  return join_or(some);
}

}  // namespace sb
