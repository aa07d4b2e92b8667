#include "report/peers.h"

#include <map>
#include <tuple>

namespace sb {

std::optional<PeerStep> peer_step(const std::string& model, int width, int time) {
  static const std::map<std::tuple<std::string, int, int>, PeerStep> steps = {
      {{"gated_delta_net", 256, 400}, {16.6, 1.54e6, 3.0}},
      {{"gated_delta_net", 256, 1300}, {43.8, 1.90e6, 10.2}},
      {{"gated_delta_net", 1152, 400}, {89.7, 285e3, 12.3}},
      {{"mamba2", 256, 400}, {16.3, 1.57e6, 2.6}},
      {{"mamba2", 256, 1300}, {43.8, 1.90e6, 8.7}},
      {{"mamba2", 1296, 400}, {82.1, 312e3, 10.2}},
      {{"transformer", 256, 400}, {35.8, 716e3, 5.5}},
      {{"transformer", 256, 1300}, {106.6, 780e3, 18.0}},
      {{"transformer", 768, 400}, {102.6, 250e3, 16.4}},
      {{"gla", 256, 400}, {18.2, 1.41e6, 3.2}},
      {{"gla", 256, 1300}, {48.9, 1.70e6, 10.8}},
      {{"gla", 1152, 400}, {96.8, 264e3, 13.5}},
      {{"delta_net", 256, 400}, {14.0, 1.83e6, 2.6}},
      {{"delta_net", 1296, 400}, {122.8, 208e3, 11.9}},
  };
  const auto found = steps.find({model, width, time});
  return found == steps.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace sb
