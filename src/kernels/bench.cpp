#include "kernels/bench.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/mman.h>
#include <time.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <new>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/bench_cases.h"

namespace sb {
namespace {

using at::Tensor;
using Inputs = std::vector<Tensor>;

constexpr double kTolerance = 2e-5;  // float against double, relative to the largest value

// With one thread: its CPU time, which other load on the machine does not affect. Otherwise: wall time.
double now() {
  timespec time{};
  ::clock_gettime(at::get_num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
double once(const std::function<void()>& call) {
  const double began = now();
  call();
  return now() - began;
}

Inputs leaves(const Inputs& inputs, at::ScalarType type) {
  Inputs out;
  for (const Tensor& x : inputs) out.push_back(x.to(type, false, true).requires_grad_());
  return out;
}

// The result and, if `gradients`, the gradients of its sum with fixed random weights
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

KernelTimes time_form(const KernelBenchOptions& options, const BenchForm& form, const Inputs& inputs, bool forward,
                      bool both) {
  KernelTimes times;
  const Inputs in = leaves(inputs, at::kFloat);
  if (forward) {
    times.forward = best_seconds(options, [&] {
      const at::NoGradGuard no_gradients;
      form(in);
    });
  }
  if (both) {
    Tensor weight;
    times.both = best_seconds(options, [&] {
      const Tensor out = form(in);
      if (!weight.defined()) weight = at::ones(out.sizes(), out.options());
      torch::autograd::grad({out}, in, {weight});
    });
  }
  return times;
}

KernelRow measure(const KernelBenchOptions& options, const BenchCase& kernel, const BenchShape& shape,
                  const MachineRates& rates) {
  const auto [width, time, batch] = shape;
  KernelRow row{};
  row.kernel = kernel.name;
  row.width = width;
  row.time = time;
  row.batch = batch;
  at::manual_seed(1);
  const Inputs inputs = kernel.inputs(batch, time, width);
  const bool fits = kernel.graph_elements_a_step(batch, width) * static_cast<double>(time) < kGraphLimit;
  row.gradients_compared = fits;
  const auto with = [&](kernels::Backend backend) -> BenchForm {
    return [&kernel, backend](const Inputs& in) { return kernels::on(backend, [&] { return kernel.form(in); }); };
  };
  const BenchForm naive = with(kernels::Backend::naive);  // ATen's operations where there is no loop
  row.error =
      largest_difference(results(kernel.form, inputs, at::kFloat, fits), results(naive, inputs, at::kDouble, fits));
  check_error(row);
  row.ours = time_form(options, kernel.form, inputs, true, true);
  row.loop = time_form(options, naive, inputs, true, fits);
  if (kernel.has_loop) row.chunked = time_form(options, with(kernels::Backend::aten), inputs, true, true);
  const BenchWork work = kernel.work(batch, time, width);
  const Pass both{work.forward.operations + work.backward.operations, work.forward.bytes + work.backward.bytes};
  const auto least_seconds = [&](const Pass& pass) {
    return std::max(pass.operations / rates.gemm, pass.bytes / rates.copy);
  };
  row.bound = both.operations / rates.gemm > both.bytes / rates.copy ? "gemm" : "copy";
  row.share_forward = least_seconds(work.forward) / *row.ours.forward;
  row.share_both = least_seconds(both) / *row.ours.both;
  return row;
}

// Throws bad_alloc if the buffers of a BLAS do not fit into memory: OpenBLAS would try to get them for ever.
void expect_blas_buffers() {
#if defined(__x86_64__)
  constexpr size_t buffer = size_t{129} << 20;
#else
  constexpr size_t buffer = size_t{32} << 20;
#endif
  const size_t size = buffer * static_cast<size_t>(at::get_num_threads() + 1);
  void* const block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  ::munmap(block, size);
}

}  // namespace

double best_seconds(const KernelBenchOptions& options, const std::function<void()>& call) {
  double least = once(call), spent = least;
  if (least > 4 * options.seconds) return least;
  least = once(call);
  for (int runs = 0; runs < 3 || (spent < options.seconds && runs < 1000); ++runs) {
    const double took = once(call);
    least = std::min(least, took);
    spent += took;
  }
  return least;
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

void check_error(const KernelRow& row) {
  if (*row.error <= kTolerance) return;
  throw check_failed("bench kernels", row.kernel + " at width " + std::to_string(row.width) + ", T " +
                                          std::to_string(row.time) + ", expected an error below " +
                                          std::to_string(kTolerance) + ", got " + std::to_string(*row.error));
}

double measure_gemm_rate(const KernelBenchOptions& options) {
  expect_blas_buffers();
  constexpr int64_t n = 1024;
  const Tensor a = at::randn({n, n}), b = at::randn({n, n});
  Tensor c = at::empty({n, n});
  return 2.0 * n * n * n / best_seconds(options, [&] { at::mm_out(c, a, b); });
}

MachineRates measure_rates(const KernelBenchOptions& options) {
  constexpr int64_t bytes = int64_t{96} << 20;
  const Tensor from = at::ones({bytes / 4}), to = at::ones({bytes / 4});
  const double copy = best_seconds(options, [&] { to.copy_(from); });
  return {measure_gemm_rate(options), 2.0 * static_cast<double>(bytes) / copy};
}

std::vector<BenchShape> bench_shapes(const KernelBenchOptions& options) {
  std::vector<int64_t> widths{64, 256}, lengths{64, 400};
  if (!options.quick) {
    widths.push_back(1024);
    lengths.push_back(2000);
  }
  if (options.width) widths = {options.width};
  if (options.time) lengths = {options.time};
  const int64_t tokens = options.quick ? 800 : 3200;  // of a train step: eight sequences of 400
  std::vector<BenchShape> shapes;
  for (const int64_t width : widths)
    for (const int64_t time : lengths) shapes.push_back({width, time, std::max<int64_t>(1, tokens / time)});
  return shapes;
}

std::vector<KernelRow> bench_kernels(const KernelBenchOptions& options, const MachineRates& rates,
                                     const RowSink& done) {
  std::vector<KernelRow> rows;
  for (const BenchCase& kernel : bench_cases()) {
    if (kernel.name.find(options.only) == std::string::npos) continue;
    for (const BenchShape& shape : bench_shapes(options)) {
      rows.push_back(measure(options, kernel, shape, rates));
      if (done) done(rows.back());
    }
  }
  return rows;
}

}  // namespace sb
