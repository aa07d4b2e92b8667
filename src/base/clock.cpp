#include "base/clock.h"

namespace sb {
namespace {

std::string utc(std::time_t time, const char* format) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[64] = "";
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

}  // namespace

std::string utc_text(std::time_t time) {
  return utc(time, "%Y-%m-%dT%H:%M:%SZ");
}

std::string utc_minutes(std::time_t time) {
  return utc(time, "%Y-%m-%d %H:%M UTC");
}

}  // namespace sb
