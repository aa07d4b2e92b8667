#include "train/bench.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/stopwatch.h"
#include "kernels/backend.h"
#include "kernels/bench.h"
#include "kernels/cpu/block_pool.h"
#include "models/declare.h"
#include "train/trainer.h"

namespace sb {
namespace {

RunConfig config_of(const TrainBenchRequest& request, const std::string& model, int elements) {
  RunConfig config;
  config.task.task = paper_task(1);
  config.task.length = elements;
  config.task.stream = Stream::direct;
  config.model.name = model;
  config.model.width = request.width;
  config.model.layers = request.layers;
  config.train.batch = request.batch;
  config.train.warmup = 1;
  config.train.device = DeviceKind::cpu;
  return config;
}

// Bytes of resident memory: now, and the most since reset_peak().
double status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size())) * 1024;
  }
  return 0;
}
void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// An update, and the wait until it is made.
StepFigures step(Trainer& trainer, const TensorBatch& batch, int64_t update) {
  return CpuExecutor(trainer).step(batch, update).read();
}

double peak_of_step(Trainer& trainer, const TensorBatch& batch) {
  step(trainer, batch, 1);
  cpu::release_free_blocks();  // blocks kept from earlier steps would hide this step's peak
  malloc_trim(0);
  const double before = status_bytes("VmRSS:");
  reset_peak();
  step(trainer, batch, 1);
  return std::max(0.0, status_bytes("VmHWM:") - before);
}

TensorBatch first_batch(const RunData& data, int count) {
  Batch frames;
  data.task->fill(Split::train, 0, count, frames);
  return to_tensors(std::move(frames), *data.task, at::kFloat);
}

// `longer`: the same run with sequences twice as long.
TrainBenchRow measure(const TrainBenchRequest& request, const RunConfig& config, const RunConfig& longer, double gemm) {
  const RunData data = make_data(config);
  Trainer trainer(config, data);
  TrainBenchRow row;
  row.model = config.model.name;
  row.params = trainer.network().parameters().count();
  TensorBatch batch;
  double data_seconds = 1e9;
  for (int i = 0; i < 3; ++i) {
    data_seconds = std::min(data_seconds, seconds_of([&] { batch = first_batch(data, config.train.batch); }));
  }
  row.frames = batch.input.size(0) * batch.input.size(1);
  row.flops = cost(trainer.network().config(), batch.input.size(1)).training_flops() * static_cast<double>(row.frames);

  const double ours = step(trainer, batch, 0).loss;
  if (request.plain) {
    Trainer twin(config, data);
    const kernels::UseBackend aten(kernels::Backend::aten);
    const double theirs = step(twin, batch, 0).loss;
    row.loss_difference = std::abs(ours - theirs) / theirs;
  }
  // Alternates between both, so that other load on the machine affects both.
  double best = 1e9, best_plain = 1e9;
  for (int i = 0; i < request.repeats; ++i) {
    best = std::min(best, seconds_of([&] { step(trainer, batch, 1); }));
    if (request.plain && i < 2) {
      const kernels::UseBackend aten(kernels::Backend::aten);
      best_plain = std::min(best_plain, seconds_of([&] { step(trainer, batch, 1); }));
    }
  }
  row.step_seconds = best;
  row.tokens_per_second = static_cast<double>(row.frames) / best;
  row.share_of_gemm = row.flops / best / gemm;
  if (request.plain) row.plain_ratio = best_plain / best;
  row.data_share = data_seconds / best;

  Pass pass;
  pass.training = true;
  pass.update = at::zeros({1}, at::kLong);
  pass.samples = batch.samples;
  at::Tensor loss;
  const at::Tensor target = batch.target.view({batch.input.size(0), batch.input.size(1)});
  const at::Tensor rate = at::full({1}, 1e-9, at::kDouble);
  double forward = 1e9, backward = 1e9, optimiser = 1e9;
  for (int i = 0; i < 3; ++i) {
    forward = std::min(forward, seconds_of([&] { loss = trainer.network().loss(batch.input, target, pass); }));
    backward = std::min(backward, seconds_of([&] { loss.backward(); }));
    const at::Tensor gradient = trainer.network().parameters().flat_grad();
    optimiser = std::min(optimiser, seconds_of([&] { trainer.adam().update(gradient, rate, at::zeros_like(rate)); }));
  }
  const double sum = forward + backward + optimiser;
  row.forward_share = forward / sum;
  row.backward_share = backward / sum;
  row.optimiser_share = optimiser / sum;

  row.peak_bytes = peak_of_step(trainer, batch);
  const RunData twice = make_data(longer);
  row.peak_bytes_twice = peak_of_step(trainer, first_batch(twice, config.train.batch));
  return row;
}

}  // namespace

TrainBench bench_train(const TrainBenchRequest& request) {
  TrainBench out;
  out.gemm_flops = measure_gemm_rate({});
  for (const auto& model : request.models) {
    if (request.progress) request.progress(model);
    out.rows.push_back(measure(request, config_of(request, model, request.elements),
                               config_of(request, model, 2 * request.elements), out.gemm_flops));
  }
  for (const RunConfig& config : request.configs) {
    if (request.progress) request.progress(config.model.name);
    RunConfig longer = config;
    longer.task.length *= 2;
    out.rows.push_back(measure(request, config, longer, out.gemm_flops));
  }
  return out;
}

}  // namespace sb
