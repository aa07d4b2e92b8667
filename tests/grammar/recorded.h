// Recorded grammars and samples of the reference.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "golden_json.h"
#include "grammar/build.h"
#include "grammar/sampler.h"

namespace sb::test {

// Names of the recorded grammars, "v41_a40_d40_s1" and so on; those the reference refuses only if `errors`.
inline std::vector<std::string> recorded_names(bool errors) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SB_TEST_DATA) + "/grammar")) {
    const std::string file = entry.path().filename();
    if (!file.starts_with('v')) continue;
    if (read_golden("grammar/" + file).contains("error") == errors) names.push_back(file.substr(0, file.find('.')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline nlohmann::json recorded(const std::string& name) {
  return read_golden("grammar/" + name + ".json.gz");
}

inline GrammarConfig recorded_config(const nlohmann::json& file) {
  const auto& c = file["config"];
  GrammarConfig out;
  out.vocab = c["alphabet_size"];
  out.ambiguities = c["ambiguities"];
  out.depth = c["ambiguity_depth"];
  out.start_states = c["initial_states"];
  out.seed = c["seed"];
  return out;
}

// SHA-256 over "classes;ids" lines, and over the lines of the reference's dataset files.
class SampleDigests {
 public:
  explicit SampleDigests(const Automaton& automaton) : automaton_(automaton) {}
  void add(const uint16_t* states, int length) {
    std::string classes, ids, class_list, name_list;
    for (int i = 0; i < length; ++i) {
      const uint16_t s = states[i];
      const std::string symbol = std::to_string(automaton_.symbol[s]);
      if (i > 0) {
        classes += ',';
        ids += ',';
        class_list += ", ";
        name_list += ", ";
      }
      classes += symbol;
      ids += std::to_string(automaton_.id[s]);
      class_list += symbol;
      name_list += '\'' + automaton_.names[s] + '\'';
    }
    canon_.update(classes + ';' + ids + '\n');
    reffile_.update('[' + class_list + "]::[" + name_list + "]::" + std::to_string(length) + '\n');
  }
  std::string canon() const { return Sha256(canon_).hex(); }
  std::string reffile() const { return Sha256(reffile_).hex(); }

 private:
  const Automaton& automaton_;
  Sha256 canon_, reffile_;
};

}  // namespace sb::test
