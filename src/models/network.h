// The network around the mixer:
//   post:   h_0 = encoder(x);  z = mixer_l(h);  h <- LN(h + Dropout(z));  logits = decoder(h)
//   double: h <- LN(h + Dropout(h + z))
//   pre:    h <- h + Dropout(mixer_l(LN(h)));  logits = decoder(LN(h))
// With an MLP, mlp(x) = linear2(a silu(a) b), [a, b] = linear1(x): z becomes z + Dropout(mlp(h + z)); in pre it is a
// second step, h <- h + Dropout(mlp(LN(h))). In pre h is kept in float where activations are in bfloat16.
#pragma once
#include <memory>
#include <vector>

#include "base/safetensors.h"
#include "models/registry.h"

namespace sb {

// A sequence so far, for all layers; starts empty.
struct NetworkState {
  std::vector<LayerState> layers;
  void detach();
  int64_t elements() const;  // a sequence, all slots
};

// Sees (layer, name, values) of what flows between layers; layer -1: the encoder's output or the logits.
using LayerObserver = std::function<void(int64_t layer, std::string_view name, const at::Tensor& values)>;

// One pass through the network.
struct Pass {
  bool training = false;  // dropout acts
  // What dropout masks depend on; read only where it acts.
  uint64_t seed = 0;                        // of the run
  at::Tensor update;                        // [1] int64
  at::Tensor samples;                       // [B] int64: the numbers of the rows among the run's samples
  std::vector<uint32_t>* places = nullptr;  // where given: collects the places of the dropouts that act
  NetworkState* state = nullptr;
  const GateRecorder* gates = nullptr;
  const LayerObserver* observe = nullptr;
};

class Network {
 public:
  // Parameters are zero until initialise() or load().
  // `mixed`: activations and products with weights in bfloat16, parameters and sums in `type`.
  explicit Network(const ModelConfig& config, at::ScalarType type = at::kFloat, at::Device device = at::kCPU,
                   bool mixed = false);

  const ModelConfig& config() const { return config_; }
  ParameterList& parameters() { return parameters_; }
  const ParameterList& parameters() const { return parameters_; }
  const Mixer& mixer(int64_t layer) const { return *mixers_[static_cast<size_t>(layer)]; }
  void initialise(uint64_t seed) { parameters_.initialise(seed); }

  // x [B,T,inputs]
  at::Tensor hidden(const at::Tensor& x, const Pass& pass = {}) const;  // [B,T,d]
  at::Tensor logits(const at::Tensor& x, const Pass& pass = {}) const;  // [B,T,outputs]
  // [B,T,d] -> [B,T,outputs], in the parameters' type
  at::Tensor decode(const at::Tensor& hidden) const;
  // Sum of cross-entropies over frames with target >= 0 (target [B,T]), divided by `normaliser` (one element;
  // undefined: their number); logits are never held.
  at::Tensor loss(const at::Tensor& x, const at::Tensor& target, const Pass& pass = {},
                  const at::Tensor& normaliser = {}) const;
  // One frame, x [B,inputs] -> logits [B,outputs]; constant memory for every recurrent model.
  at::Tensor step(const at::Tensor& x, NetworkState& state) const;

  // Weights by name, any stored float type; `prefix` comes before every name. Throws where a name or shape is wrong.
  void load(const Safetensors& file, const std::string& prefix = "");

 private:
  struct Mlp {
    Param up, up_bias, down, down_bias;
  };
  using Norm = std::pair<Param, Param>;  // gain, bias

  Context context_of(int64_t layer, const Pass& pass) const;
  // mixer_l(x), and the frames counted as seen.
  at::Tensor mixed(int64_t layer, const at::Tensor& x, const Context& context) const;
  // Undefined where the network has no MLP.
  at::Tensor mlp(int64_t layer, const at::Tensor& x, const Context& context) const;
  uint32_t mlp_dropout() const;  // its place in a layer
  at::Tensor post_norm_layers(at::Tensor h, const Pass& pass) const;
  at::Tensor pre_norm_layers(at::Tensor h, const Pass& pass) const;

  ModelConfig config_;
  ParameterList parameters_;
  std::vector<std::unique_ptr<Mixer>> mixers_;
  std::vector<Mlp> mlps_;
  Param encoder_, encoder_bias_, decoder_, decoder_bias_;
  std::vector<Norm> norms_, mlp_norms_;
  Norm last_norm_;
  at::Tensor one_;
};

// Stored values as a tensor of the given type; shared by load() and verify.
at::Tensor to_tensor(const StoredTensor& stored, at::ScalarType type, at::Device device = at::kCPU);

}  // namespace sb
