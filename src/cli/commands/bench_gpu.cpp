#include "train/bench_gpu.h"
#include "base/format.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/long_bench.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "config/schema.h"
#include "models/registry.h"
#include "report/paper.h"

namespace sb::cli {
namespace bench_gpu_command {

struct Options {
  std::vector<std::string> models;
  int width = 0, time = 0, batch = 64;
  GpuBenchRequest request;
  std::string precision = "amp", json;
  bool kernels = false, lengths = false;
  const Arguments* arguments = nullptr;
};

struct PeerStep {
  double ms = 0, tokens_per_second = 0;
  double gibibytes = 0;  // peak memory
};

// Measured training steps of the models' published layers, shown next to our own and never used in a computation:
// PyTorch 2.11, Triton 3.6, fla and mamba_ssm on one H200: bfloat16 autocast, TF32, fused Adam, the whole step in one
// CUDA graph; batch 64, 8 layers, 1,601 classes.
std::optional<PeerStep> peer_of(const GpuBenchRow& row, const GpuBenchRequest& request) {
  static const std::map<std::tuple<std::string, int, int>, PeerStep> steps = {
      {{"gated_delta_net", 256, 400}, {16.6, 1.54e6, 3.0}},
      {{"gated_delta_net", 256, 1300}, {43.8, 1.90e6, 10.2}},
      {{"gated_delta_net", 1152, 400}, {89.7, 285e3, 12.3}},
      {{"mamba2", 256, 400}, {16.3, 1.57e6, 2.6}},
      {{"mamba2", 256, 1300}, {43.8, 1.90e6, 8.7}},
      {{"mamba2", 1296, 400}, {82.1, 312e3, 10.2}},
      {{"transformer", 256, 400}, {35.8, 716e3, 5.5}},
      {{"transformer", 256, 1300}, {106.6, 780e3, 18.0}},
      {{"transformer", 768, 400}, {102.6, 250e3, 16.4}},
      {{"gla", 256, 400}, {18.2, 1.41e6, 3.2}},
      {{"gla", 256, 1300}, {48.9, 1.70e6, 10.8}},
      {{"gla", 1152, 400}, {96.8, 264e3, 13.5}},
      {{"delta_net", 256, 400}, {14.0, 1.83e6, 2.6}},
      {{"delta_net", 1296, 400}, {122.8, 208e3, 11.9}},
  };
  if (row.of.batch != 64 || request.layers != 8 || request.precision != Precision::amp) return std::nullopt;
  const auto found = steps.find({row.of.model, row.of.width, row.of.time});
  return found == steps.end() ? std::nullopt : std::optional(found->second);
}

std::string as_text(const GpuBench& bench, const GpuBenchRequest& request) {
  TextTable table({"model", "width", "T", "precision", "params", "ms", "tokens/s", "MFU", "peak", "peer ms", "faster",
                   "peer peak"});
  std::string failures;
  for (const auto& r : bench.rows) {
    const auto& [model, width, time, batch] = r.of;
    const auto peer = peer_of(r, request);
    const std::string name = formatted("{} {}, T = {}", model, width, time);
    if (!r.failure.empty()) failures += name + ": " + r.failure + "\n";
    const bool made = r.failure.empty();
    table.row({model, std::to_string(width), std::to_string(time), to_string(r.precision),
               grouped(static_cast<uint64_t>(r.params)), made ? fixed(r.ms, 2) : "-",
               made ? grouped(static_cast<uint64_t>(r.tokens_per_second)) : "-",
               made ? fixed(100 * r.mfu, 1) + " %" : "-", made ? bytes_text(static_cast<double>(r.peak_bytes)) : "-",
               peer ? fixed(peer->ms, 1) : "", peer && made ? fixed(peer->ms / r.ms, 2) + " x" : "",
               peer ? bytes_text(peer->gibibytes * 1024 * 1024 * 1024) : ""});
  }
  return "products " + fixed(bench.product_flops / 1e12, 0) + " TFLOP/s in bf16, copies " +
         fixed(bench.copy_bytes / 1e12, 2) + " TB/s\n" + table.text() +
         "peer: the models' published layers in PyTorch on an H200, amp, one CUDA graph per step, batch 64\n" +
         failures;
}

std::string as_json(const GpuBench& bench, const GpuBenchRequest& request) {
  Json out = {{"product_flops", bench.product_flops}, {"copy_bytes", bench.copy_bytes}, {"rows", Json::array()}};
  for (const auto& r : bench.rows) {
    Json row = step_json(r);
    if (const auto peer = peer_of(r, request)) {
      row["peer"] = {{"tokens_per_second", peer->tokens_per_second},
                     {"ms", peer->ms},
                     {"peak_bytes", peer->gibibytes * 1024 * 1024 * 1024}};
      if (r.failure.empty()) row["ratio"] = peer->ms / r.ms;
    }
    out["rows"].push_back(std::move(row));
  }
  return out.dump(2) + "\n";
}

std::string as_text(const GpuKernelBench& bench) {
  TextTable table({"model", "width", "T", "kernel", "first tensor", "calls", "forward ms", "share of", "backward ms",
                   "share of", "step ms"},
                  "lrrllrrrrrr");
  const auto share = [](const GpuKernelRow::Pass& p) { return p.bound + " " + fixed(100 * p.share, 0) + " %"; };
  std::string failures;
  for (const auto& r : bench.rows) {
    const bool made = r.failure.empty();
    if (!made) failures += formatted("{} {}, T = {}, {}: {}\n", r.of.model, r.of.width, r.of.time, r.kernel, r.failure);
    table.row({r.of.model, std::to_string(r.of.width), std::to_string(r.of.time), r.kernel,
               r.shape.substr(0, r.shape.find(']') + 1), std::to_string(r.calls), made ? fixed(r.forward.ms, 3) : "-",
               made ? share(r.forward) : "-", made && r.backward ? fixed(r.backward->ms, 3) : "",
               made && r.backward ? share(*r.backward) : "", made ? fixed(r.step_ms(), 2) : "-"});
  }
  return "products " + fixed(bench.product_flops / 1e12, 0) + " TFLOP/s in bf16, copies " +
         fixed(bench.copy_bytes / 1e12, 2) + " TB/s\n" + table.text() +
         "share of: the rate that limits the kernel (products or copies), and the share of it that the kernel's "
         "minimum work reaches\n" +
         failures;
}

Json pass_json(const GpuKernelRow::Pass& p) {
  return {{"ms", p.ms}, {"flops", p.operations}, {"bytes", p.bytes}, {"bound", p.bound}, {"share", p.share}};
}

std::string as_json(const GpuKernelBench& bench, const GpuBenchRequest& request) {
  Json out = {{"product_flops", bench.product_flops}, {"copy_bytes", bench.copy_bytes}, {"rows", Json::array()}};
  for (const auto& r : bench.rows) {
    Json row = {
        {"model", r.of.model}, {"width", r.of.width}, {"time", r.of.time}, {"precision", to_string(request.precision)},
        {"kernel", r.kernel},  {"shape", r.shape},    {"calls", r.calls}};
    if (!r.failure.empty()) {
      row["failure"] = r.failure;
    } else {
      row["forward"] = pass_json(r.forward);
      if (r.backward) row["backward"] = pass_json(*r.backward);
      row["step_ms"] = r.step_ms();
    }
    out["rows"].push_back(std::move(row));
  }
  return out.dump(2) + "\n";
}

template <class Bench>
bool any_failed(const Bench& bench) {
  return std::any_of(bench.rows.begin(), bench.rows.end(), [](const auto& r) { return !r.failure.empty(); });
}

Exit run(const Options& options) {
  for (const char* other : {"--time", "--batch", "--kernels"}) {
    if (options.lengths && options.arguments->given(other))
      throw bad_input(options.arguments->where("--long"), std::string("cannot be combined with ") + other);
  }
  GpuBenchRequest request = options.request;
  for (const auto& model : options.models.empty() ? paper_models() : options.models) {
    find_model(model);
    if (options.lengths) {
      for (GpuBenchCase& each : long_cases(model, options.width > 0 ? options.width : paper_width(model)))
        request.cases.push_back(std::move(each));
      continue;
    }
    std::vector<int> widths = {256, 1024, paper_width(model)}, times = {400, 1300};
    if (widths[1] == widths[2]) widths.pop_back();
    if (options.width > 0) widths = {options.width};
    if (options.time > 0) times = {options.time};
    for (const int width : widths)
      for (const int time : times) request.cases.push_back({model, width, time, options.batch});
  }
  for (const Precision each : {Precision::fp64, Precision::fp32, Precision::tf32, Precision::amp})
    if (options.precision == to_string(each)) request.precision = each;
  request.progress = [](const std::string& line) { complain("measuring " + line); };
  if (options.kernels) {
    const GpuKernelBench bench = bench_gpu_kernels(request);
    deliver_both(options.json, as_json(bench, request), as_text(bench));
    return any_failed(bench) ? Exit::check_failed : Exit::done;
  }
  const GpuBench bench = bench_gpu(request);
  if (options.lengths)
    deliver_both(options.json, long_json(bench).dump(2) + "\n", long_text(bench));
  else
    deliver_both(options.json, as_json(bench, request), as_text(bench, request));
  return any_failed(bench) ? Exit::check_failed : Exit::done;
}

}  // namespace bench_gpu_command

void add_bench_gpu(Program& program) {
  using namespace bench_gpu_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "bench gpu", "Measure a training step of each model on a GPU, and compare with the models' published code",
      {"selectivbench bench gpu", "selectivbench bench gpu --model mamba2 --width 256 --time 400 --json -",
       "selectivbench bench gpu --kernels --width 256 --time 400", "selectivbench bench gpu --long --model mamba"},
      [options] { return run(*options); });
  options->arguments = &arguments;
  arguments.texts("--model", options->models, "NAME", "Model to measure, can be repeated; default: the paper's seven");
  arguments.integer("--width", options->width, 0, 8192, "Channels; 0: 256, 1024 and the model's width in the paper");
  arguments.integer("--heads", options->request.heads, 0, 8192, "Heads; 0: a power of two, by width");
  arguments.integer("--time", options->time, 0, 100000, "Frames per sequence; 0: 400 and 1300");
  arguments.flag("--kernels", options->kernels,
                 "Measure each operation of a step separately: time, FLOPs or bytes, share of the GPU's measured rate");
  arguments.flag(
      "--long", options->lengths,
      "Compare lengths from 400 to 32,768 frames at about 32,768 tokens per step, at the paper's width or --width");
  arguments.choice("--precision", options->precision, {"amp", "tf32", "fp32", "fp64"}, "Arithmetic");
  arguments.integer("--layers", options->request.layers, 1, 64, "Layers");
  arguments.integer("--batch", options->batch, 1, 4096, "Sequences per step");
  arguments.integer("--repeats", options->request.repeats, 1, 100000, "Steps timed together");
  arguments.text("--json", options->json, "FILE", "Write the result as JSON, - for standard output");
}

}  // namespace sb::cli
