#include "jobs/time_budget.h"

#include <limits>
#include <map>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {

double parse_duration(const std::string& text, const std::string& where) {
  static const std::map<char, double> units = {{'s', 1}, {'m', 60}, {'h', 3600}};
  constexpr double longest = 1000 * 3600;
  const auto unit = text.empty() ? units.end() : units.find(text.back());
  const auto number = parse_finite(unit == units.end() ? text : text.substr(0, text.size() - 1));
  const double seconds = number ? *number * (unit == units.end() ? 1 : unit->second) : 0;
  if (!(seconds >= 1 && seconds <= longest))
    throw bad_input(where, "expected a time such as 90s, 9m or 1.5h, up to 1000h, got '" + printable(text) + "'");
  return seconds;
}

TimeBudget::TimeBudget(double seconds, Clock clock)
    : limit_(seconds), clock_(std::move(clock)), end_(clock_() + seconds) {}

double TimeBudget::left() const {
  return limit_ ? end_ - clock_() : std::numeric_limits<double>::infinity();
}

std::optional<size_t> TimeBudget::next(const std::vector<std::optional<double>>& estimates) {
  if (estimates.empty()) return std::nullopt;
  if (!limit_) return 0;
  const double left = this->left();
  if (left <= 0) return std::nullopt;
  const auto first = [&](const auto& fits) -> std::optional<size_t> {
    for (size_t i = 0; i < estimates.size(); ++i)
      if (fits(estimates[i])) {
        begun_ = true;
        return i;
      }
    return std::nullopt;
  };
  if (const auto in_time = first([&](const auto& estimate) { return !estimate || *estimate <= left; })) return in_time;
  if (left < 0.1 * *limit_) return std::nullopt;
  return first([&, any = !begun_](const auto& estimate) { return any || *estimate > *limit_; });
}

}  // namespace sb
