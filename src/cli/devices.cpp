#include "cli/devices.h"

#include <algorithm>

#include "base/text.h"
#include "runs/world.h"

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

std::vector<std::string> visible_cards(const char* visible, int count) {
  std::vector<std::string> out;
  if (visible == nullptr) {
    for (int card = 0; card < count; ++card) out.push_back(std::to_string(card));
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

std::optional<std::string> card_of_rank(const char* visible, int local) {
  if (local < 0) return std::nullopt;
  const auto cards = visible_cards(visible, kMostRanks);
  if (cards.size() <= 1) return std::nullopt;
  return static_cast<size_t>(local) < cards.size() ? cards[static_cast<size_t>(local)] : std::string();
}

}  // namespace sb::cli
