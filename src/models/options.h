// Configuration of a model: its sizes and the switches of its mixer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/residual.h"
#include "models/switch.h"

namespace sb {

// Options from which a mixer is built. The mixer may keep a copy.
class MixerOptions {
 public:
  MixerOptions() = default;
  explicit MixerOptions(const std::vector<Switch>& switches);  // every switch has its initial value

  int64_t width = 256;            // d
  int64_t layer = 0, layers = 1;  // index of this layer, and number of layers
  // Settings of the network, not switches:
  double dropout = 0;                  // inside the mixer
  Residual residual = Residual::post;  // around the mixer

  // The value of a switch, or the switch's initial value if the model does not have this switch.
  template <class S>
  typename S::Value operator[](const S& the_switch) const {
    const SwitchValue* value = find(the_switch.name);
    return value ? std::get<typename S::Value>(*value) : the_switch.initial;
  }
  const SwitchValue* find(std::string_view name) const;  // null if the model has no such switch
  std::string text(std::string_view name) const;         // the value as switch_text() writes it; "" if absent
  // No effect if the model has no such switch.
  void set(std::string_view name, const SwitchValue& value);
  template <class S>
  void set(const S& the_switch, typename S::Value value) {
    set(the_switch.name, SwitchValue(value));
  }

  int64_t heads() const;        // 1 if the model has no such switch
  int64_t key_width() const;    // K = expand_k d / heads
  int64_t value_width() const;  // V = expand_v d / heads
  bool operator==(const MixerOptions&) const = default;

 private:
  std::map<std::string, SwitchValue, std::less<>> values_;
};

// Returns 4 up to width 512, then the smallest power of two >= 4 that divides the width into heads of at most 128
// channels. Throws bad_input if there is none.
int64_t default_heads(int64_t width);

using Switches = std::map<std::string, std::string>;

struct ModelConfig {
  std::string name;
  int64_t width = 256;  // as requested; the layers have mixer.width channels, which a model may derive from it
  int64_t layers = 8;
  int64_t inputs = 41;
  int64_t outputs = 1601;
  double dropout = 0;
  MixerOptions mixer;
};

// Returns the resolved configuration of a registered model. Throws for an unknown model or switch (the message suggests
// the nearest name), for a switch that this model does not have (the message names models that do), and for sizes that
// do not fit each other.
ModelConfig model_config(const std::string& name, int64_t width, const Switches& switches = {}, int64_t layers = 8,
                         int64_t inputs = 41, int64_t outputs = 1601, double dropout = 0,
                         Residual residual = Residual::post);

std::vector<std::string> switch_names();  // of all models, without duplicates
// Throws if no model has such a switch, or if no model accepts the value.
void check_switch(const std::string& name, const std::string& text);

struct ModelRow;
// Parses the value of a model's switch. Throws if the model has no such switch (the message names models that do) or if
// the switch does not accept the value.
SwitchValue check_switch_of(const ModelRow& row, const std::string& name, const std::string& text);
// Throws if a value is outside its range, or if heads and widths do not fit each other.
void check_options(const ModelRow& row, const MixerOptions& options);

}  // namespace sb
