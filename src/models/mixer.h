// Interface of a sequence mixer: it declares parameters, maps [B,T,d] -> [B,T,d] causally, and can carry its state from
// one piece of a sequence to the next.
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

// State of a layer between two pieces of a sequence, as named tensors [B, ...]. Slot "state" holds the state of the
// recurrence, slots "state.…" more of it, which the probe only counts. Input windows have other names ("conv"); a
// growing cache uses names that begin with "cache".
struct LayerState {
  int64_t position = 0;  // frames processed so far
  std::map<std::string, at::Tensor> slots;

  at::Tensor get(const std::string& slot) const;  // undefined if absent
  void detach();                                  // gradients do not flow into earlier pieces
  // Elements per sequence in all slots whose names begin with the prefix.
  int64_t elements(std::string_view slot_prefix = "") const;
};

// Callback that receives the values of every gate. Names: "decay" in (0,1], "write" and "step" >= 0, all [B,T,…];
// "fixed_decay" of any shape.
using GateRecorder = std::function<void(int64_t layer, std::string_view name, const at::Tensor& values)>;

// Dropout keys of a layer. Each dropout of the network has its own number ("place"), so no two share a mask.
struct LayerDropout {
  static constexpr uint32_t residual = 0, mlp = 1, own = 2, places = 16;  // own..places-1 belong to the mixer

  std::optional<DropoutKey> key;          // for place 0 of this layer; absent: no dropout
  std::vector<uint32_t>* used = nullptr;  // optional: collects the places that at() was called with

  std::optional<DropoutKey> at(uint32_t place) const;  // place < places
};

// Tensors that a layer leaves for the layers after it, by name, within one pass over a piece of the sequence.
using SharedTensors = std::map<std::string, at::Tensor>;

struct Context {
  LayerDropout dropout;
  LayerState* state = nullptr;  // optional: the mixer starts from this state and stores the final one in it
  const GateRecorder* gates = nullptr;
  int64_t layer = 0;
  SharedTensors* shared = nullptr;
  at::Tensor positions = {};  // [B,T] integers: positions of the frames; undefined: position() on

  at::Tensor carried(const std::string& slot) const { return state ? state->get(slot) : at::Tensor(); }
  void carry(const std::string& slot, const at::Tensor& value) const {
    if (state) state->slots[slot] = value;
  }
  void share(const std::string& name, const at::Tensor& value) const {
    if (shared) (*shared)[name] = value;
  }
  at::Tensor shared_by_earlier(const std::string& name) const {  // undefined if absent
    const auto found = shared ? shared->find(name) : SharedTensors::iterator();
    return shared && found != shared->end() ? found->second : at::Tensor();
  }
  int64_t position() const { return state ? state->position : 0; }
  void record(std::string_view name, const at::Tensor& values) const {
    if (gates) (*gates)(layer, name, values);
  }
};

// Properties of a mixer as a linear recurrence: S_t = A_t S_{t-1} + B_t x_t, y_t = C_t S_t.
struct Taxonomy {
  enum class Action {
    unknown,
    identity,     // A = 1
    scalar,       // one factor per head
    elementwise,  // one factor per element or key channel
    matrix,       // A mixes the elements of a head
    nonlinear,    // A depends on the state
    cache,        // no state: all past inputs are kept
  };
  Action action = Action::unknown;
  bool data_dependent = false;
  bool complementary = false;  // one gate controls both forgetting and writing
  bool reaches_zero = false;   // one step can erase the state (factor below reach_threshold)
  bool channel_mixing = false;
  int64_t state_elements = 0;  // per layer and sequence; 0 for a cache

  bool operator==(const Taxonomy&) const = default;
};
constexpr double reach_threshold = 0.02;
std::string_view action_name(Taxonomy::Action action);

class Mixer {
 public:
  virtual ~Mixer() = default;
  // x [B,T,d] -> [B,T,d]; causal. The only function that training requires.
  virtual at::Tensor forward(const at::Tensor& x, const Context& context) const = 0;
  // The mixer's own MLP (Traits::has_mlp), x [B,T,d] -> [B,T,d]. Returns an undefined tensor if the mixer has none.
  virtual at::Tensor feed_forward(const at::Tensor& /*x*/, const Context& /*context*/) const { return {}; }
  virtual Taxonomy taxonomy() const { return {}; }
  // Floating-point operations per token, without matrix products with weights, for sequences of `length` frames.
  virtual double mixing_flops(int64_t /*length*/) const { return 0; }
  // True if the last axis of slot "state" holds the (real, imaginary) pair of one complex element.
  virtual bool complex_state() const { return false; }
  // Throws if forward() does not support the mixer's sizes (e.g. an odd head width with a rotary embedding).
  virtual void check_runnable() const {}
};

}  // namespace sb
