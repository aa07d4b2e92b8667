#include "models/declare.h"

#include "base/error.h"
#include "base/format.h"

namespace sb {

Declared declare(const ModelConfig& config) {
  const ModelRow& row = find_model(config.name);
  const int64_t d = config.mixer.width;
  Declared out;
  ParameterList& p = out.parameters;
  p.matrix("encoder.weight", d, config.inputs);
  p.bias("encoder.bias", d, config.inputs);
  const auto add_norm = [&](const std::string& name) {
    p.ones(name + ".weight", d);
    p.add(name + ".bias", {d}, Init::constant(0));
  };
  const bool pre = config.mixer.residual == Residual::pre;
  for (int64_t l = 0; l < config.layers; ++l) add_norm(formatted("norms.{}", l));
  if (pre && config.mixer[switches::mlp] > 0)
    for (int64_t l = 0; l < config.layers; ++l) add_norm(formatted("mlp_norms.{}", l));
  if (pre) add_norm("last_norm");
  for (int64_t l = 0; l < config.layers; ++l) {
    p.set_prefix(formatted("layers.{}.", l));
    MixerOptions options = config.mixer;
    options.layer = l;
    options.layers = config.layers;
    out.mixers.push_back(row.make(options, p));
    if (const int64_t e = config.mixer[switches::mlp]; e > 0 && !row.traits.has_mlp) {
      p.matrix("mlp.linear1.weight", 2 * e * d, d);
      p.bias("mlp.linear1.bias", 2 * e * d, d);
      p.matrix("mlp.linear2.weight", d, e * d);
      p.bias("mlp.linear2.bias", d, e * d);
    }
  }
  p.set_prefix("");
  p.matrix("decoder.weight", config.outputs, d);
  p.bias("decoder.bias", config.outputs, d);
  return out;
}

void check_network(const ModelConfig& config) {
  constexpr int64_t most = int64_t{1} << 33;  // 32 GiB of weights in fp32, four times that with what training keeps
  const Declared built = declare(config);
  for (const auto& mixer : built.mixers) mixer->check_runnable();
  const int64_t all = built.parameters.count();
  if (all > most) throw bad_input("model.width", formatted("{} parameters, expected at most {}", all, most));
}

Cost cost(const ModelConfig& config, int64_t length) {
  const Declared built = declare(config);
  Cost out;
  out.parameters = built.parameters.count();
  double weights = 0;
  for (const auto& parameter : built.parameters.all()) {
    weights += static_cast<double>(parameter.uses * parameter.count());
    if (parameter.name.starts_with("layers.0.")) out.layer_parameters += parameter.count();
  }
  const Taxonomy row = built.mixers[0]->taxonomy();
  out.state_elements = row.state_elements;
  if (row.action == Taxonomy::Action::cache) out.cache_per_frame = 2 * config.mixer.width;
  out.matmul_flops = 2 * weights;
  for (const auto& each : built.mixers) out.mixing_flops += each->mixing_flops(length);
  return out;
}

}  // namespace sb
