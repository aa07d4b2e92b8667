#include "cli/run_names.h"

#include "base/text.h"
#include "runs/suite.h"

namespace sb::cli {

std::string run_name(const ResolvedConfig& run, const std::vector<std::string>& varying) {
  constexpr size_t longest_value = 40;
  const RunConfig& c = run.values;
  std::string name =
      c.model.name + ", task " + std::to_string(c.task.task.number) + ", seed " + std::to_string(c.run.seed);
  for (const auto& key : varying) {
    if (key == "model.name" || key == "task.number" || key == "run.seed") continue;
    const std::string value = value_text(run, key);
    if (!value.empty()) name += ", " + key + "=" + printable(value, longest_value);
  }
  return name;
}

}  // namespace sb::cli
