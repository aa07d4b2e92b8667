// UTC times as text.
#pragma once
#include <ctime>
#include <optional>
#include <string>

namespace sb {

std::string utc_text(std::time_t time);                         // 2026-01-31T12:00:00Z
std::optional<std::time_t> parse_utc(const std::string& text);  // parses utc_text(); nullopt: another format
std::string utc_minutes(std::time_t time);                      // 2026-01-31 12:00 UTC
inline std::string utc_now() {
  return utc_text(std::time(nullptr));
}

}  // namespace sb
