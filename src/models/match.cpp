#include "models/match.h"

#include <cmath>

#include "base/error.h"

namespace sb {
namespace {

constexpr int64_t widest = 1 << 16;
constexpr int64_t most_states = 4096, states_step = 8;
// The search stops at this multiple of the target. Sizes grow with the width, except where the number of heads doubles.
constexpr double beyond = 4;

// Returns nullopt if there is no such network.
std::optional<Matched> network_of(const MatchRequest& request, int64_t width, const Switches& switches) {
  Matched out;
  try {
    out.config = model_config(request.model, width, switches, request.layers, request.inputs, request.outputs, 0,
                              request.residual);
    if (out.config.mixer.width != width) return std::nullopt;  // stands for another width
    check_network(out.config);
  } catch (const Error&) {
    return std::nullopt;
  }
  out.cost = cost(out.config, request.length);
  out.size = request.size(out.cost);
  return out;
}

bool nearer(const MatchRequest& request, const Matched& a, const Matched& b) {
  return std::abs(a.size - request.target) < std::abs(b.size - request.target);
}

void solve_states(const MatchRequest& request, Matched& best) {
  Switches switches = request.switches;
  for (int64_t states = states_step; states <= most_states; states += states_step) {
    switches["d_state"] = std::to_string(states);
    auto now = network_of(request, best.config.mixer.width, switches);
    if (!now) continue;
    if (nearer(request, *now, best)) {
      best = std::move(*now);
      best.d_state = states;
    } else if (now->size > request.target) {
      break;
    }
  }
}

}  // namespace

std::optional<Matched> nearest_width(const MatchRequest& request) {
  const ModelRow& row = find_model(request.model);
  for (const auto& [key, value] : request.switches)
    if (!row.find(key)) return std::nullopt;
  std::optional<Matched> best;
  for (int64_t width = request.step; width <= widest; width += request.step) {
    auto now = network_of(request, width, request.switches);
    if (!now) continue;
    if (now->size <= 0) return std::nullopt;
    const bool far = now->size > beyond * request.target;
    if (!best || nearer(request, *now, *best)) best = std::move(now);
    if (far) break;
  }
  if (best && request.solve_states && row.find("d_state") && !request.switches.contains("d_state"))
    solve_states(request, *best);
  return best;
}

double parameters_of(const Cost& cost) {
  return static_cast<double>(cost.parameters);
}
double state_of(const Cost& cost) {
  return static_cast<double>(cost.state_elements);
}
double flops_of(const Cost& cost) {
  return cost.matmul_flops + cost.mixing_flops;
}

}  // namespace sb
