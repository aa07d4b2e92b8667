// The network around the mixer:
//   post:   h_0 = encoder(x);  z = mixer_l(h);  h <- LN(h + Dropout(z));  logits = decoder(h)
//   double: h <- LN(h + Dropout(h + z))
//   pre:    h <- h + Dropout(mixer_l(LN(h)));  logits = decoder(LN(h))
// An optional MLP is mlp(x) = linear2(silu(a) b) with [a, b] = linear1(x). In post and double, z becomes
// z + Dropout(mlp(h + z)). In pre, the MLP is a second step: h <- h + Dropout(mlp(LN(h))). In pre, h stays in float
// even if activations are in bfloat16.
#pragma once
#include <memory>
#include <vector>

#include "base/safetensors.h"
#include "models/registry.h"

namespace sb {

// State of all layers after the part of a sequence processed so far; a new one is empty.
struct NetworkState {
  std::vector<LayerState> layers;
  void detach();
  int64_t elements() const;  // per sequence, all slots
};

// Callback that receives the activations between layers; layer -1: the encoder's output or the logits.
using LayerObserver = std::function<void(int64_t layer, std::string_view name, const at::Tensor& values)>;

// Options of one forward pass.
struct Pass {
  bool training = false;  // enables dropout
  // Dropout masks depend on these; they are read only if dropout is enabled.
  uint64_t seed = 0;                        // of the run
  at::Tensor update;                        // [1] int64
  at::Tensor samples;                       // [B] int64: index of each row's sample in the run
  at::Tensor positions;                     // [B,T] int32: positions of the frames; undefined: 0, 1, …
  std::vector<uint32_t>* places = nullptr;  // optional: collects the places (DropoutKey) of all active dropouts
  NetworkState* state = nullptr;
  const GateRecorder* gates = nullptr;
  const LayerObserver* observe = nullptr;
};

class Network {
 public:
  // Parameters are zero until initialise() or load() is called.
  // `mixed`: activations and matrix products use bfloat16; parameters and sums use `type`.
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
  // [B,T,d] -> logits [B,T,outputs], in the type of the parameters.
  at::Tensor decode(const at::Tensor& hidden) const;
  // Sum of cross-entropies over the frames with target >= 0 (target [B,T]), divided by `normaliser` (one element;
  // undefined: the number of those frames). Never holds all logits in memory.
  at::Tensor loss(const at::Tensor& x, const at::Tensor& target, const Pass& pass = {},
                  const at::Tensor& normaliser = {}) const;
  // Sum of squared errors of the outputs against `value` [B,T,outputs] over the frames with target >= 0 (target [B,T]),
  // divided by the number of outputs and by `normaliser` (as for loss()). Returns [1] float64.
  at::Tensor squared_error(const at::Tensor& x, const at::Tensor& target, const at::Tensor& value,
                           const Pass& pass = {}, const at::Tensor& normaliser = {}) const;
  // Processes one frame without gradients: x [B,inputs] -> logits [B,outputs]. Recurrent models use constant memory.
  at::Tensor step(const at::Tensor& x, NetworkState& state) const;

  // Loads every parameter from the tensor named prefix + parameter name; any stored float type is converted. Throws if
  // a tensor is missing or has another shape.
  void load(const Safetensors& file, const std::string& prefix = "");
  // One line for each tensor of the network that the file lacks, of another shape or type, or not of the network.
  std::vector<std::string> misfits(const Safetensors& file) const;

 private:
  struct Mlp {
    Param up, up_bias, down, down_bias;
  };
  using Norm = std::pair<Param, Param>;  // gain, bias

  Context context_of(int64_t layer, const Pass& pass, SharedTensors& shared) const;
  // Returns mixer_l(x) and advances the position of the layer's state.
  at::Tensor mixed(int64_t layer, const at::Tensor& x, const Context& context) const;
  // Undefined if the network has no MLP.
  at::Tensor mlp(int64_t layer, const at::Tensor& x, const Context& context) const;
  uint32_t mlp_dropout() const;  // place of the MLP's dropout in a layer (LayerDropout)
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

// Copies stored values into a new tensor of the given type and device.
at::Tensor to_tensor(const StoredTensor& stored, at::ScalarType type, at::Device device = at::kCPU);

}  // namespace sb
