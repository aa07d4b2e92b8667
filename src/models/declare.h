// Declares a network's parameters and mixers without allocating them, to check its sizes and count its cost.
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
// Throws bad_input "[model.KEY] …" if a network of this configuration cannot be built. Builds nothing.
void check_network(const ModelConfig& config);

// Size and arithmetic cost of a network.
struct Cost {
  int64_t parameters = 0;
  int64_t layer_parameters = 0;  // of the first layer's mixer
  int64_t state_elements = 0;    // of the first layer, per sequence; 0 if the layer keeps a growing cache
  int64_t cache_per_frame = 0;   // elements that each frame adds to the cache of a layer; 0 without a cache
  double matmul_flops = 0;       // per token, forward: all layers, encoder and decoder
  double mixing_flops = 0;       // per token, forward: all layers
  double training_flops() const { return 3 * (matmul_flops + mixing_flops); }
};
// `length`: frames per sequence.
Cost cost(const ModelConfig& config, int64_t length);

}  // namespace sb
