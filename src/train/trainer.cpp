#include "train/trainer.h"

#include <ATen/ATen.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/registry.h"
#include "train/schedule.h"

namespace sb {
namespace {

bool is_delta(const std::string& model) {
  return model == "delta_net" || model == "gated_delta_net" || model == "gated_delta_product";
}

bool keeps_bf16(const RunConfig& config) {
  return config.quirks.delta_bf16 && is_delta(config.model.name);
}

// S4D's time constants have their own group: a lower rate, no decay.
std::vector<ParameterGroup> groups_of(const Network& network) {
  std::vector<const Parameter*> order;
  for (const Parameter& p : network.parameters().all()) order.push_back(&p);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  std::vector<ParameterGroup> groups;
  for (const Parameter* p : order) {
    const bool slow = p->name.ends_with("kernel.log_dt") || p->name.ends_with("kernel.log_A_real") ||
                      p->name.ends_with("kernel.A_imag");
    const double cap = slow ? 1e-3 : 0;
    if (groups.empty() || groups.back().max_lr != cap) groups.push_back({p->offset, 0, cap, !slow});
    groups.back().length = p->offset + p->count() - groups.back().offset;
  }
  return groups;
}

AdamConfig adam_config(const RunConfig& config) {
  return {config.train.beta1, config.train.beta2, config.train.eps, config.train.weight_decay, keeps_bf16(config)};
}

NamedBytes named(const std::string& name, const Parameter& p, const at::Tensor& flat) {
  const bool wide = flat.scalar_type() == at::kDouble;
  const char* data = static_cast<const char*>(flat.data_ptr());
  return {name, wide ? "F64" : "F32", p.shape, data + p.offset * flat.element_size()};
}

const char* const kFirst = "adam.first.";
const char* const kSecond = "adam.second.";

void copy_into(at::Tensor flat, const Parameter& p, const StoredTensor& stored) {
  if (stored.count() != p.count()) {
    throw bad_input("checkpoint", stored.name + ": expected " + std::to_string(p.count()) + " values, got " +
                                      std::to_string(stored.count()));
  }
  flat.narrow(0, p.offset, p.count()).copy_(to_tensor(stored, flat.scalar_type()).reshape({-1}));
}

}  // namespace

at::ScalarType storage_type(const TrainSection& train) {
  if (train.device != DeviceKind::cpu) {
    throw bad_input("train.device", "expected cpu, got cuda: this build trains on the CPU only");
  }
  switch (train.precision) {
    case Precision::fp64:
      return at::kDouble;
    case Precision::fp32:
      return at::kFloat;
    default:
      throw bad_input("train.precision", "expected fp32 or fp64 on the CPU, got a GPU precision");
  }
}

ModelConfig network_config(const RunConfig& config, int64_t inputs, int64_t outputs) {
  Switches switches = config.model.switches;
  if (config.quirks.double_residual && config.model.name == "transformer") switches.emplace("double_residual", "on");
  return model_config(config.model.name, config.model.width, switches, config.model.layers, inputs, outputs,
                      config.model.dropout);
}

ModelConfig network_config(const RunConfig& config, const Automaton& automaton) {
  return network_config(config, automaton.vocab, output_classes(automaton, config.task.task.objective));
}

Trainer::Trainer(const RunConfig& config, const RunData& data)
    : config_(config),
      network_(network_config(config, data.sampler->automaton()), storage_type(config.train)),
      adam_((network_.initialise(config.train.seed), network_.parameters().flat()), groups_of(network_),
            adam_config(config)) {
  if (keeps_bf16(config_)) {
    at::Tensor flat = network_.parameters().flat();
    flat.copy_(flat.to(at::kBFloat16));
  }
}

bool Trainer::dropout_acts(int64_t update) const {
  return !config_.quirks.dropout_stops || config_.eval.every == 0 || update < config_.eval.every;
}

Trainer::Step Trainer::step(const TensorBatch& batch, int64_t update) {
  const int64_t rows = batch.input.size(0), frames = batch.input.size(1), micros = config_.train.accumulate;
  const int64_t each = rows / micros;
  const at::Tensor target = batch.target.view({rows, frames});
  // Averaging over all real frames of the update makes the number of micro-batches a matter of memory alone.
  const at::Tensor real = batch.target.ge(0).sum();
  at::Tensor gradient = network_.parameters().flat_grad();
  gradient.zero_();
  const at::Tensor number = at::full({1}, update, at::kLong);
  Step out;
  for (int64_t m = 0; m < micros; ++m) {
    Pass pass;
    pass.training = dropout_acts(update);
    pass.seed = config_.train.seed;
    pass.update = number;
    pass.samples = batch.samples.narrow(0, m * each, each);
    const at::Tensor loss = network_.loss(batch.input.narrow(0, m * each, each), target.narrow(0, m * each, each), pass,
                                          config_.quirks.sum_accumulated && micros > 1 ? at::Tensor() : real);
    out.loss += loss.item<double>();
    loss.backward();
  }
  if (config_.quirks.sum_accumulated && micros > 1) out.loss /= static_cast<double>(micros);
  if (keeps_bf16(config_)) gradient.copy_(gradient.to(at::kBFloat16));
  out.norm = flat_norm(gradient);
  out.lr = learning_rate({config_.train.lr, config_.train.warmup, config_.train.updates, config_.quirks.first_lr_zero},
                         update);
  out.finite = std::isfinite(out.loss) && std::isfinite(out.norm);
  if (!out.finite) return out;
  const double clip = config_.train.clip;
  adam_.update(gradient, clip > 0 ? std::min(1.0, clip / (out.norm + 1e-6)) : 1.0, out.lr);
  return out;
}

std::vector<NamedBytes> Trainer::weights() const {
  std::vector<NamedBytes> out;
  for (const Parameter& p : network_.parameters().all()) out.push_back(named(p.name, p, network_.parameters().flat()));
  return out;
}

std::vector<NamedBytes> Trainer::state() const {
  std::vector<NamedBytes> out = weights();
  for (const Parameter& p : network_.parameters().all()) out.push_back(named(kFirst + p.name, p, adam_.first_moment()));
  for (const Parameter& p : network_.parameters().all()) {
    out.push_back(named(kSecond + p.name, p, adam_.second_moment()));
  }
  return out;
}

void Trainer::restore(const Safetensors& file) {
  const at::NoGradGuard no_grad;
  at::Tensor first = at::zeros_like(adam_.first_moment()), second = at::zeros_like(first);
  for (const Parameter& p : network_.parameters().all()) {
    copy_into(network_.parameters().flat(), p, file.at(p.name));
    copy_into(first, p, file.at(kFirst + p.name));
    copy_into(second, p, file.at(kSecond + p.name));
  }
  adam_.restore(first, second, std::stoll(file.metadata().at("adam_updates")));
}

Divergence Trainer::locate(const TensorBatch& batch, int64_t update) {
  Divergence out;
  out.update = update;
  const at::NoGradGuard no_grad;
  const LayerObserver observe = [&](int64_t layer, std::string_view what, const at::Tensor& values) {
    if (out.tensor.empty() && !at::isfinite(values).all().item<bool>()) {
      out.layer = layer;
      out.tensor = what;
    }
  };
  Pass pass;
  pass.training = dropout_acts(update);
  pass.seed = config_.train.seed;
  pass.update = at::full({1}, update, at::kLong);
  pass.samples = batch.samples;
  pass.observe = &observe;
  network_.logits(batch.input, pass);
  if (!out.tensor.empty()) return out;
  // The forward pass is sound: name the last parameter in the order of the network, where the backward pass began.
  const at::Tensor gradient = network_.parameters().flat_grad();
  for (const Parameter& p : network_.parameters().all()) {
    if (!at::isfinite(gradient.narrow(0, p.offset, p.count())).all().item<bool>()) out.tensor = "gradient of " + p.name;
  }
  return out;
}

}  // namespace sb
