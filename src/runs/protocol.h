// Named sets of defaults: how the published code trains, and how we do. A protocol only sets keys that a config leaves
// open; run ids come from the keys, so equal keys are one run whatever the protocol is called.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runs/schema.h"

namespace sb {

struct ProtocolSetting {
  std::string key;    // "section.key"; of a mixer's switch "model.NAME"
  ConfigValue value;  // of a switch: text
};

// What the protocol sets for a model. The published protocol:
//   dropout 0.2 until update 78 (the published code never leaves evaluation mode after its first evaluation); the
//   Transformer's double residual; a first learning rate of 0; the delta family wholly in bfloat16; losses of
//   micro-batches summed. Gap decisions that repeat over data-loader workers are not rebuilt.
// The corrected protocol: no dropout, none of these faults, and a pre-norm Transformer. configs/choices.toml measures
// these choices on a grammar outside the reported ones.
std::vector<ProtocolSetting> protocol_settings(Protocol protocol, const std::string& model);

// "published", "corrected", "published but lr 0.002": the nearest protocol and what differs from it, read from the keys
// of a result ("section.key" or "model.switch NAME", values as JSON). The learning rate is part of the published
// protocol alone, 0.001; the corrected one chooses it for each model. Empty for a model trained elsewhere.
std::string protocol_label(const std::map<std::string, std::string>& config);

}  // namespace sb
