// What a model can be asked to be: sizes, and the switches of its mixer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sb {

struct MixerOptions {
  int64_t width = 256;  // d
  int64_t heads = 0;    // 0: default_heads(width)
  int64_t d_state = 128;
  double expand_k = 1, expand_v = 2;  // K = expand_k d / heads, V = expand_v d / heads
  int64_t factors = 1;                // Householder factors a token
  bool complementary = true;          // write and decay share their gate
  bool negative_eigenvalues = false;  // beta in (0,2) instead of (0,1)
  bool short_conv = true;
  bool output_gate = true;
  double a_min = 0;  // no step decays the state below this factor
  int64_t mlp = 0;   // expansion of the MLP after the mixer: 0 (none), 1, 2 or 4
  double rope_base = 10000;
  bool double_residual = false;  // the Transformer's output contains its input, to which the network adds it again
  double dropout = 0;            // inside the mixer; the network's own value, not a switch

  int64_t key_width() const;    // K
  int64_t value_width() const;  // V
  bool operator==(const MixerOptions&) const = default;
};

// 4 up to width 512, then the smallest power of two >= 4 that divides the width with at most 128 channels a head.
int64_t default_heads(int64_t width);

using Switches = std::map<std::string, std::string>;

struct ModelConfig {
  std::string name = "gated_delta_net";
  int64_t width = 256;  // as asked for; the Transformer may use another (mixer.width)
  int64_t layers = 8;
  int64_t inputs = 41;
  int64_t outputs = 1601;
  double dropout = 0.2;
  MixerOptions mixer;
};

// The resolved configuration of a registered model. Throws one line for an unknown model or switch (with the nearest
// name), a switch without meaning for this mixer (with the mixers that have it), or sizes that do not fit.
ModelConfig model_config(const std::string& name, int64_t width, const Switches& switches = {}, int64_t layers = 8,
                         int64_t inputs = 41, int64_t outputs = 1601, double dropout = 0.2);

// Every switch there is: what config checks, `models NAME` and `config keys` say about it.
struct SwitchInfo {
  std::string name, range, meaning;
};
std::vector<SwitchInfo> switch_table();
const std::vector<std::string>& switch_names();
// The value a configuration has for it, each spelled one way.
std::string switch_value(const MixerOptions& options, const std::string& name);
void set_switch(MixerOptions& options, const std::string& name, const std::string& text);
// Throws where heads, widths or state sizes do not fit each other.
void check_options(const std::string& model, const MixerOptions& options, const std::vector<std::string>& switches);

}  // namespace sb
