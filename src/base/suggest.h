// Suggestions for mistyped names ("did you mean").
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sb {

size_t edit_distance(std::string_view a, std::string_view b);
// The candidate with the smallest edit distance to `typed`; "" if every distance exceeds a third of the letters (at
// least 2).
std::string nearest(std::string_view typed, const std::vector<std::string>& candidates);
// ", did you mean X?" or "".
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& candidates);
// The candidates, sorted by edit distance to `typed`.
std::vector<std::string> nearest_first(std::string_view typed, std::vector<std::string> candidates);
// "a, b or c"
std::string join_or(const std::vector<std::string>& names);
// Like join_or for up to `most` names; for more, "a, b or one of 502 others".
std::string join_some(const std::vector<std::string>& names, size_t most);

}  // namespace sb
