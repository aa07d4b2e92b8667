// Registry of all models, one row per model. To add a model, write a file in mixers/ and add a line to base/models.def.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/mixer.h"

namespace sb {

class RecordedLayer;

// Properties of a model that code outside its mixer needs.
struct Traits {
  bool has_mlp = false;        // the mixer has its own MLP, sized by the switch `mlp`; the network adds none
  bool has_positions = false;  // the mixer uses Context::positions
};

struct ModelRow {
  std::string name;
  std::vector<Switch> switches;                                                   // in display order
  std::unique_ptr<Mixer> (*make)(const MixerOptions&, ParameterList&) = nullptr;  // also declares the parameters
  std::string equations = {};  // short form, shown by `models NAME`; no newline at the end
  Traits traits = {};
  int64_t (*width)(int64_t asked) = nullptr;  // channels of a layer for the requested width; null: equal
  // Optional: derives switches from the shapes of recorded parameters, for `verify` (models/recorded.h).
  void (*read_recorded)(const RecordedLayer&, MixerOptions&) = nullptr;

  const Switch* find(std::string_view switch_name) const;  // null if absent
};

template <class M>
std::unique_ptr<Mixer> make_mixer(const MixerOptions& options, ParameterList& parameters) {
  return std::make_unique<M>(options, parameters);
}

const std::vector<ModelRow>& registry();
const ModelRow& find_model(const std::string& name);  // throws if unknown; the message suggests the nearest name
std::vector<std::string> model_names();
// Adds a model defined by a program that uses the library. Throws if the name is taken. Not thread-safe.
void register_model(ModelRow row);

}  // namespace sb
