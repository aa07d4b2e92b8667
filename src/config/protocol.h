// Named sets of defaults: how the published code trains, and how we train. A protocol only sets keys that a config does
// not set. Run ids come from the keys, so equal keys are the same run under any protocol.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "config/schema.h"

namespace sb {

struct ProtocolSetting {
  std::string key;    // "section.key"; "model.NAME" for a switch of a mixer
  ConfigValue value;  // text for a switch
};

// Settings of the protocol for a model. The published protocol:
//   dropout 0.2 until update 78 (the published code stays in evaluation mode after its first evaluation); the
//   Transformer's double residual; a first learning rate of 0; the delta family entirely in bfloat16; losses of
//   micro-batches summed. Repeated gap decisions of data-loader workers are not reproduced.
// The corrected protocol: no dropout, none of these errors, and a pre-norm Transformer. configs/choices.toml tests
// these choices on a grammar that is not among the reported ones.
std::vector<ProtocolSetting> protocol_settings(Protocol protocol, const std::string& model);

// "published", "corrected", "published but lr 0.002": the nearest protocol and the differences from it. Reads the keys
// of a result ("section.key" or "model.switch NAME", values as JSON). Only the published protocol fixes the learning
// rate (0.001); the corrected protocol chooses it per model. Empty for a model trained elsewhere.
std::string protocol_label(const std::map<std::string, std::string>& config);

}  // namespace sb
