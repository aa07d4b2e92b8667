#include "train/bench_gpu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/format.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "kernels/calls.h"
#include "kernels/frame_rows.h"
#include "models/declare.h"
#include "train/gpu.h"
#include "train/trainer.h"

namespace sb {
namespace {

constexpr int kChannels = 41, kClasses = 1601;  // of the paper's grammar

std::string first_line(const std::exception& error) {
  const std::string line = error.what();
  return printable(line.substr(0, line.find('\n')), 300);
}

RunConfig config_of(const GpuBenchRequest& request, const GpuBenchCase& asked) {
  RunConfig config;
  config.task.task = paper_task(1);
  config.model.name = asked.model;
  config.model.width = asked.width;
  config.model.layers = request.layers;
  if (request.heads > 0) config.model.switches["heads"] = std::to_string(request.heads);
  config.train.batch = asked.batch;
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
    Trainer trainer(config_of(request, asked),
                    TaskShape{.channels = kChannels, .answers = kClasses, .fixed_frames = true});
    row.params = trainer.network().parameters().count();
    const auto executor = gpu_executor(trainer);
    const TensorBatch batch = random_batch(asked.batch, asked.time);
    const int64_t past_warmup = 500;  // after the warm-up, when the learning rate is not small
    for (int i = 0; i < 3; ++i) executor->step(batch, past_warmup).read();
    std::vector<StepHandle> handles;
    wait_for_gpu();
    const double seconds = seconds_of([&] {
      for (int i = 0; i < request.repeats; ++i) handles.push_back(executor->step(batch, past_warmup + i));
      wait_for_gpu();
    });
    const double frames = static_cast<double>(asked.batch) * asked.time * request.repeats;
    row.loss = handles.back().read().loss;
    if (!handles.back().read().finite || !std::isfinite(row.loss))
      throw check_failed("bench gpu", "the loss is not finite");
    row.ms = seconds / request.repeats * 1e3;
    row.tokens_per_second = frames / seconds;
    row.mfu = cost(trainer.network().config(), asked.time).training_flops() * row.tokens_per_second / rate;
    row.peak_bytes = gpu_peak_bytes();
  } catch (const std::exception& error) {
    row.failure = first_line(error);
  }
  return row;
}

// A call of a step, and how often it occurs.
struct Seen {
  kernels::Call call;
  int64_t times = 1;
};

std::vector<Seen> calls_of_a_step(Trainer& trainer, const TensorBatch& batch) {
  std::vector<Seen> out;
  std::map<std::string, size_t> known;
  const kernels::WatchCalls watch([&](kernels::Call call) {
    const auto [found, fresh] = known.emplace(call.name + " " + call.shape(), out.size());
    if (fresh) {
      out.push_back({std::move(call)});
    } else {
      ++out[found->second].times;
    }
  });
  trainer.prepare(batch.real_frames, 500);
  trainer.gradients(batch, true);
  wait_for_gpu();
  return out;
}

GpuKernelRow::Pass timed(const kernels::CallWork& work, const GpuKernelBench& rates,
                         const std::function<void()>& call) {
  GpuKernelRow::Pass out;
  const double seconds = gpu_seconds(call);
  const double products = work.operations / rates.product_flops, copies = work.bytes / rates.copy_bytes;
  out.ms = seconds * 1e3;
  out.operations = work.operations;
  out.bytes = work.bytes;
  out.bound = products > copies ? "product" : "copy";
  out.share = std::max(products, copies) / seconds;
  return out;
}

GpuKernelRow measure(const Seen& seen, const GpuBenchCase& of, const GpuKernelBench& rates) {
  const at::NoGradGuard no_grad;
  const kernels::Call& call = seen.call;
  GpuKernelRow row;
  row.of = of;
  row.kernel = call.name;
  row.shape = call.shape();
  row.calls = seen.times;
  try {
    const bool trains = call.backward && std::find(call.wanted.begin(), call.wanted.end(), true) != call.wanted.end();
    kernels::Back back;
    back.wanted = call.wanted;
    back.last = true;  // as in a step; overwriting saved tensors does not change the time
    const kernels::Tensors out = call.forward(call.in, trains ? &back.saved : nullptr);
    row.forward = timed(kernels::forward_work(call, out), rates, [&] {
      kernels::Tensors saved;
      call.forward(call.in, trains ? &saved : nullptr);
    });
    if (!trains) return row;
    back.d_out.resize(out.size());
    back.d_out[0] = at::ones_like(out[0]);  // final states have no gradient
    const kernels::Tensors gradients = call.backward(back);
    row.backward = timed(kernels::backward_work(call, back.d_out, gradients), rates, [&] { call.backward(back); });
  } catch (const std::exception& error) {
    row.failure = first_line(error);
  }
  return row;
}

// The parts of a step outside the network: frames from symbols, and Adam over all parameters.
std::vector<GpuKernelRow> measure_around(Trainer& trainer, const TensorBatch& batch, const GpuBenchCase& of,
                                         const GpuKernelBench& rates) {
  const auto alone = [&](const char* name, const at::Tensor& shown, double bytes, const std::function<void()>& call) {
    GpuKernelRow row;
    row.of = of;
    row.kernel = name;
    row.shape = kernels::Call{"", {shown}, {}, {}, {}}.shape();
    row.calls = 1;
    try {
      row.forward = timed({0, bytes}, rates, call);
    } catch (const std::exception& error) {
      row.failure = first_line(error);
    }
    return row;
  };
  const at::Tensor flat = trainer.network().parameters().flat(), copy = trainer.network().parameters().flat_copy();
  const at::ScalarType type = copy.defined() ? at::kBFloat16 : at::kFloat;
  const kernels::FrameNoise noise{static_cast<float>(batch.noise.size), batch.noise.seed,
                                  static_cast<uint32_t>(batch.noise.split), batch.samples};
  const auto frames = [&] { return kernels::frame_rows(batch.symbol, batch.noise.channels, type, noise); };
  const at::TensorOptions one = at::TensorOptions().device(flat.device()).dtype(at::kDouble);
  const at::Tensor lr = at::full({1}, 1e-3, one), loss = at::ones({1}, one);
  // Weights and moments are read and written, gradients are read, and the copy is written.
  const double each = 7.0 * static_cast<double>(flat.element_size()) + (copy.defined() ? 2 : 0);
  return {alone("frame_rows", batch.symbol, static_cast<double>(frames().nbytes() + batch.symbol.nbytes()),
                [&] { frames(); }),
          alone("adam_update", flat, each * static_cast<double>(flat.numel()),
                [&] { trainer.adam().update(trainer.network().parameters().flat_grad(), lr, loss); })};
}

}  // namespace

