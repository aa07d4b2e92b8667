// The zoo: one row a model. A new one is a file in mixers/ and a line in zoo.def.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/mixer.h"

namespace sb {

class RecordedLayer;

// What the rooms around the network need to know of a model.
struct Traits {
  bool has_mlp = false;            // the switch `mlp` sizes the mixer's own MLP; the network adds none
  bool published_in_bf16 = false;  // its published runs kept weights and moments in bfloat16: quirks.delta_bf16
};

struct ModelRow {
  std::string name;
  std::vector<Switch> switches;                                                   // in the order they are shown
  std::unique_ptr<Mixer> (*make)(const MixerOptions&, ParameterList&) = nullptr;  // declares the parameters
  std::string equations = {};  // in short, lines without an end; what `models NAME` shows
  Traits traits = {};
  int64_t (*width)(int64_t asked) = nullptr;  // channels of a layer where they are not the width asked for
  // Reads its switches from the shapes of recorded parameters, where `verify` cannot know them (models/recorded.h).
  void (*read_recorded)(const RecordedLayer&, MixerOptions&) = nullptr;

  const Switch* find(std::string_view switch_name) const;  // null where absent
};

template <class M>
std::unique_ptr<Mixer> make_mixer(const MixerOptions& options, ParameterList& parameters) {
  return std::make_unique<M>(options, parameters);
}

const std::vector<ModelRow>& registry();
const ModelRow& find_model(const std::string& name);  // throws with the nearest name
std::vector<std::string> model_names();
// Adds a model of a program that uses the library; the name must be free. Not for concurrent use.
void register_model(ModelRow row);

}  // namespace sb
