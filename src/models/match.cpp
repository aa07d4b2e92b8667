#include "models/match.h"

#include <cmath>

#include "base/error.h"

namespace sb {

std::optional<Matched> nearest_width(const MatchRequest& request) {
  constexpr int64_t widest = 1 << 16;
  // Sizes grow with the width, but for steps where the number of heads doubles.
  constexpr double beyond = 4;
  const ModelRow& row = find_model(request.model);
  for (const auto& [key, value] : request.switches)
    if (!row.find(key)) return std::nullopt;
  std::optional<Matched> best;
  for (int64_t width = 1; width <= widest; ++width) {
    Matched now;
    try {
      now.config =
          model_config(request.model, width, request.switches, request.layers, request.inputs, request.outputs);
      if (now.config.mixer.width != width) continue;  // a label of another width
      check_network(now.config);
    } catch (const Error&) {
      continue;
    }
    now.cost = cost(now.config, request.length);
    now.size = request.size(now.cost);
    if (now.size <= 0) return std::nullopt;
    if (!best || std::abs(now.size - request.target) < std::abs(best->size - request.target)) best = now;
    if (now.size > beyond * request.target) break;
  }
  return best;
}

}  // namespace sb
