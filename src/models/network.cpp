#include "models/network.h"

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
  for (int64_t l = 0; l < config.layers; ++l) {
    norms_.emplace_back(parameters_.find(formatted("norms.{}.weight", l)),
                        parameters_.find(formatted("norms.{}.bias", l)));
    const auto mlp = formatted("layers.{}.mlp.", l);
    mlps_.push_back({parameters_.find(mlp + "linear1.weight"), parameters_.find(mlp + "linear1.bias"),
                     parameters_.find(mlp + "linear2.weight"), parameters_.find(mlp + "linear2.bias")});
  }
  parameters_.allocate(type, device, mixed);
  one_ = at::ones({1}, parameters_.flat().options());
}

at::Tensor Network::block(int64_t layer, const at::Tensor& h, const Pass& pass) const {
  const auto l = static_cast<size_t>(layer);
  Context context;
  context.layer = layer;
  if (pass.training && config_.dropout > 0) {
    const uint32_t first = static_cast<uint32_t>(layer) * LayerDropout::places;
    context.dropout = {DropoutKey{pass.seed, first, pass.update, pass.samples}, pass.places};
  }
  context.gates = pass.gates;
  context.state = pass.state ? &pass.state->layers[l] : nullptr;
  auto z = mixers_[l]->forward(h, context);
  if (context.state) context.state->position += h.size(1);
  if (const Mlp& mlp = mlps_[l]; mlp.up) {
    const auto hidden = gate_swish(project(h + z, mlp.up, mlp.up_bias), one_);
    z = z + dropout(project(hidden, mlp.down, mlp.down_bias), config_.dropout, context.dropout.at(LayerDropout::mlp));
  }
  return residual_layer_norm(z, h, norms_[l].first->value, norms_[l].second->value, config_.dropout,
                             context.dropout.at(LayerDropout::residual));
}

at::Tensor Network::hidden(const at::Tensor& x, const Pass& pass) const {
  if (x.dim() != 3 || x.size(2) != config_.inputs || x.size(1) < 1)
    throw bad_input("network", formatted("expected frames [B,T,{}] with T >= 1, got [{}]", config_.inputs,
                                         joined(x.sizes().vec(), ",")));
  if (pass.state) pass.state->layers.resize(static_cast<size_t>(config_.layers));
  auto h = project(x, encoder_, encoder_bias_);
  if (pass.observe) (*pass.observe)(-1, "encoder", h);
  for (int64_t l = 0; l < config_.layers; ++l) {
    h = block(l, h, pass);
    if (pass.observe) (*pass.observe)(l, "layer output", h);
  }
  return h;
}

at::Tensor Network::decode(const at::Tensor& hidden) const {
  const at::Tensor &weight = decoder_->value, &bias = decoder_bias_->value;
  if (hidden.scalar_type() == weight.scalar_type()) return project(hidden, decoder_, decoder_bias_);
  // Half precision beside float: the operands are rounded, the logits are not, as in loss().
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

}  // namespace sb
