#include <time.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/number.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
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
  std::string json;
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
  lines.push_back({"the same in processor time, all cores", "reference_stream_core_s", used, 16.0 * count / 200'000,
                   true, "s", kReferenceSample * count});
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
  TextTable table({"what", "measured", "target", "", "times the Python reference"}, "lrrlr");
  for (const auto& line : lines) {
    table.row({line.name, fixed(line.value, line.value < 100 ? 2 : 0) + " " + line.unit,
               (line.at_most ? "<= " : ">= ") + fixed(line.target, line.target < 1 ? 2 : 0),
               met(line) ? "met" : "missed",
               line.reference > 0 ? grouped(static_cast<uint64_t>(times_faster(line))) : "-"});
  }
  return table.text();
}

std::string as_json(const Options& options, const std::vector<Line>& lines) {
  Json json = {{"samples", options.samples}, {"threads", options.threads}};
  for (const auto& line : lines) {
    Json& entry = json[line.key];
    entry = {{"value", line.value}, {"unit", line.unit}, {"target", line.target}, {"met", met(line)}};
    if (line.reference > 0) entry["times_reference"] = times_faster(line);
  }
  json["version"] = program_version();
  return json_document(json);
}

Exit run(const Options& options) {
  const std::vector<Line> lines = measure(options);
  deliver_both(options.json, as_json(options, lines),
               as_text(lines) +
                   "Reference: 18 s per grammar and 6.7 s per sample, measured in one Python process at this scale.\n");
  return Exit::done;
}

}  // namespace bench_data_command

void add_bench_data(Program& program) {
  using namespace bench_data_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "bench data", "Measure grammars, streams and batches at the paper's scale, and compare with targets",
      {"selectivbench bench data", "selectivbench bench data --samples 20000 --json -"},
      [options] { return run(*options); });
  arguments.heading("Output");
  arguments.integer("--samples", options->samples, 1, 10'000'000, "Samples of the reference stream");
  arguments.integer("--repeats", options->repeats, 1, 1000, "Repetitions of short measurements; the fastest counts");
  arguments.text("--json", options->json, "FILE", "Write the table as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
