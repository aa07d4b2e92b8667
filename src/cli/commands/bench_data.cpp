#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/number.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/shipped.h"
#include "config/data.h"
#include "grammar/build.h"
#include "tasks/gap_task.h"

namespace sb::cli {
namespace bench_data_command {

// The reference in Python, one process, paper scale, measured on a 2-core arm64 machine.
constexpr double kReferenceGrammar = 18.0;  // s
constexpr double kReferenceSample = 6.7;    // s per sample of 200 elements
constexpr int kLength = 200;

struct Options {
  uint64_t samples = 200'000;
  int threads = 2, repeats = 3;
  std::vector<std::string> configs, overrides;
  std::string json;
  const Arguments* arguments = nullptr;
};

struct Line {
  std::string name, key;
  double value;
  double target;
  bool at_most;  // the target is an upper bound
  std::string unit;
  double reference;  // the value of the Python reference; 0: not measured
};

// CPU time of this thread or of the process, so that other load on the machine does not matter.
double core_seconds(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double best_core_seconds(int repeats, const std::function<void()>& work) {
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    const double began = core_seconds();
    work();
    const double took = core_seconds() - began;
    best = i == 0 ? took : std::min(best, took);
  }
  return best;
}

// Training samples of a task, drawn on one core.
Line sample_line(const std::string& name, const RunConfig& config, int repeats) {
  const std::shared_ptr<const Task> task = make_data(config).task;
  constexpr double kFrames = 100'000, kTarget = 1;
  const double length = task->mean_frames(Split::train);
  const int size = static_cast<int>(std::clamp(kFrames / length, 1.0, 32.0));
  const int batches = static_cast<int>(std::ceil(kFrames / (size * length)));
  Batch batch;
  double frames = 0;
  const double drawing = best_core_seconds(repeats, [&] {
    frames = 0;
    for (int i = 0; i < batches; ++i) {
      task->fill(Split::train, static_cast<uint64_t>(i) * size, size, batch);
      for (int row = 0; row < size; ++row) frames += batch.real_frames(row);
    }
  });
  return {"samples of " + name + ", one core",
          name + "_frames_per_s",
          frames / drawing / 1e6,
          kTarget,
          false,
          "M frames/s",
          0};
}

// Every kind with its default keys but gaps, which other lines measure. A kind that reads a file needs a config.
std::vector<Line> measure_kinds(const Options& options) {
  std::vector<Line> lines;
  for (const TaskRow& row : task_registry()) {
    if (row.name == kGapsKind || std::any_of(row.keys.begin(), row.keys.end(), [](const TaskKey& k) { return k.file; }))
      continue;
    Settings settings;
    add_overrides(settings, {"task.kind=" + row.name});
    lines.push_back(sample_line(row.name, resolve(settings, {}, "bench data").values, options.repeats));
  }
  return lines;
}

std::vector<Line> measure_configs(const Options& options) {
  for (const char* other : {"--samples", "--threads"})
    if (options.arguments->given(other))
      throw bad_input(options.arguments->where("--config"), std::string("cannot be combined with ") + other);
  ModelRules rules;
  rules.shipped = shipped_folder();
  std::vector<Line> lines;
  for (const std::string& file : options.configs) {
    const std::string path = shipped_config(options.arguments->where("--config"), file);
    lines.push_back(sample_line(file, resolve_config(path, options.overrides, rules).values, options.repeats));
  }
  return lines;
}

std::vector<Line> measure(const Options& options) {
  std::vector<Line> lines;
  std::shared_ptr<const Automaton> automaton;
  const double grammar = best_core_seconds(options.repeats, [&] { automaton = build_automaton(GrammarConfig{}); });
  lines.push_back({"grammar, 1601 states", "grammar_ms", grammar * 1e3, 50, true, "ms", kReferenceGrammar * 1e3});

  const Sampler reference(automaton, {1, kLength, Stream::reference});
  size_t bytes = 0;
  const double used_before = core_seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double set = seconds_of([&] {
    constexpr size_t kBlock = 20'000;
    SampleBlock all;
    all.states.reserve(options.samples * kLength);
    for (uint64_t first = 0; first < options.samples; first += kBlock) {
      const size_t n = std::min<uint64_t>(kBlock, options.samples - first);
      const SampleBlock block = reference.block(Split::train, first, n, options.threads);
      all.states.insert(all.states.end(), block.states.begin(), block.states.end());
    }
    bytes = all.states.capacity() * sizeof(uint16_t);
  });
  const double used = core_seconds(CLOCK_PROCESS_CPUTIME_ID) - used_before;
  const auto count = static_cast<double>(options.samples);
  lines.push_back({"reference stream, " + grouped(options.samples) + " samples on " + std::to_string(options.threads) +
                       (options.threads == 1 ? " thread" : " threads"),
                   "reference_stream_s", set, 8.0 * count / 200'000, true, "s", kReferenceSample * count});
  lines.push_back({"reference stream, processor time of all cores", "reference_stream_core_s", used,
                   16.0 * count / 200'000, true, "s", kReferenceSample * count});
  lines.push_back({"memory of these samples", "samples_mb", static_cast<double>(bytes) / 1e6, 100.0 * count / 200'000,
                   true, "MB", 0});

  const auto direct = std::make_shared<const Sampler>(automaton, SamplerConfig{1, kLength, Stream::direct});
  std::vector<uint16_t> states(kLength);
  direct->sample(Split::train, 0, states.data());
  constexpr size_t kDirect = 20'000;
  const double walk =
      best_core_seconds(options.repeats, [&] { static_cast<void>(direct->block(Split::train, 0, kDirect, 1)); });
  lines.push_back({"direct stream, one core", "direct_elements_per_s", kDirect * kLength / walk / 1e6, 15, false,
                   "M elements/s", kLength / kReferenceSample / 1e6});

  const GapTask task(direct, paper_task(2));
  constexpr int kBatches = 40, kBatch = 64;
  const SampleBlock drawn = direct->block(Split::train, 0, kBatches * kBatch, 1);
  Batch batch;
  double frames = 0;
  const double batching = best_core_seconds(options.repeats, [&] {
    frames = 0;
    for (int i = 0; i < kBatches; ++i) {
      task.fill(Split::train, drawn, static_cast<size_t>(i) * kBatch, kBatch, batch);
      for (int row = 0; row < kBatch; ++row) frames += batch.real_frames(row);
    }
  });
  lines.push_back(
      {"task-2 frame batches, one core", "task2_frames_per_s", frames / batching / 1e6, 20, false, "M frames/s", 0});
  return lines;
}

bool met(const Line& line) {
  return line.at_most ? line.value <= line.target : line.value >= line.target;
}

double times_faster(const Line& line) {
  return line.at_most ? line.reference / line.value : line.value / line.reference;
}

std::string as_text(const std::vector<Line>& lines) {
  TextTable table({"measurement", "value", "target", "", "speed-up over Python"}, "lrrlr");
  for (const auto& line : lines) {
    table.row({line.name, fixed(line.value, line.value < 100 ? 2 : 0) + " " + line.unit,
               (line.at_most ? "<= " : ">= ") + fixed(line.target, line.target < 1 ? 2 : 0),
               met(line) ? "met" : "missed",
               line.reference > 0 ? grouped(static_cast<uint64_t>(times_faster(line))) : "-"});
  }
  return table.text();
}

std::string as_json(const Options& options, const std::vector<Line>& lines) {
  Json json = Json::object();
  if (options.configs.empty()) json = {{"samples", options.samples}, {"threads", options.threads}};
  for (const auto& line : lines) {
    Json& entry = json[line.key];
    entry = {{"value", line.value}, {"unit", line.unit}, {"target", line.target}, {"met", met(line)}};
    if (line.reference > 0) entry["times_reference"] = times_faster(line);
  }
  json["version"] = program_version();
  return json_document(json);
}

Exit run(const Options& options) {
  if (options.configs.empty() && options.arguments->given("--set"))
    throw bad_input(options.arguments->where("--set"), "requires --config");
  const bool all = options.configs.empty();
  std::vector<Line> lines = all ? measure(options) : measure_configs(options);
  if (all)
    for (const Line& line : measure_kinds(options)) lines.push_back(line);
  deliver_both(
      options.json, as_json(options, lines),
      as_text(lines) +
          (all ? "Reference: 18 s per grammar and 6.7 s per sample, measured in one Python process at this scale.\n"
               : ""));
  return Exit::done;
}

}  // namespace bench_data_command

void add_bench_data(Program& program) {
  using namespace bench_data_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "bench data", "Measure grammars, streams and batches at the paper's scale and the samples of every kind of task",
      {"selectivbench bench data", "selectivbench bench data --samples 20000 --json -",
       "selectivbench bench data --config signals --set task.dimensions=32"},
      [options] { return run(*options); });
  options->arguments = &arguments;
  arguments.texts("--config", options->configs, "FILE",
                  "Measure only the samples of this config's task; can be repeated");
  arguments.texts("--set", options->overrides, "SECTION.KEY=VALUE", "Override a value of the configs; can be repeated");
  arguments.heading("Output");
  arguments.integer("--samples", options->samples, 1, 10'000'000, "Samples of the reference stream");
  arguments.integer("--repeats", options->repeats, 1, 1000, "Repetitions of short measurements; the fastest counts");
  arguments.text("--json", options->json, "FILE", "Write the table as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