GpuKernelBench bench_gpu_kernels(const GpuBenchRequest& request) {
  prepare_gpu(request.precision == Precision::tf32);
  GpuKernelBench out;
  {
    const at::NoGradGuard no_grad;
    out.product_flops = product_rate();
    out.copy_bytes = copy_rate();
  }
  for (const GpuBenchCase& each : request.cases) {
    const auto tell = [&](const std::string& what) {
      if (request.progress) request.progress(formatted("{} {}, T = {}{}", each.model, each.width, each.time, what));
    };
    tell("");
    try {
      Trainer trainer(config_of(request, each),
                      TaskShape{.channels = kChannels, .answers = kClasses, .fixed_frames = true});
      TensorBatch batch = random_batch(each.batch, each.time);
      for (at::Tensor* x : {&batch.symbol, &batch.target, &batch.samples}) *x = x->to(trainer.device());
      for (const Seen& seen : calls_of_a_step(trainer, batch)) {
        tell(", " + seen.call.name);
        out.rows.push_back(measure(seen, each, out));
      }
      for (GpuKernelRow& row : measure_around(trainer, batch, each, out)) out.rows.push_back(std::move(row));
    } catch (const std::exception& error) {
      GpuKernelRow row;
      row.of = each;
      row.kernel = "step";
      row.failure = first_line(error);
      out.rows.push_back(std::move(row));
    }
  }
  return out;
}

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
