// What a model can be asked to be: sizes, and the switches of its mixer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/residual.h"
#include "models/switch.h"

namespace sb {

// What a mixer is built from. It may keep a copy.
class MixerOptions {
 public:
  MixerOptions() = default;
  explicit MixerOptions(const std::vector<Switch>& switches);  // each at its initial value

  int64_t width = 256;            // d
  int64_t layer = 0, layers = 1;  // its place in the network
  // The network's own values, not switches.
  double dropout = 0;                  // inside the mixer
  Residual residual = Residual::post;  // around the mixer

  // The value of a switch; where the row has no such switch, the switch's initial value.
  template <class S>
  typename S::Value operator[](const S& the_switch) const {
    const SwitchValue* value = find(the_switch.name);
    return value ? std::get<typename S::Value>(*value) : the_switch.initial;
  }
  const SwitchValue* find(std::string_view name) const;  // null where the row has no such switch
  std::string text(std::string_view name) const;         // its value, each spelled one way; "" where absent
  // No effect where the row has no such switch.
  void set(std::string_view name, const SwitchValue& value);
  template <class S>
  void set(const S& the_switch, typename S::Value value) {
    set(the_switch.name, SwitchValue(value));
  }

  int64_t heads() const;        // 1 without that switch
  int64_t key_width() const;    // K = expand_k d / heads
  int64_t value_width() const;  // V = expand_v d / heads
  bool operator==(const MixerOptions&) const = default;

 private:
  std::map<std::string, SwitchValue, std::less<>> values_;
};

// 4 up to width 512, then the smallest power of two >= 4 that divides the width with at most 128 channels a head.
int64_t default_heads(int64_t width);

using Switches = std::map<std::string, std::string>;

struct ModelConfig {
  std::string name;
  int64_t width = 256;  // as asked for; a model may make another of it (mixer.width)
  int64_t layers = 8;
  int64_t inputs = 41;
  int64_t outputs = 1601;
  double dropout = 0;
  MixerOptions mixer;
};

// The resolved configuration of a registered model. Throws one line for an unknown model or switch (with the nearest
// name), a switch without meaning for this mixer (with the mixers that have it), or sizes that do not fit.
ModelConfig model_config(const std::string& name, int64_t width, const Switches& switches = {}, int64_t layers = 8,
                         int64_t inputs = 41, int64_t outputs = 1601, double dropout = 0,
                         Residual residual = Residual::post);

std::vector<std::string> switch_names();  // of all models, each once
// Throws where no model has such a switch or none that has it takes the value.
void check_switch(const std::string& name, const std::string& text);

struct ModelRow;
// The value of the model's switch. Throws where it has no such switch (with the models that do) or it takes no such
// value.
SwitchValue check_switch_of(const ModelRow& row, const std::string& name, const std::string& text);
// Throws where a value is outside its range, or heads and widths do not fit each other.
void check_options(const ModelRow& row, const MixerOptions& options);

}  // namespace sb
