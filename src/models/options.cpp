#include "models/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "models/registry.h"

namespace sb {
namespace {

struct Switch {
  std::string name;
  std::string expects;
  std::string meaning;
  std::function<bool(MixerOptions&, const std::string&)> set;  // false: not a value of this switch
  std::function<std::string(const MixerOptions&)> get;
};

Switch truth(const char* name, bool MixerOptions::*field, const char* meaning) {
  return {name, "on or off", meaning,
          [field](MixerOptions& options, const std::string& text) {
            if (text == "on" || text == "true" || text == "1") return options.*field = true, true;
            if (text == "off" || text == "false" || text == "0") return options.*field = false, true;
            return false;
          },
          [field](const MixerOptions& options) { return std::string(options.*field ? "on" : "off"); }};
}

Switch integer(const char* name, int64_t MixerOptions::*field, int64_t low, int64_t high, const char* meaning) {
  return {name, fmt::format("an integer in {}..{}", low, high), meaning,
          [=](MixerOptions& options, const std::string& text) {
            const auto value = parse_integer(text);
            if (!value || *value < low || *value > high) return false;
            options.*field = *value;
            return true;
          },
          [field](const MixerOptions& options) { return std::to_string(options.*field); }};
}

Switch number(const char* name, double MixerOptions::*field, const char* expects, bool (*valid)(double),
              const char* meaning) {
  return {name, expects, meaning,
          [=](MixerOptions& options, const std::string& text) {
            const auto value = parse_finite(text);
            if (!value || !valid(*value)) return false;
            options.*field = *value;
            return true;
          },
          [field](const MixerOptions& options) { return shortest(options.*field); }};
}

Switch mlp_switch() {
  auto made = integer("mlp", &MixerOptions::mlp, 0, 4, "expansion of the MLP after the mixer; 0: none");
  made.expects = "0, 1, 2 or 4";
  made.set = [inner = made.set](MixerOptions& options, const std::string& text) {
    MixerOptions tried = options;
    if (!inner(tried, text) || tried.mlp == 3) return false;
    options = tried;
    return true;
  };
  return made;
}

const std::vector<Switch>& switches() {
  const auto expansion = [](double v) { return v > 0 && v <= 16; };
  static const std::vector<Switch> all = {
      integer("heads", &MixerOptions::heads, 1, 4096,
              "heads; unset: 4 up to width 512, then a power of two with at most 128 channels a head"),
      integer("d_state", &MixerOptions::d_state, 1, 4096, "numbers a channel of the state holds; even in s4"),
      number("expand_k", &MixerOptions::expand_k, "a number in (0, 16]", expansion,
             "width of the keys of all heads, in widths of the model"),
      number("expand_v", &MixerOptions::expand_v, "a number in (0, 16]", expansion,
             "width of the values of all heads, in widths of the model"),
      integer("householder_factors", &MixerOptions::factors, 1, 16, "delta-rule steps a token"),
      truth("complementary", &MixerOptions::complementary, "the gate that forgets also writes"),
      truth("negative_eigenvalues", &MixerOptions::negative_eigenvalues,
            "write strength in (0, 2) instead of (0, 1): a step may turn a direction of the state round"),
      truth("short_conv", &MixerOptions::short_conv, "a causal convolution over 4 frames before the recurrence"),
      truth("output_gate", &MixerOptions::output_gate, "the output is multiplied by silu of a projection of the input"),
      number(
          "a_min", &MixerOptions::a_min, "a number in [0, 1)", [](double v) { return v >= 0 && v < 1; },
          "no step leaves less than this share of the state"),
      mlp_switch(),
      number(
          "rope_base", &MixerOptions::rope_base, "a number > 1", [](double v) { return v > 1; },
          "longest wavelength of the rotary positions, in units of 2 pi frames"),
      truth("double_residual", &MixerOptions::double_residual,
            "the layer's output holds its input, which the network adds once more; unset: quirks.double_residual"),
  };
  return all;
}

const Switch& find_switch(const std::string& name) {
  for (const auto& each : switches())
    if (each.name == name) return each;
  throw bad_input("model." + printable(name), "unknown switch" + did_you_mean(name, switch_names()));
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t whole(double expand, int64_t width, int64_t heads) {
  return static_cast<int64_t>(std::llround(expand * static_cast<double>(width) / static_cast<double>(heads)));
}

// MODELS: the label 648 stands for a width of 768 and 1296 for 1280 in the Transformer, whose heads come from the
// label.
int64_t transformer_width(int64_t label) {
  if (label == 960)
    throw bad_input("model.width", "the transformer has no width 960 (the paper skips it), expected e.g. 768 or 1024");
  return label == 648 ? 768 : label == 1296 ? 1280 : label;
}

}  // namespace

int64_t MixerOptions::key_width() const {
  return whole(expand_k, width, heads);
}
int64_t MixerOptions::value_width() const {
  return whole(expand_v, width, heads);
}

int64_t default_heads(int64_t width) {
  if (width <= 512) return 4;
  int64_t heads = 4;
  while (heads < width && (width % heads != 0 || width / heads > 128)) heads *= 2;
  if (width % heads != 0)
    throw bad_input("model.width",
                    fmt::format("no power of two divides {} into heads of at most 128 channels; set heads", width));
  return heads;
}

std::vector<SwitchInfo> switch_table() {
  std::vector<SwitchInfo> out;
  for (const auto& each : switches()) out.push_back({each.name, each.expects, each.meaning});
  return out;
}

const std::vector<std::string>& switch_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& each : switches()) out.push_back(each.name);
    return out;
  }();
  return names;
}

