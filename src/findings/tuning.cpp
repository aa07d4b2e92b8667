#include "findings/tuning.h"

#include "findings/choices.h"

namespace sb {

std::vector<std::string> open_models(const Rows& rows, const Claims& claims, const Comparison& c,
                                     const Figures& figures, const Estimate& effect, Verdict verdict) {
  std::vector<std::string> out;
  if (!c.kind.empty() || (c.statistic != Statistic::accuracy && c.statistic != Statistic::gap_accuracy) ||
      c.a.size() != 1 || c.b.size() != 1)
    return out;
  const auto tuned = tuned_models(rows, claims);
  if (tuned.empty()) return out;
  for (const double sign : {1., -1.}) {
    const ArmModel& arm = (sign > 0 ? c.a : c.b).front();
    Estimate moved = effect;
    const auto& rates = (sign > 0 ? figures.a : figures.b).rates;
    // Settings were not chosen on longer gaps, and for some models not at all.
    const bool unknown = c.statistic == Statistic::gap_accuracy ||
                         (!tuned.contains(arm.model) && tuned.contains((sign > 0 ? c.b : c.a).front().model));
    moved.mean += sign * (unknown ? 1 : open_gain(rows, claims, arm.model, rates.size() == 1 ? *rates.begin() : ""));
    if (verdict_of(c, moved) != verdict) out.push_back(arm.text());
  }
  return out;
}

bool is_untuned(const Rows& rows, const Claims& claims, const Scale& scale, const Comparison& c, const Figures& f) {
  if (f.a.swept && (c.b.empty() || f.b.swept)) return false;
  if (scale.untuned) return true;
  if (!f.found) return false;
  if (!c.kind.empty()) return !claims.choice_scale.empty();
  const auto tuned = tuned_models(rows, claims);
  for (const Arm* arm : {&c.a, &c.b})
    for (const ArmModel& model : *arm)
      if (!tuned.empty() && !tuned.contains(model.model)) return true;
  return false;
}

bool depends_on_rates(const Comparison& c) {
  return c.statistic == Statistic::accuracy || c.statistic == Statistic::gap_accuracy || c.statistic == Statistic::drop;
}

bool rates_matter(const Comparison& c, const Estimate& effect, Verdict verdict) {
  if (!depends_on_rates(c)) return false;
  for (const double change : {-untuned_allowance, untuned_allowance}) {
    if (c.b.empty() && (change < 0 || c.asks == Asks::at_most)) continue;
    Estimate moved = effect;
    moved.mean += change;
    if (verdict_of(c, moved) != verdict) return true;
  }
  return false;
}

}  // namespace sb
