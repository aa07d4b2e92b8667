#include "kernels/bench.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <time.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/bench_cases.h"

namespace sb {
namespace {

using at::Tensor;
using Inputs = std::vector<Tensor>;

constexpr double kGraphLimit = 3.5e8;  // elements; the plain form is not differentiated beyond
constexpr double kTolerance = 2e-5;    // float against double, relative to the largest value

class Clock {
 public:
  explicit Clock(const KernelBenchOptions& options) : options_(options) {}
  // Best time of a call, after one call to warm up; a slow call is measured once.
  double best(const std::function<void()>& call) const {
    if (options_.between) options_.between();
    double least = once(call), spent = least;
    if (least > 4 * options_.seconds) return least;
    least = once(call);
    for (int runs = 0; runs < 3 || (spent < options_.seconds && runs < 1000); ++runs) {
      const double took = once(call);
      least = std::min(least, took);
      spent += took;
    }
    return least;
  }

 private:
  // On one thread its processor time, which a busy machine does not blur; else the time that passes.
  static double now() {
    timespec time{};
    ::clock_gettime(at::get_num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  static double once(const std::function<void()>& call) {
    const double began = now();
    call();
    return now() - began;
  }
  const KernelBenchOptions& options_;
};

double measure_gemm(const Clock& clock) {
  const Tensor a = at::randn({1024, 1024}), b = at::randn({1024, 1024});
  Tensor c = at::empty({1024, 1024});
  const double seconds = clock.best([&] { at::mm_out(c, a, b); });
  return 2.0 * 1024 * 1024 * 1024 / seconds;
}

double measure_copy(const Clock& clock) {
  constexpr int64_t bytes = int64_t{96} << 20;
  const Tensor from = at::ones({bytes / 4}), to = at::ones({bytes / 4});
  return 2.0 * static_cast<double>(bytes) / clock.best([&] { to.copy_(from); });
}

Inputs leaves(const Inputs& inputs, at::ScalarType type) {
  Inputs out;
  for (const Tensor& x : inputs) out.push_back(x.to(type, false, true).requires_grad_());
  return out;
}

// The result and, where wanted, the gradients of its sum with a fixed weights
Inputs results(const BenchForm& form, const Inputs& inputs, at::ScalarType type, bool gradients) {
  if (!gradients) {
    const at::NoGradGuard no_gradients;
    return {form(leaves(inputs, type))};
  }
  const Inputs in = leaves(inputs, type);
  const Tensor out = form(in);
  at::manual_seed(2);
  const Tensor weight = at::randn(out.sizes(), at::kDouble).to(type);
  Inputs all = torch::autograd::grad({out}, in, {weight});
  all.insert(all.begin(), out.detach());
  return all;
}

double largest_difference(const Inputs& got, const Inputs& expected) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double scale = std::max(expected[i].abs().max().item<double>(), 1e-30);
    const double difference = (got[i].to(at::kDouble) - expected[i]).abs().max().item<double>() / scale;
    worst = difference >= worst ? difference : difference != difference ? INFINITY : worst;
  }
  return worst;
}

KernelTimes time_form(const Clock& clock, const BenchForm& form, const Inputs& inputs, bool forward, bool both) {
  KernelTimes times;
  const Inputs in = leaves(inputs, at::kFloat);
  if (forward) {
    times.forward = clock.best([&] {
      const at::NoGradGuard no_gradients;
      form(in);
    });
  }
  if (both) {
    Tensor weight;
    times.both = clock.best([&] {
      const Tensor out = form(in);
      if (!weight.defined()) weight = at::ones(out.sizes(), out.options());
      torch::autograd::grad({out}, in, {weight});
    });
  }
  return times;
}

KernelRow measure(const Clock& clock, const BenchCase& kernel, int64_t batch, int64_t time, int64_t width,
                  double gemm_rate, double copy_rate) {
  KernelRow row{};
  row.kernel = kernel.name;
  row.width = width;
  row.time = time;
  row.batch = batch;
  at::manual_seed(1);
  const Inputs inputs = kernel.inputs(batch, time, width);
  const bool fits = kernel.graph_elements_a_step(batch, width) * static_cast<double>(time) < kGraphLimit;
  row.gradients_compared = fits;
  row.error = largest_difference(results(kernel.ours, inputs, at::kFloat, fits),
                                 results(kernel.plain, inputs, at::kDouble, fits));
  if (!(row.error <= kTolerance))
    throw check_failed("bench kernels", kernel.name + " at width " + std::to_string(width) + ", T " +
                                            std::to_string(time) + ", expected an error below " +
                                            std::to_string(kTolerance) + ", got " + std::to_string(row.error));
  row.ours = time_form(clock, kernel.ours, inputs, true, true);
  row.loop = time_form(clock, kernel.plain, inputs, true, fits);
  if (kernel.chunked) row.chunked = time_form(clock, kernel.chunked, inputs, true, true);
  const BenchWork work = kernel.work(batch, time, width);
  const Pass both{work.forward.operations + work.backward.operations, work.forward.bytes + work.backward.bytes};
  const auto least_seconds = [&](const Pass& pass) {
    return std::max(pass.operations / gemm_rate, pass.bytes / copy_rate);
  };
  row.bound = both.operations / gemm_rate > both.bytes / copy_rate ? "gemm" : "copy";
  row.share_forward = least_seconds(work.forward) / *row.ours.forward;
  row.share_both = least_seconds(both) / *row.ours.both;
  return row;
}

}  // namespace

KernelBench bench_kernels(const KernelBenchOptions& options, const std::function<void(const KernelRow&)>& done) {
  const Clock clock(options);
  KernelBench bench{at::get_num_threads(), measure_gemm(clock), measure_copy(clock), {}};
  const std::vector<int64_t> widths =
      options.quick ? std::vector<int64_t>{64, 256} : std::vector<int64_t>{64, 256, 1024};
  const std::vector<int64_t> lengths =
      options.quick ? std::vector<int64_t>{64, 400} : std::vector<int64_t>{64, 400, 2000};
  const int64_t tokens = options.quick ? 800 : 3200;  // of a train step of eight sequences of 400
  for (const BenchCase& kernel : bench_cases()) {
    if (kernel.name.find(options.only) == std::string::npos) continue;
    for (const int64_t width : widths) {
      for (const int64_t time : lengths) {
        const int64_t batch = std::max<int64_t>(1, tokens / time);
        bench.rows.push_back(measure(clock, kernel, batch, time, width, bench.gemm_rate, bench.copy_rate));
        if (done) done(bench.rows.back());
      }
    }
  }
  return bench;
}

}  // namespace sb
