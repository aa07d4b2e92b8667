#include "base/clock.h"

namespace sb {
namespace {

constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";

std::string utc(std::time_t time, const char* format) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[64] = "";
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

}  // namespace

std::string utc_text(std::time_t time) {
  return utc(time, kFormat);
}

std::optional<std::time_t> parse_utc(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), kFormat, &parts);
  if (!end || *end != '\0') return std::nullopt;
  return ::timegm(&parts);
}

std::string utc_minutes(std::time_t time) {
  return utc(time, "%Y-%m-%d %H:%M UTC");
}

}  // namespace sb
