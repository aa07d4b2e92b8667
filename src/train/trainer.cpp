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

bool keeps_bf16(const RunConfig& config) {
  return config.quirks.delta_bf16 && find_model(config.model.name).traits.published_in_bf16;
}

// Parameters that learn alike and lie side by side are one group.
std::vector<ParameterGroup> groups_of(const Network& network) {
  std::vector<const Parameter*> order;
  for (const Parameter& p : network.parameters().all()) order.push_back(&p);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  std::vector<ParameterGroup> groups;
  for (const Parameter* p : order) {
    const LearningGroup last =
        groups.empty() ? LearningGroup{} : LearningGroup{groups.back().max_lr, groups.back().decay};
    if (groups.empty() || last != p->group) groups.push_back({p->offset, 0, p->group.max_lr, p->group.decay});
    groups.back().length = p->offset + p->count() - groups.back().offset;
  }
  return groups;
}

AdamConfig adam_config(const RunConfig& config) {
  const TrainSection& t = config.train;
  return {t.beta1, t.beta2, t.eps, t.weight_decay, keeps_bf16(config), t.clip};
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
  // A quirk with the name of a switch is that switch where nothing else is said.
  constexpr const char* doubled = "double_residual";
  if (config.quirks.double_residual && find_model(config.model.name).find(doubled)) switches.emplace(doubled, "on");
  return model_config(config.model.name, config.model.width, switches, config.model.layers, inputs, outputs,
                      config.model.dropout);
}

ModelConfig network_config(const RunConfig& config, const TaskShape& task) {
  return network_config(config, task.channels, task.answers);
}

Trainer::Trainer(const RunConfig& config, const RunData& data)
    : config_(config),
      network_(network_config(config, data.maker->shape()), storage_type(config.train)),
      adam_((network_.initialise(config.train.seed), network_.parameters().flat()), groups_of(network_),
            adam_config(config)) {
  const at::TensorOptions where = at::TensorOptions().device(network_.parameters().flat().device());
  number_ = at::zeros({1}, where.dtype(at::kLong));
  frames_ = at::zeros({1}, where.dtype(at::kLong));
  lr_ = at::zeros({1}, where.dtype(at::kDouble));
  if (keeps_bf16(config_)) {
    at::Tensor flat = network_.parameters().flat();
    flat.copy_(flat.to(at::kBFloat16));
  }
}

bool Trainer::dropout_acts(int64_t update) const {
  return !config_.quirks.dropout_stops || config_.eval.every == 0 || update < config_.eval.every;
}

double Trainer::learning_rate_of(int64_t update) const {
  const TrainSection& t = config_.train;
  return learning_rate({t.lr, t.warmup, t.updates, config_.quirks.first_lr_zero}, update);
}

void Trainer::prepare(const TensorBatch& batch, int64_t update) {
  number_.fill_(update);
  frames_.fill_(batch.real_frames);
  lr_.fill_(learning_rate_of(update));
}

// Of all micro-batches together, into the flat buffer; returns the loss, [1] float64. Each micro-batch adds the sum
// over its real frames divided by those of the whole update, so `accumulate` changes memory and rounding alone: unequal
// micro-batches weigh as many frames as they have, and dropout masks follow the samples.
at::Tensor Trainer::gradients(const TensorBatch& batch, int64_t update) {
  const int64_t rows = batch.input.size(0), frames = batch.input.size(1), micros = config_.train.accumulate;
  const int64_t each = rows / micros;
  const bool summed = config_.quirks.sum_accumulated && micros > 1;  // each by its own frames
  const at::Tensor target = batch.target.view({rows, frames});
  at::Tensor gradient = network_.parameters().flat_grad();
  gradient.zero_();
  at::Tensor sum = at::zeros_like(lr_);
  for (int64_t m = 0; m < micros; ++m) {
    Pass pass;
    pass.training = dropout_acts(update);
    pass.seed = config_.train.seed;
    pass.update = number_;
    pass.samples = batch.samples.narrow(0, m * each, each);
    const at::Tensor loss = network_.loss(batch.input.narrow(0, m * each, each), target.narrow(0, m * each, each), pass,
                                          summed ? at::Tensor() : frames_);
    sum.add_(loss.detach());
    loss.backward();
  }
  if (summed) sum.div_(static_cast<double>(micros));
  if (keeps_bf16(config_)) gradient.copy_(gradient.to(at::kBFloat16));
  return sum;
}

StepHandle Trainer::step(const TensorBatch& batch, int64_t update) {
  prepare(batch, update);
  const at::Tensor loss = gradients(batch, update);
  return StepHandle(at::cat({loss, adam_.update(network_.parameters().flat_grad(), lr_, loss)}),
                    learning_rate_of(update));
}

StepFigures StepHandle::read() const {
  const at::Tensor here = figures_.to(at::kCPU);
  const double* values = here.data_ptr<double>();
  return {values[0], values[1], lr_, values[2] != 0};
}

StepHandle CpuExecutor::step(const TensorBatch& batch, int64_t update) {
  return trainer_.step(batch, update);
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

Divergence Trainer::locate_forward(const at::Tensor& input, const at::Tensor& samples, int64_t update, Forward kind) {
  Divergence out;
  out.update = update;
  const LayerObserver observe = [&](int64_t layer, std::string_view what, const at::Tensor& values) {
    if (out.tensor.empty() && !at::isfinite(values).all().item<bool>()) {
      out.layer = layer;
      out.tensor = what;
    }
  };
  number_.fill_(update);
  Pass pass;
  pass.training = kind == Forward::update && dropout_acts(update);
  pass.seed = config_.train.seed;
  pass.update = number_;
  pass.samples = samples;
  pass.observe = &observe;
  const at::NoGradGuard no_grad;
  network_.logits(input, pass);
  return out;
}

Divergence Trainer::locate(const TensorBatch& batch, int64_t update) {
  Divergence out = locate_forward(batch.input, batch.samples, update, Forward::update);
  if (!out.tensor.empty()) return out;
  // The forward pass is sound: name the last parameter in the order of the network, where the backward pass began.
  // Later updates may have overwritten the gradients.
  prepare(batch, update);
  gradients(batch, update);
  const at::Tensor gradient = network_.parameters().flat_grad();
  for (const Parameter& p : network_.parameters().all()) {
    if (!at::isfinite(gradient.narrow(0, p.offset, p.count())).all().item<bool>()) out.tensor = "gradient of " + p.name;
  }
  if (out.tensor.empty()) out.tensor = "loss";
  return out;
}

}  // namespace sb
