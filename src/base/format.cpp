#define FMT_HEADER_ONLY  // here and nowhere else: every other file would instantiate what it leaves pending
#include "base/format.h"

#include <fmt/format.h>

namespace sb {

// Weak: compiled in two modules, for the fmt that each of them sees, which may be one.
[[gnu::weak]] std::string format_arguments(fmt::string_view text, fmt::format_args values) {
  return fmt::vformat(text, values);
}

}  // namespace sb