std::string switch_value(const MixerOptions& options, const std::string& name) {
  return find_switch(name).get(options);
}

void set_switch(MixerOptions& options, const std::string& name, const std::string& text) {
  const auto& found = find_switch(name);
  if (!found.set(options, text))
    throw bad_input("model." + name, fmt::format("expected {}, got '{}'", found.expects, printable(text)));
}

void check_options(const std::string& model, const MixerOptions& options, const std::vector<std::string>& allowed) {
  if (has(allowed, "heads") && options.width % options.heads != 0)
    throw bad_input("model.heads", fmt::format("width {} is not divisible by {} heads", options.width, options.heads));
  const auto fits = [&](const char* name, double expand) {
    const double width = expand * static_cast<double>(options.width);
    const double heads = static_cast<double>(options.heads);
    if (has(allowed, name) && (width < heads || std::abs(width / heads - std::round(width / heads)) > 1e-9))
      throw bad_input("model." + std::string(name),
                      fmt::format("{} * width {} is not a multiple of {} heads", expand, options.width, options.heads));
  };
  fits("expand_k", options.expand_k);
  fits("expand_v", options.expand_v);
  if (has(allowed, "d_state") && options.d_state < 1)
    throw bad_input("model.d_state", fmt::format("expected at least 1, got {}", options.d_state));
  if (model == "s4" && options.d_state % 2 != 0)
    throw bad_input("model.d_state", fmt::format("s4 needs an even number, got {}", options.d_state));
}

ModelConfig model_config(const std::string& name, int64_t width, const Switches& asked, int64_t layers, int64_t inputs,
                         int64_t outputs, double dropout) {
  const ModelRow& row = find_model(name);
  const auto in_range = [](const char* field, int64_t value, int64_t high) {
    if (value < 1 || value > high)
      throw bad_input(std::string("model.") + field, fmt::format("expected 1..{}, got {}", high, value));
  };
  in_range("width", width, 1 << 16);
  in_range("layers", layers, 1024);
  in_range("inputs", inputs, 1 << 24);
  in_range("outputs", outputs, 1 << 24);
  if (!(dropout >= 0 && dropout < 1))
    throw bad_input("model.dropout", fmt::format("expected a number in [0, 1), got {}", dropout));

  ModelConfig config{name, width, layers, inputs, outputs, dropout, row.defaults};
  config.mixer.dropout = dropout;
  config.mixer.heads = 0;
  for (const auto& [key, text] : asked) {
    find_switch(key);
    if (!has(row.switches, key)) {
      std::vector<std::string> owners;
      for (const auto& other : registry())
        if (has(other.switches, key)) owners.push_back(other.name);
      throw bad_input("model." + key,
                      fmt::format("{} has no such switch, expected one of the models {}", name, join_or(owners)));
    }
    set_switch(config.mixer, key, text);
  }
  config.mixer.width = name == "transformer" ? transformer_width(width) : width;
  if (config.mixer.heads == 0) config.mixer.heads = has(row.switches, "heads") ? default_heads(width) : 1;
  check_options(name, config.mixer, row.switches);
  // What acts are whole widths of a head; 1/3 written with more or fewer digits is one network.
  const auto share = [&](int64_t head) {
    return static_cast<double>(head * config.mixer.heads) / static_cast<double>(config.mixer.width);
  };
  if (has(row.switches, "expand_k")) config.mixer.expand_k = share(config.mixer.key_width());
  if (has(row.switches, "expand_v")) config.mixer.expand_v = share(config.mixer.value_width());
  return config;
}

}  // namespace sb
