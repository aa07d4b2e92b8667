#define FMT_HEADER_ONLY  // here and nowhere else: every other file would instantiate what it leaves pending
#include "base/format.h"

#include <fmt/format.h>

namespace sb {

// Weak, since two modules compile this file, each with the fmt headers that it sees (possibly the same ones).
[[gnu::weak]] std::string format_arguments(fmt::string_view text, fmt::format_args values) {
  return fmt::vformat(text, values);
}

}  // namespace sb
