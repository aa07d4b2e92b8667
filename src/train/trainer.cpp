#include "train/trainer.h"

#include <ATen/ATen.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/format.h"
#include "base/model_facts.h"
#include "kernels/frame_rows.h"
#include "models/registry.h"
#include "train/gpu.h"
#include "train/schedule.h"

namespace sb {
namespace {

// Adjacent parameters with equal settings form one group.
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
  // Groups include the gaps between parameters, which stay 0.
  for (size_t i = 0; i < groups.size(); ++i) {
    const int64_t end = i + 1 < groups.size() ? groups[i + 1].offset : network.parameters().flat().numel();
    groups[i].length = end - groups[i].offset;
  }
  return groups;
}

AdamConfig adam_config(const RunConfig& config) {
  const TrainSection& t = config.train;
  return {t.beta1, t.beta2, t.eps, t.weight_decay, keeps_bf16(config), t.clip};
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

bool keeps_bf16(const RunConfig& config) {
  return config.quirks.delta_bf16 && model_facts(config.model.name).published_in_bf16;
}

at::ScalarType storage_type(const TrainSection& train) {
  if (train.device == DeviceKind::cuda && !has_gpu()) {
    throw bad_input("train.device", "expected cpu, got cuda: " + gpu_facts().missing);
  }
  return train.precision == Precision::fp64 ? at::kDouble : at::kFloat;
}

at::Device device_of(const TrainSection& train) {
  const bool gpu = train.device == DeviceKind::cuda || (train.device == DeviceKind::automatic && has_gpu());
  if (!gpu) return at::kCPU;
  prepare_gpu(train.precision == Precision::tf32);
  return {at::kCUDA, 0};
}

ModelConfig network_config(const RunConfig& config, int64_t inputs, int64_t outputs) {
  const ModelSection& m = config.model;
  return model_config(m.name, m.width, m.switches, m.layers, inputs, outputs, m.dropout, m.residual);
}

ModelConfig network_config(const RunConfig& config, const TaskShape& task) {
  return network_config(config, task.channels, task.answers);
}

Trainer::Trainer(const RunConfig& config, const TaskShape& task)
    : config_(config),
      fixed_frames_(task.fixed_frames && config.train.schedule.empty()),
      micro_batches_(std::max(1, config.train.accumulate)),
      network_(network_config(config, task), storage_type(config.train), device_of(config.train),
               config.train.precision == Precision::amp),
      adam_((network_.initialise(config.train.seed), network_.parameters().flat()), groups_of(network_),
            adam_config(config)) {
  const at::TensorOptions where = at::TensorOptions().device(network_.parameters().flat().device());
  number_ = at::zeros({1}, where.dtype(at::kLong));
  frames_ = at::zeros({1}, where.dtype(at::kLong));
  lr_ = at::zeros({1}, where.dtype(at::kDouble));
  if (keeps_bf16(config_)) {
    at::Tensor flat = network_.parameters().flat();
    flat.copy_(flat.to(at::kBFloat16));
    network_.parameters().refresh_copy();
  }
  adam_.also_write(network_.parameters().flat_copy());
}

void Trainer::join(ProcessGroup& group) {
  group_ = &group;
  const auto [first, last] = group.rows(config_.train.batch);
  // Divides the micro-batches among the ranks, rounded up; a rank has at most one per row.
  const int64_t each = (micro_batches_ + group.size() - 1) / group.size();
  micro_batches_ = std::min<int64_t>(each, last - first);
}

// quirks.sum_accumulated: each micro-batch is normalised by its own frames. Has no effect with `accumulate = "auto"`.
bool Trainer::sums_micro_batches() const {
  return config_.quirks.sum_accumulated && !may_split() && config_.train.accumulate > 1;
}

bool Trainer::dropout_acts(int64_t update) const {
  return update < config_.train.dropout_until;
}

double Trainer::learning_rate_of(int64_t update) const {
  const TrainSection& t = config_.train;
  return learning_rate({t.lr, t.warmup, t.updates, config_.quirks.first_lr_zero}, update);
}

void Trainer::prepare(int64_t real_frames, int64_t update) {
  if (real_frames == 0) throw check_failed("trainer", formatted("no frame of update {} has a target", update));
  number_.fill_(update);
  frames_.fill_(real_frames);
  lr_.fill_(learning_rate_of(update));
}

// A captured graph has fixed shapes. If samples differ in length, multiples of 64 frames keep the number of shapes
// small.
int64_t Trainer::padded(int64_t frames) const {
  constexpr int64_t grain = 64;
  return fixed_frames_ ? frames : (frames + grain - 1) / grain * grain;
}

// Makes one-hot frames on the GPU, so that only symbols are copied there.
at::Tensor Trainer::frames_of(const TensorBatch& batch) const {
  const bool mixed = network_.parameters().flat_copy().defined();
  if (batch.input.defined()) return mixed ? batch.input.to(at::kBFloat16) : batch.input;
  const NoiseOfFrames& n = batch.noise;
  const kernels::FrameNoise noise{static_cast<float>(n.size), n.seed, static_cast<uint32_t>(n.split), batch.samples};
  const at::Tensor dense = kernels::frame_rows(batch.symbol, n.channels, mixed ? at::kBFloat16 : at::kFloat, noise);
  return mixed ? dense : dense.to(network_.parameters().flat().scalar_type());
}

// Sums the gradients of all micro-batches in the flat buffer and returns the loss, [1] float64. Each micro-batch adds
// the sum over its frames, divided by the number of frames of the whole update; dropout masks depend on the samples. So
// `accumulate` changes only memory and rounding.
at::Tensor Trainer::gradients(const TensorBatch& batch, bool dropout, int64_t micro_batches, int64_t most) {
  const at::Tensor input = frames_of(batch);
  const int64_t rows = input.size(0), frames = input.size(1);
  const int64_t micros = micro_batches > 0 ? micro_batches : micro_batches_;
  const bool summed = sums_micro_batches();
  const at::Tensor target = batch.target.view({rows, frames});
  at::Tensor gradient = network_.parameters().flat_grad();
  gradient.zero_();
  at::Tensor sum = at::zeros_like(lr_);
  for (int64_t m = 0; m < (most > 0 ? std::min(most, micros) : micros); ++m) {
    const int64_t first = m * rows / micros, each = (m + 1) * rows / micros - first;
    Pass pass;
    pass.training = dropout;
    pass.seed = config_.train.seed;
    pass.update = number_;
    pass.samples = batch.samples.narrow(0, first, each);
    if (batch.positions.defined()) pass.positions = batch.positions.narrow(0, first, each);
    const at::Tensor x = input.narrow(0, first, each), asked = target.narrow(0, first, each);
    const at::Tensor divisor = summed ? asked.ge(0).sum().clamp_min(1) : frames_;
    const at::Tensor loss = batch.value.defined()
                                ? network_.squared_error(x, asked, batch.value.narrow(0, first, each), pass, divisor)
                                : network_.loss(x, asked, pass, divisor);
    sum.add_(loss.detach());
    loss.backward();
  }
  if (summed) sum.div_(static_cast<double>(config_.train.accumulate));
  return sum;
}

StepHandle Trainer::step(const TensorBatch& batch, int64_t update) {
  prepare(batch.real_frames, update);
  return StepHandle(operations(batch, dropout_acts(update)), learning_rate_of(update));
}

at::Tensor Trainer::operations(const TensorBatch& batch, bool dropout) {
  const at::Tensor loss = gradients(batch, dropout);
  if (together()) sum_over_ranks(loss);
  return apply(loss);
}

void Trainer::sum_over_ranks(const at::Tensor& loss) {
  group_->all_reduce(network_.parameters().flat_grad(), loss);
}

at::Tensor Trainer::apply(const at::Tensor& loss) {
  at::Tensor gradient = network_.parameters().flat_grad();
  if (keeps_bf16(config_)) gradient.copy_(gradient.to(at::kBFloat16));
  return at::cat({loss, adam_.update(gradient, lr_, loss)});
}

StepFigures StepHandle::read() const {
  if (wait_) wait_();
  const at::Tensor here = figures_.to(at::kCPU);
  const double* values = here.data_ptr<double>();
  return {values[0], values[1], lr_, values[2] != 0};
}

StepHandle CpuExecutor::step(const TensorBatch& batch, int64_t update) {
  return trainer_.step(batch, update);
}

std::array<at::Tensor, 3> Trainer::flats() const {
  return {network_.parameters().flat(), adam_.first_moment(), adam_.second_moment()};
}

at::Tensor Trainer::mirrored(size_t which) const {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = flats()[which];
  at::Tensor& mirror = mirrors_[which];
  // Copies between a GPU and pinned memory are asynchronous and several times as fast.
  if (!mirror.defined()) {
    mirror =
        at::empty(flat.sizes(), at::TensorOptions().dtype(flat.scalar_type()).pinned_memory(!flat.device().is_cpu()));
  }
  mirror.copy_(flat.detach(), true);
  return mirror;
}

// If `flat` is undefined, returns only names, types and shapes.
std::vector<NamedBytes> Trainer::named(size_t which, const at::Tensor& flat) const {
  const char* const prefix[] = {"", kFirst, kSecond};
  const char* data = flat.defined() ? static_cast<const char*>(flat.data_ptr()) : nullptr;
  const at::ScalarType type = flats()[which].scalar_type();
  const auto bytes = static_cast<int64_t>(c10::elementSize(type));
  std::vector<NamedBytes> out;
  for (const Parameter& p : network_.parameters().all()) {
    out.push_back({prefix[which] + p.name, type == at::kDouble ? "F64" : "F32", p.shape,
                   data == nullptr ? nullptr : data + p.offset * bytes});
  }
  return out;
}

std::vector<NamedBytes> Trainer::weights() const {
  if (device().is_cpu()) return named(0, flats()[0]);
  const at::Tensor copy = mirrored(0);
  wait_for_gpu();
  return named(0, copy);
}

std::vector<NamedBytes> Trainer::state() const {
  if (!device().is_cpu()) {
    const Snapshot out = snapshot();
    out.arrived();
    return out.tensors;
  }
  std::vector<NamedBytes> out;
  for (size_t which = 0; which < mirrors_.size(); ++which) {
    for (auto& tensor : named(which, flats()[which])) out.push_back(std::move(tensor));
  }
  return out;
}

Trainer::Snapshot Trainer::snapshot() const {
  Snapshot out;
  for (size_t which = 0; which < mirrors_.size(); ++which) {
    for (auto& tensor : named(which, mirrored(which))) out.tensors.push_back(std::move(tensor));
  }
  if (!device().is_cpu()) out.arrived = gpu_marker();
  return out;
}

std::vector<NamedBytes> Trainer::state_layout() const {
  std::vector<NamedBytes> out;
  for (size_t which = 0; which < mirrors_.size(); ++which) {
    for (auto& tensor : named(which, {})) out.push_back(std::move(tensor));
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
  network_.parameters().refresh_copy();
  adam_.restore(first, second, std::stoll(file.metadata().at("adam_updates")));
}

void Trainer::share_state(int64_t updates) {
  const at::NoGradGuard no_grad;
  std::array<at::Tensor, 3> all = flats();
  for (at::Tensor& flat : all) group_->broadcast(flat.detach());
  network_.parameters().refresh_copy();
  // The moments are already there; this sets the update count.
  if (!group_->writes()) adam_.restore(all[1], all[2], updates);
}

// Works in micro-batches and computes logits in blocks of frames, so it needs no more memory than the update.
Divergence Trainer::first_in(const at::Tensor& input, const at::Tensor& samples, const at::Tensor& positions,
                             int64_t update, Forward kind, int64_t micros) {
  constexpr int64_t stretch = 256;  // frames
  Divergence out;
  out.update = update;
  int64_t place = 0, first = std::numeric_limits<int64_t>::max();  // in the order of the network
  const LayerObserver observe = [&](int64_t layer, std::string_view what, const at::Tensor& values) {
    if (place < first && !at::isfinite(values).all().item<bool>()) {
      first = place;
      out.layer = layer;
      out.tensor = what;
    }
    ++place;
  };
  number_.fill_(update);
  Pass pass;
  pass.training = kind == Forward::update && dropout_acts(update);
  pass.seed = config_.train.seed;
  pass.update = number_;
  pass.observe = &observe;
  const at::NoGradGuard no_grad;
  for (int64_t m = 0; m < micros; ++m) {
    const int64_t begin = m * input.size(0) / micros, each = (m + 1) * input.size(0) / micros - begin;
    place = 0;
    pass.samples = samples.narrow(0, begin, each).to(device());
    if (positions.defined()) pass.positions = positions.narrow(0, begin, each);
    const at::Tensor hidden = network_.hidden(input.narrow(0, begin, each).to(device()), pass);
    for (int64_t from = 0; from < hidden.size(1); from += stretch) {
      observe(-1, "logits", network_.decode(hidden.narrow(1, from, std::min(stretch, hidden.size(1) - from))));
    }
  }
  return out;
}

Divergence Trainer::locate_forward(const at::Tensor& input, const at::Tensor& samples, int64_t update, Forward kind) {
  try {
    return first_in(input, samples, {}, update, kind, 1);
  } catch (const c10::OutOfMemoryError&) {
    return {update, -1, ""};
  }
}

Divergence Trainer::locate(const TensorBatch& batch, int64_t update) {
  try {
    TensorBatch here;
    if (batch.input.defined()) {
      here.input = batch.input.to(device());
    } else {
      here.symbol = batch.symbol.to(device());
      here.noise = batch.noise;
    }
    here.target = batch.target.to(device());
    here.samples = batch.samples.to(device());
    if (batch.value.defined()) here.value = batch.value.to(device());
    if (batch.positions.defined()) here.positions = batch.positions.to(device());
    Divergence out = first_in(frames_of(here), here.samples, here.positions, update, Forward::update, micro_batches_);
    if (!out.tensor.empty()) return out;
    // The forward pass is finite. Names the last parameter, in network order, whose gradient is not finite: the
    // backward pass reached it first. Computes the gradients again, since later updates may have overwritten them.
    prepare(batch.real_frames, update);
    gradients(here, dropout_acts(update));
    const at::Tensor gradient = network_.parameters().flat_grad();
    for (const Parameter& p : network_.parameters().all()) {
      if (!at::isfinite(gradient.narrow(0, p.offset, p.count())).all().item<bool>())
        out.tensor = "gradient of " + p.name;
    }
    if (out.tensor.empty()) out.tensor = "loss";
    return out;
  } catch (const c10::OutOfMemoryError&) {  // the run has diverged; only the place is unknown
    return {update, -1, "loss"};
  }
}

}  // namespace sb
