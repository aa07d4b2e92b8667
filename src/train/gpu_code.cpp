#include "base/number.h"
#include "base/text.h"
#include "train/gpu.h"

namespace sb {

bool gpu_code_runs(std::string_view architectures, int major, int minor) {
  for (const std::string& each : split(architectures, ',')) {
    const bool exact = each.ends_with('a');
    const int64_t built_for = parse_integer(each.substr(0, each.size() - (exact ? 1 : 0))).value_or(0);
    if (built_for / 10 == major && (exact ? built_for % 10 == minor : built_for % 10 <= minor)) return true;
  }
  return false;
}

}  // namespace sb
