// "did you mean": the candidate nearest to what was typed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sb {

size_t edit_distance(std::string_view a, std::string_view b);
// The nearest candidate, or "" where none is near (more than a third of the letters, at least 2, would have to change).
std::string nearest(std::string_view typed, const std::vector<std::string>& candidates);
// ", did you mean X?" or "".
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& candidates);
// The candidates, those nearest to what was typed first.
std::vector<std::string> nearest_first(std::string_view typed, std::vector<std::string> candidates);
// "a, b or c"
std::string join_or(const std::vector<std::string>& names);
// The same where there are at most `most`, else "a, b or one of 502 others".
std::string join_some(const std::vector<std::string>& names, size_t most);

}  // namespace sb
