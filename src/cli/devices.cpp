#include "cli/devices.h"

#include <algorithm>

namespace sb::cli {

int usual_jobs(const std::vector<const ResolvedConfig*>& runs, int cores) {
  const bool gpu = std::any_of(runs.begin(), runs.end(),
                               [](const ResolvedConfig* run) { return run->values.train.device == DeviceKind::cuda; });
  return gpu ? 1 : cores;
}

std::string cpu_note(const std::vector<ResolvedConfig>& runs, bool built, const std::string& missing) {
  const bool fell = std::any_of(runs.begin(), runs.end(), [](const ResolvedConfig& run) {
    const auto origin = run.origins.find("train.device");
    return run.values.train.device == DeviceKind::cpu && origin != run.origins.end() &&
           origin->second.kind == Origin::Kind::derived;
  });
  if (!fell || !built || missing.empty()) return "";
  return "note: train.device is auto and comes to the CPU, which makes another run than the GPU would: " + missing;
}

}  // namespace sb::cli
