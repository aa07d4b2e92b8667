#include "jobs/devices.h"

#include <algorithm>
#include <filesystem>

#include "base/number.h"
#include "base/text.h"
#include "config/rank_place.h"

namespace sb {

int usual_jobs(const std::vector<const ResolvedConfig*>& runs, int cores) {
  const bool gpu = std::any_of(runs.begin(), runs.end(),
                               [](const ResolvedConfig* run) { return run->values.train.device == DeviceKind::cuda; });
  return gpu ? 1 : cores;
}

namespace {

// Whether "auto" resolved to the CPU for one of the runs.
bool fell_to_cpu(const std::vector<ResolvedConfig>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const ResolvedConfig& run) {
    const auto origin = run.origins.find("train.device");
    return run.values.train.device == DeviceKind::cpu && origin != run.origins.end() &&
           origin->second.kind == Origin::Kind::derived;
  });
}

}  // namespace

int gpus_in(const std::string& devices) {
  int count = 0;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(devices, failed)) {
    const std::string name = entry.path().filename().string();
    count += name.starts_with("nvidia") && parse_unsigned(name.substr(6)) ? 1 : 0;
  }
  return count;
}

bool lacks_gpu(const ResolvedConfig& run, int local, int gpus, const char* visible) {
  const bool hidden = visible != nullptr && *visible == '\0';
  return fell_to_cpu({run}) && gpus > 0 && (local >= gpus || hidden);
}

std::string cpu_note(const std::vector<ResolvedConfig>& runs, bool built, const std::string& missing) {
  if (!fell_to_cpu(runs) || !built || missing.empty()) return "";
  return "note: train.device = auto selects the CPU; the run id differs from that on a GPU: " + missing;
}

std::vector<std::string> visible_gpus(const char* visible, int count) {
  std::vector<std::string> out;
  if (visible == nullptr) {
    for (int gpu = 0; gpu < count; ++gpu) out.push_back(std::to_string(gpu));
    return out;
  }
  for (const auto& name : split(visible, ',')) {
    if (static_cast<int>(out.size()) == count || name.empty() || name.front() == '-' ||
        std::find(out.begin(), out.end(), name) != out.end())
      break;
    out.push_back(name);
  }
  return out;
}

std::optional<std::string> gpu_of_rank(const char* visible, int local) {
  if (local < 0) return std::nullopt;
  const auto gpus = visible_gpus(visible, kMaxRanks);
  if (gpus.size() <= 1) return std::nullopt;
  return static_cast<size_t>(local) < gpus.size() ? gpus[static_cast<size_t>(local)] : std::string();
}

}  // namespace sb
