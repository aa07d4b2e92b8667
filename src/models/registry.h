// The zoo: one row a model. A new one is a file in mixers/ and a line in zoo.def.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/mixer.h"

namespace sb {

struct ModelRow {
  std::string name;
  std::vector<std::string> switches;  // those with a meaning for it
  MixerOptions defaults;
  std::unique_ptr<Mixer> (*make)(const MixerOptions&, ParameterList&);  // declares the parameters
  std::string equations = {};  // in short, lines without an end; what `models NAME` shows
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
