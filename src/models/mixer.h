// What a sequence mixer is: parameters it declares, a causal map [B,T,d] -> [B,T,d], a state that can be carried.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/fused.h"
#include "models/options.h"
#include "models/parameters.h"

namespace sb {

// What a layer remembers between two pieces of a sequence. The recurrence's state is the slot "state" [B, ...]; what
// only serves a window over the input has other names ("conv"), a growing cache is "cache.…".
struct LayerState {
  int64_t position = 0;  // frames seen
  std::map<std::string, at::Tensor> slots;

  at::Tensor get(const std::string& slot) const;  // undefined where absent
  void detach();                                  // cut the graph: gradients do not flow into earlier pieces
  int64_t elements(std::string_view slot_prefix = "") const;
};

// Receives (layer, name, values) of every gate: decay in (0,1], write and step >= 0, [B,T,…]; fixed_decay, of any
// shape.
using GateRecorder = std::function<void(int64_t layer, std::string_view name, const at::Tensor& values)>;

// The dropouts of a layer: each has a place of its own in the network, so that no two share a mask.
struct LayerDropout {
  static constexpr uint32_t residual = 0, mlp = 1, own = 2, places = 16;  // from `own` on: the mixer's

  std::optional<DropoutKey> key;          // at the layer's place 0; absent: nothing drops
  std::vector<uint32_t>* used = nullptr;  // where given: collects the places asked for

  std::optional<DropoutKey> at(uint32_t place) const;  // place < places
};

struct Context {
  LayerDropout dropout;
  LayerState* state = nullptr;  // where given: continues from it and leaves the state after the last frame
  const GateRecorder* gates = nullptr;
  int64_t layer = 0;

  at::Tensor carried(const std::string& slot) const { return state ? state->get(slot) : at::Tensor(); }
  void carry(const std::string& slot, const at::Tensor& value) const {
    if (state) state->slots[slot] = value;
  }
  int64_t position() const { return state ? state->position : 0; }
  void record(std::string_view name, const at::Tensor& values) const {
    if (gates) (*gates)(layer, name, values);
  }
};

// Its row of the taxonomy: S_t = A_t S_{t-1} + B_t x_t, y_t = C_t S_t.
struct Taxonomy {
  enum class Action {
    unknown,
    identity,     // A = 1
    scalar,       // one factor a head
    elementwise,  // one factor an element, or a key channel
    matrix,       // mixes the elements of a head
    nonlinear,    // A depends on the state
    cache,        // no state: keeps the past itself
  };
  Action action = Action::unknown;
  bool data_dependent = false;
  bool complementary = false;  // the gate that forgets also writes
  bool reaches_zero = false;   // one step can forget (factor below reach_threshold)
  bool channel_mixing = false;
  int64_t state_elements = 0;  // a layer and sequence; 0 for a cache

  bool operator==(const Taxonomy&) const = default;
};
constexpr double reach_threshold = 0.02;
std::string_view action_name(Taxonomy::Action action);

class Mixer {
 public:
  virtual ~Mixer() = default;
  // x [B,T,d]; causal. Only this is needed to train.
  virtual at::Tensor forward(const at::Tensor& x, const Context& context) const = 0;
  // The mixer's own MLP (Traits::has_mlp); undefined: the mixer has none.
  virtual at::Tensor feed_forward(const at::Tensor& /*x*/, const Context& /*context*/) const { return {}; }
  virtual Taxonomy taxonomy() const { return {}; }
  // Floating-point operations a token outside matrix products with weights, for sequences of `length`.
  virtual double mixing_flops(int64_t /*length*/) const { return 0; }
  // The last axis of the slot "state" holds (real, imaginary) of one element.
  virtual bool complex_state() const { return false; }
  // Throws where the sizes can be counted but not run (an odd head width under a rotary embedding).
  virtual void check_runnable() const {}
};

}  // namespace sb
