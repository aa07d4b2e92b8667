
#include <memory>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/shipped.h"
#include "cli/training.h"
#include "models/registry.h"
#include "report/paper.h"
#include "train/bench.h"

namespace sb::cli {
namespace bench_train_command {

struct Options {
  std::vector<std::string> models, configs;
  TrainBenchRequest request;
  bool no_plain = false;
  std::string json;
  int threads = 0;
};

std::string percent(double share) {
  return fixed(100 * share, 1) + " %";
}

std::string as_text(const TrainBench& bench) {
  TextTable table({"model", "params", "ms", "tokens/s", "of GEMM", "vs plain", "data", "forward", "backward", "Adam",
                   "peak", "peak at 2T", "loss differs"});
  for (const auto& r : bench.rows) {
    table.row({r.model, grouped(static_cast<uint64_t>(r.params)), fixed(r.step_seconds * 1e3, 0),
               grouped(static_cast<uint64_t>(r.tokens_per_second)), percent(r.share_of_gemm),
               r.plain_ratio > 0 ? fixed(r.plain_ratio, 2) + " x" : "", percent(r.data_share), percent(r.forward_share),
               percent(r.backward_share), percent(r.optimiser_share), bytes_text(r.peak_bytes),
               bytes_text(r.peak_bytes_twice), r.plain_ratio > 0 ? formatted("{:.0e}", r.loss_difference) : ""});
  }
  return "matrix products: " + fixed(bench.gemm_flops / 1e9, 1) + " GFLOP/s\n" + table.text();
}

std::string as_json(const TrainBench& bench) {
  Json out = {{"gemm_gflops", bench.gemm_flops / 1e9}, {"rows", Json::array()}};
  for (const auto& r : bench.rows) {
    out["rows"].push_back({{"model", r.model},
                           {"params", r.params},
                           {"frames", r.frames},
                           {"step_ms", r.step_seconds * 1e3},
                           {"tokens_per_second", r.tokens_per_second},
                           {"share_of_gemm", r.share_of_gemm},
                           {"plain_ratio", r.plain_ratio},
                           {"data_share", r.data_share},
                           {"forward_share", r.forward_share},
                           {"backward_share", r.backward_share},
                           {"optimiser_share", r.optimiser_share},
                           {"peak_bytes", r.peak_bytes},
                           {"peak_bytes_twice", r.peak_bytes_twice},
                           {"loss_difference", r.loss_difference}});
  }
  return json_document(out, 3);
}

// The runs of the given configs, on the CPU.
std::vector<RunConfig> runs_of(const std::vector<std::string>& files) {
  ModelRules rules = run_rules();
  rules.shipped = shipped_folder();
  std::vector<RunConfig> out;
  for (const auto& file : files) {
    const RunConfig config =
        resolve_config(shipped_config("bench train --config", file), {"train.device=cpu"}, rules).values;
    if (config.task.kind != kGapsKind)
      throw bad_input("bench train --config", "expected a task of the paper, got kind " + printable(config.task.kind) +
                                                  ", " + printable(file, 200));
    out.push_back(config);
  }
  return out;
}

Exit run(const Options& options) {
  TrainBenchRequest request = options.request;
  request.plain = !options.no_plain;
  request.models = options.models;
  request.configs = runs_of(options.configs);
  if (request.models.empty() && request.configs.empty()) request.models = paper_models();
  for (const auto& name : request.models) find_model(name);
  use_threads(options.threads);
  warn_about_slow_blas();
  request.progress = [](const std::string& model) { complain("measuring " + model); };
  const TrainBench bench = bench_train(request);
  deliver_both(options.json, as_json(bench), as_text(bench));
  return Exit::done;
}

}  // namespace bench_train_command

void add_bench_train(Program& program) {
  using namespace bench_train_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "bench train", "Measure a training step of each model: tokens/s, share of the matrix-product rate, time by part",
      {"selectivbench bench train", "selectivbench bench train --model mamba2 --width 64 --json -"},
      [options] { return run(*options); });
  arguments.texts("--model", options->models, "NAME", "Model to measure, can be repeated; default: the paper's seven");
  arguments.texts("--config", options->configs, "FILE",
                  "Config of a run to measure on the CPU, with its sizes; can be repeated");
  arguments.integer("--width", options->request.width, 8, 4096, "Channels");
  arguments.integer("--layers", options->request.layers, 1, 64, "Layers");
  arguments.integer("--batch", options->request.batch, 1, 1024, "Sequences per step");
  arguments.integer("--elements", options->request.elements, 1, 100000, "Elements per sequence, two frames each");
  arguments.integer("--repeats", options->request.repeats, 1, 1000, "Timed steps; the fastest counts");
  arguments.flag("--no-plain", options->no_plain, "Skip the comparison with plain torch operations");
  arguments.text("--json", options->json, "FILE", "Write the result as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
