#include "train/bench_gpu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "models/declare.h"
#include "train/gpu.h"
#include "train/trainer.h"

namespace sb {
namespace {

constexpr int kChannels = 41, kClasses = 1601;  // of the paper's grammar

RunConfig config_of(const GpuBenchRequest& request, const std::string& model, int width) {
  RunConfig config;
  config.task.task = paper_task(1);
  config.model.name = model;
  config.model.width = width;
  config.model.layers = request.layers;
  config.train.batch = request.batch;
  config.train.device = DeviceKind::cuda;
  config.train.precision = request.precision;
  return config;
}

TensorBatch random_batch(int batch, int time) {
  at::manual_seed(1);
  TensorBatch out;
  out.symbol = at::randint(kChannels, {batch, time}, at::kLong).to(at::kShort).pin_memory();
  out.noise = {kChannels, 0.1, 1, Split::train};
  out.target = at::randint(kClasses, {int64_t{batch} * time}, at::kLong).pin_memory();
  out.samples = at::arange(batch, at::kLong).pin_memory();
  out.real_frames = int64_t{batch} * time;
  return out;
}

double product_rate() {
  const int64_t n = 8192;
  const at::Tensor a = at::randn({n, n}, at::TensorOptions().device(at::kCUDA).dtype(at::kBFloat16));
  const at::Tensor b = at::randn_like(a);
  at::Tensor c = at::mm(a, b);
  wait_for_gpu();
  const int times = 20;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < times; ++i) at::mm_out(c, a, b);
    wait_for_gpu();
  });
  return 2.0 * static_cast<double>(n * n * n) * times / seconds;
}

double copy_rate() {
  const at::Tensor a = at::randn({int64_t{1} << 29}, at::TensorOptions().device(at::kCUDA));
  at::Tensor b = at::empty_like(a);
  b.copy_(a);
  wait_for_gpu();
  const int times = 20;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < times; ++i) b.copy_(a);
    wait_for_gpu();
  });
  return 2.0 * static_cast<double>(a.nbytes()) * times / seconds;
}

GpuBenchRow measure(const GpuBenchRequest& request, const GpuBenchCase& asked, double rate) {
  GpuBenchRow row;
  row.of = asked;
  row.precision = request.precision;
  try {
    reset_gpu_peak();
    Trainer trainer(config_of(request, asked.model, asked.width), TaskShape{kChannels, kClasses, 0});
    row.params = trainer.network().parameters().count();
    const auto executor = gpu_executor(trainer);
    const TensorBatch batch = random_batch(request.batch, asked.time);
    const int64_t past_warmup = 500;  // of 3,125: the learning rate moves the parameters
    for (int i = 0; i < 3; ++i) executor->step(batch, past_warmup).read();
    std::vector<StepHandle> handles;
    wait_for_gpu();
    const double seconds = seconds_of([&] {
      for (int i = 0; i < request.repeats; ++i) handles.push_back(executor->step(batch, past_warmup + i));
      wait_for_gpu();
    });
    const double frames = static_cast<double>(request.batch) * asked.time * request.repeats;
    row.loss = handles.back().read().loss;
    if (!handles.back().read().finite || !std::isfinite(row.loss))
      throw check_failed("bench gpu", "the loss is not finite");
    row.ms = seconds / request.repeats * 1e3;
    row.tokens_per_second = frames / seconds;
    row.mfu = cost(trainer.network().config(), asked.time).training_flops() * row.tokens_per_second / rate;
    row.peak_bytes = gpu_peak_bytes();
  } catch (const std::exception& error) {
    const std::string line = error.what();
    row.failure = printable(line.substr(0, line.find('\n')), 300);
  }
  return row;
}

}  // namespace

GpuBench bench_gpu(const GpuBenchRequest& request) {
  prepare_gpu(false);
  GpuBench out;
  {
    const at::NoGradGuard no_grad;
    out.product_flops = product_rate();
    out.copy_bytes = copy_rate();
  }
  for (const GpuBenchCase& each : request.cases) {
    if (request.progress) request.progress(formatted("{} {}, T = {}", each.model, each.width, each.time));
    out.rows.push_back(measure(request, each, out.product_flops));
  }
  return out;
}

}  // namespace sb
