// A network's parameters and mixers without memory for them: enough to count.
#pragma once
#include <memory>
#include <vector>

#include "models/registry.h"

namespace sb {

struct Declared {
  ParameterList parameters;  // encoder, norms, layers, decoder
  std::vector<std::unique_ptr<Mixer>> mixers;
};
Declared declare(const ModelConfig& config);
// Throws bad_input "[model.KEY] …" where building such a network would, without building it.
void check_network(const ModelConfig& config);

// What a network of this configuration costs.
struct Cost {
  int64_t parameters = 0;
  int64_t layer_parameters = 0;  // the first layer's mixer
  int64_t state_elements = 0;    // the first layer's, a sequence; 0 where a cache grows
  int64_t cache_per_frame = 0;   // elements a layer adds a frame where a cache grows
  double matmul_flops = 0;       // forward, a token, all layers and the two ends
  double mixing_flops = 0;       // forward, a token, all layers
  double training_flops() const { return 3 * (matmul_flops + mixing_flops); }
};
Cost cost(const ModelConfig& config, int64_t length);

}  // namespace sb
