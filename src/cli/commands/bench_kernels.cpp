#include <ATen/Parallel.h>

#include <memory>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/training.h"
#include "kernels/bench.h"
#include "models/bench_layers.h"

namespace sb::cli {
namespace bench_kernels_command {

struct KernelBench {
  int threads;
  MachineRates rates;
  std::vector<KernelRow> rows;
};

struct Options {
  KernelBenchOptions bench;
  std::string json;
  int threads = 0;
};

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? fixed(*seconds * 1e3, *seconds < 0.01 ? 3 : 1) : "";
}

std::string ratio(const std::optional<double>& theirs, const std::optional<double>& ours) {
  return theirs && ours ? fixed(*theirs / *ours, 1) + " x" : "";
}

std::string percent(double share) {
  return fixed(100 * share, 0) + " %";
}

std::string as_text(const KernelBench& bench) {
  TextTable table({"kernel", "d", "T", "batch", "forward ms", "both ms", "vs plain", "both", "vs chunked", "both",
                   "bound by", "forward", "both", "error"},
                  "lrrrrrrrrrlrrr");
  for (const KernelRow& r : bench.rows) {
    table.row({r.kernel, std::to_string(r.width), std::to_string(r.time), std::to_string(r.batch),
               milliseconds(r.ours.forward), milliseconds(r.ours.both), ratio(r.loop.forward, r.ours.forward),
               ratio(r.loop.both, r.ours.both), ratio(r.chunked.forward, r.ours.forward),
               ratio(r.chunked.both, r.ours.both), r.bound, percent(r.share_forward), percent(r.share_both),
               r.error ? formatted("{:.0e}", *r.error) : ""});
  }
  return "threads " + std::to_string(bench.threads) + ", matrix products " + fixed(bench.rates.gemm / 1e9, 1) +
         " GFLOP/s, copy " + fixed(bench.rates.copy / 1e9, 1) + " GB/s\n" + table.text() +
         "vs plain: against plain ATen operations (recurrences: a loop over time; layers: by chunks).\n"
         "bound by: the machine's limiting rate; forward and both are shares of it.\n"
         "error: largest relative difference from the plain form in double.\n";
}

Json times_json(const KernelTimes& times) {
  Json out = Json::object();
  if (times.forward) out["forward_ms"] = *times.forward * 1e3;
  if (times.both) out["both_ms"] = *times.both * 1e3;
  return out;
}

std::string as_json(const KernelBench& bench) {
  Json out = {{"threads", bench.threads},
              {"gemm_gflops", bench.rates.gemm / 1e9},
              {"copy_gbytes", bench.rates.copy / 1e9},
              {"rows", Json::array()}};
  for (const KernelRow& r : bench.rows) {
    Json row = {{"kernel", r.kernel},
                {"width", r.width},
                {"time", r.time},
                {"batch", r.batch},
                {"gradients_compared", r.gradients_compared},
                {"ours", times_json(r.ours)},
                {"plain", times_json(r.loop)},
                {"chunked", times_json(r.chunked)},
                {"bound", r.bound},
                {"share_forward", r.share_forward},
                {"share_both", r.share_both}};
    if (r.error) row["error"] = *r.error;
    out["rows"].push_back(std::move(row));
  }
  return json_document(out, 3);
}

Exit run(const Options& options) {
  if (options.bench.width % 64 != 0)
    throw bad_input("bench kernels --width", "expected a multiple of 64, got " + std::to_string(options.bench.width));
  use_threads(options.threads);
  warn_about_slow_blas();
  KernelBenchOptions request = options.bench;
  const auto done = [](const KernelRow& row) {
    complain(row.kernel + " d " + std::to_string(row.width) + " T " + std::to_string(row.time) + ": " +
             milliseconds(row.ours.both) + " ms");
  };
  KernelBench bench{at::get_num_threads(), measure_rates(request), {}};
  bench.rows = bench_kernels(request, bench.rates, done);
  for (KernelRow& row : bench_layers(request, bench.rates, done)) bench.rows.push_back(std::move(row));
  deliver_both(options.json, as_json(bench), as_text(bench));
  return Exit::done;
}

}  // namespace bench_kernels_command

void add_bench_kernels(Program& program) {
  using namespace bench_kernels_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "bench kernels",
      "Measure every kernel and layer, and compare with plain tensor operations and the machine's peak rates",
      {"selectivbench bench kernels --quick", "selectivbench bench kernels --only conv4 --width 256 --time 400"},
      [options] { return run(*options); });
  arguments.heading("Measurement");
  arguments.flag("--quick", options->bench.quick, "Two widths, two lengths, few tokens");
  arguments.text("--only", options->bench.only, "NAME", "Only rows whose name contains this");
  arguments.integer("--width", options->bench.width, 0, 4096,
                    "Measure only this width, a multiple of 64; 0: several widths");
  arguments.integer("--time", options->bench.time, 0, 20000, "Measure only this length, in frames; 0: several lengths");
  arguments.real("--seconds", options->bench.seconds, 0.001, 60, "Minimum time per measurement");
  arguments.heading("Output");
  arguments.text("--json", options->json, "FILE", "Write the table as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
