#include "models/network.h"

#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "base/torch_pch.h"
#include "models/declare.h"
#include "models/ops.h"

namespace sb {

void NetworkState::detach() {
  for (auto& layer : layers) layer.detach();
}

int64_t NetworkState::elements() const {
  int64_t sum = 0;
  for (const auto& layer : layers) sum += layer.elements();
  return sum;
}

Network::Network(const ModelConfig& config, at::ScalarType type, at::Device device, bool mixed) : config_(config) {
  check_network(config);
  Declared declared = declare(config);
  parameters_ = std::move(declared.parameters);
  mixers_ = std::move(declared.mixers);
  encoder_ = parameters_.find("encoder.weight");
  encoder_bias_ = parameters_.find("encoder.bias");
  decoder_ = parameters_.find("decoder.weight");
  decoder_bias_ = parameters_.find("decoder.bias");
  const auto norm = [this](const std::string& name) {
    return Norm{parameters_.find(name + ".weight"), parameters_.find(name + ".bias")};
  };
  for (int64_t l = 0; l < config.layers; ++l) {
    norms_.push_back(norm(formatted("norms.{}", l)));
    mlp_norms_.push_back(norm(formatted("mlp_norms.{}", l)));
    const auto mlp = formatted("layers.{}.mlp.", l);
    mlps_.push_back({parameters_.find(mlp + "linear1.weight"), parameters_.find(mlp + "linear1.bias"),
                     parameters_.find(mlp + "linear2.weight"), parameters_.find(mlp + "linear2.bias")});
  }
  last_norm_ = norm("last_norm");
  parameters_.allocate(type, device, mixed);
  one_ = at::ones({1}, parameters_.flat().options());
}

Context Network::context_of(int64_t layer, const Pass& pass, SharedTensors& shared) const {
  Context context;
  context.shared = &shared;
  context.layer = layer;
  if (pass.training && config_.dropout > 0) {
    const uint32_t first = static_cast<uint32_t>(layer) * LayerDropout::places;
    context.dropout = {DropoutKey{pass.seed, first, pass.update, pass.samples}, pass.places};
  }
  context.gates = pass.gates;
  context.positions = pass.positions;
  context.state = pass.state ? &pass.state->layers[static_cast<size_t>(layer)] : nullptr;
  return context;
}

at::Tensor Network::mixed(int64_t layer, const at::Tensor& x, const Context& context) const {
  auto z = mixers_[static_cast<size_t>(layer)]->forward(x, context);
  if (context.state) context.state->position += x.size(1);
  return z;
}

at::Tensor Network::mlp(int64_t layer, const at::Tensor& x, const Context& context) const {
  const auto l = static_cast<size_t>(layer);
  const Mlp& own = mlps_[l];
  if (!own.up) return mixers_[l]->feed_forward(x, context);
  return project(gate_swish(project(x, own.up, own.up_bias), one_), own.down, own.down_bias);
}

uint32_t Network::mlp_dropout() const {
  return find_model(config_.name).traits.has_mlp ? LayerDropout::own : LayerDropout::mlp;
}

at::Tensor Network::post_norm_layers(at::Tensor h, const Pass& pass) const {
  const double p = config_.dropout;
  const bool doubled = config_.mixer.residual == Residual::doubled, has_mlp = config_.mixer[switches::mlp] > 0;
  const uint32_t mlp_place = mlp_dropout();
  SharedTensors shared;
  for (int64_t l = 0; l < config_.layers; ++l) {
    const Context context = context_of(l, pass, shared);
    auto z = mixed(l, h, context);
    const auto sum = doubled || has_mlp ? h + z : z;
    if (doubled) z = sum;
    if (has_mlp) z = z + dropout(mlp(l, sum, context), p, context.dropout.at(mlp_place));
    const auto& [gain, bias] = norms_[static_cast<size_t>(l)];
    h = residual_layer_norm(z, h, gain->value, bias->value, p, context.dropout.at(LayerDropout::residual));
    if (pass.observe) (*pass.observe)(l, "layer output", h);
  }
  return h;
}

// A norm and the sum before it are one operation, LN(h + z). So the output z of each step is added by the next norm.
at::Tensor Network::pre_norm_layers(at::Tensor h, const Pass& pass) const {
  const auto type = h.scalar_type();
  const double p = config_.dropout;
  const bool has_mlp = config_.mixer[switches::mlp] > 0;
  auto z = at::zeros_like(h);
  std::optional<DropoutKey> key;  // of z
  h = wide(h);
  const auto sum = [&] { return h + dropout(z, key ? p : 0, key); };
  const auto normed = [&](const Norm& norm) {
    const auto out = residual_layer_norm(z, h, norm.first->value, norm.second->value, key ? p : 0, key).to(type);
    h = sum();
    return out;
  };
  SharedTensors shared;
  for (int64_t l = 0; l < config_.layers; ++l) {
    const Context context = context_of(l, pass, shared);
    const auto x = normed(norms_[static_cast<size_t>(l)]);
    z = mixed(l, x, context);
    key = context.dropout.at(LayerDropout::residual);
    if (has_mlp) {
      const auto y = normed(mlp_norms_[static_cast<size_t>(l)]);
      z = mlp(l, y, context);
      key = context.dropout.at(mlp_dropout());
    }
    if (pass.observe) (*pass.observe)(l, "layer output", sum());
  }
  return normed(last_norm_);
}

at::Tensor Network::hidden(const at::Tensor& x, const Pass& pass) const {
  if (x.dim() != 3 || x.size(2) != config_.inputs || x.size(1) < 1)
    throw bad_input("network", formatted("expected frames [B,T,{}] with T >= 1, got [{}]", config_.inputs,
                                         joined(x.sizes().vec(), ",")));
  if (pass.state) pass.state->layers.resize(static_cast<size_t>(config_.layers));
  auto h = project(x, encoder_, encoder_bias_);
  if (pass.observe) (*pass.observe)(-1, "encoder", h);
  return config_.mixer.residual == Residual::pre ? pre_norm_layers(h, pass) : post_norm_layers(h, pass);
}

at::Tensor Network::decode(const at::Tensor& hidden) const {
  const at::Tensor &weight = decoder_->value, &bias = decoder_bias_->value;
  if (hidden.scalar_type() == weight.scalar_type()) return project(hidden, decoder_, decoder_bias_);
  // Half-precision activations with float weights: rounds the operands, but not the logits, as loss() does.
  return project(hidden.to(weight.scalar_type()), weight.to(hidden.scalar_type()).to(weight.scalar_type()), bias);
}

at::Tensor Network::logits(const at::Tensor& x, const Pass& pass) const {
  auto out = decode(hidden(x, pass));
  if (pass.observe) (*pass.observe)(-1, "logits", out);
  return out;
}

at::Tensor Network::loss(const at::Tensor& x, const at::Tensor& target, const Pass& pass,
                         const at::Tensor& normaliser) const {
  const auto h = hidden(x, pass);
  return decoder_cross_entropy(h.reshape({-1, h.size(2)}), decoder_->value, decoder_bias_->value, target.reshape({-1}),
                               normaliser, decoder_->copy);
}

at::Tensor Network::squared_error(const at::Tensor& x, const at::Tensor& target, const at::Tensor& value,
                                  const Pass& pass, const at::Tensor& normaliser) const {
  const auto out = decode(hidden(x, pass));
  if (value.sizes() != out.sizes() || target.sizes() != out.sizes().slice(0, 2))
    throw bad_input("network", formatted("expected values [{}] and targets of their frames, got [{}] and [{}]",
                                         joined(out.sizes().vec(), ","), joined(value.sizes().vec(), ","),
                                         joined(target.sizes().vec(), ",")));
  const auto asked = target.ge(0);
  const auto divisor = (normaliser.defined() ? normaliser.detach().reshape({1}) : asked.sum().reshape({1}))
                           .to(out.device(), at::kDouble);
  const auto off = (out - value.to(out.scalar_type())).to(at::kDouble) * asked.unsqueeze(-1);
  // ATen splits a long sum to one number among threads, so its order would depend on their number. Sums of single rows
  // are not split, and their sum is short.
  return off.square().sum({1, 2}).sum().reshape({1}) / (divisor * static_cast<double>(out.size(2)));
}

at::Tensor Network::step(const at::Tensor& x, NetworkState& state) const {
  const at::NoGradGuard no_gradients;
  Pass pass;
  pass.state = &state;
  return logits(x.unsqueeze(1), pass).squeeze(1);
}

at::Tensor to_tensor(const StoredTensor& stored, at::ScalarType type, at::Device device) {
  const auto values = stored.as_doubles();
  auto out = at::empty(stored.shape, at::kDouble);
  std::copy(values.begin(), values.end(), out.data_ptr<double>());
  return out.to(at::TensorOptions().dtype(type).device(device));
}

void Network::load(const Safetensors& file, const std::string& prefix) {
  const at::NoGradGuard no_gradients;
  for (const auto& parameter : parameters_.all()) {
    const StoredTensor& stored = file.at(prefix + parameter.name);
    if (stored.shape != parameter.shape)
      throw bad_input("safetensors",
                      formatted("{}: '{}' has shape [{}], expected [{}]", file.name(), printable(stored.name),
                                joined(stored.shape, ","), joined(parameter.shape, ",")));
    const at::Tensor value = parameter.value;
    value.detach().copy_(to_tensor(stored, at::kDouble));
  }
  parameters_.refresh_copy();
}

std::vector<std::string> Network::misfits(const Safetensors& file) const {
  const auto shape_text = [](const std::vector<int64_t>& shape) { return "[" + joined(shape, ", ") + "]"; };
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (const auto& p : parameters_.all()) {
    known.insert(p.name);
    const StoredTensor* stored = file.find(p.name);
    if (!stored) {
      lines.push_back("missing: " + p.name + " " + shape_text(p.shape));
    } else if (stored->shape != p.shape) {
      lines.push_back("wrong shape: " + p.name + ", expected " + shape_text(p.shape) + ", got " +
                      shape_text(stored->shape));
    } else if (stored->dtype < Dtype::f16) {
      lines.push_back("wrong type: " + p.name + ", expected floating point, got " +
                      std::string(dtype_name(stored->dtype)));
    }
  }
  for (const auto& tensor : file.tensors())
    if (!known.contains(tensor.name))
      lines.push_back("not of this model: " + printable(tensor.name) + " " + shape_text(tensor.shape));
  return lines;
}

}  // namespace sb
