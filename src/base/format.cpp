#include "base/format.h"

#include <fmt/format.h>

namespace sb {

std::string format_arguments(fmt::string_view text, fmt::format_args values) {
  return fmt::vformat(text, values);
}

}  // namespace sb
