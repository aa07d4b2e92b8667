#include <algorithm>
#include <memory>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "cli/stop.h"
#include "tasks/baselines.h"
#include "tasks/ceiling.h"

namespace sb::cli {
namespace {

struct Options {
  GrammarSettings grammar;
  SequenceSettings sequences{"test"};
  TaskSettings task;
  uint64_t samples = 1000, start = 0, train_samples = 10000;
  bool baselines = false;
  std::string json;
  int threads = 0;
};

std::string as_json(const Options& options, const TaskConfig& task, const Ceiling& c,
                    const std::optional<Baselines>& b) {
  JsonWriter json;
  json.begin_object().member("ceiling", c.accuracy).member("samples", c.samples).member("stderr", c.stderr_);
  json.member("upper_bound", c.upper_bound).member("counted", c.filter_accuracy).member("exact", c.exact);
  json.member("mean_entropy", c.mean_entropy).key("grammar");
  options.grammar.describe(json);
  json.key("sequences");
  options.sequences.describe(json);
  json.key("task");
  describe(json, task);
  json.array("by_position", c.by_position).array("entropy_by_position", c.entropy_by_position);
  if (b) {
    json.key("baselines").begin_object().member("chance", b->chance).member("majority", b->majority);
    json.array("n_gram", b->n_gram).member("table_learner", b->table_learner);
    json.member("train_samples", b->train_samples).member("test_samples", b->test_samples).end_object();
  }
  json.end_object();
  return json.text() + "\n";
}

// Mean over elements [from, to).
double mean(const std::vector<double>& values, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; ++i) sum += values[i];
  return sum / static_cast<double>(to - from);
}

std::string by_position(const Ceiling& c) {
  TextTable table({"elements", "ceiling", "entropy"});
  const size_t n = c.by_position.size();
  for (size_t from = 0, width = 1; from < n; from += width, width *= 2) {
    const size_t to = std::min(n, from + width);
    table.row({std::to_string(from) + (to - from > 1 ? "-" + std::to_string(to - 1) : ""),
               fixed(mean(c.by_position, from, to), 4), fixed(mean(c.entropy_by_position, from, to), 4)});
  }
  return table.text();
}

std::string as_text(const Ceiling& c, const std::optional<Baselines>& b) {
  TextTable table({}, {TextTable::Align::left, TextTable::Align::right, TextTable::Align::left});
  table.row(
      {"ceiling", fixed(c.accuracy, 5), "± " + fixed(c.stderr_, 5) + ", score of the exact filter under the metric"});
  table.row({"upper bound", fixed(c.upper_bound, 5), "no causal model exceeds it"});
  table.row({"entropy", fixed(c.mean_entropy, 5), "nats an element, of the filter's belief"});
  table.row({"samples", grouped(c.samples), c.exact ? "" : "noise above 1 hides symbols: upper bounds only"});
  if (b) {
    table.row({"chance", fixed(b->chance, 5), "1 / states"});
    table.row({"majority", fixed(b->majority, 5), "the commonest state"});
    for (size_t n = 0; n < b->n_gram.size(); ++n) {
      table.row({std::to_string(n + 1) + "-gram", fixed(b->n_gram[n], 5),
                 "the commonest state after the last " + (n == 0 ? "symbol" : std::to_string(n + 1) + " symbols")});
    }
    table.row({"table learner", fixed(b->table_learner, 5),
               "transitions counted in " + grouped(b->train_samples) + " labelled samples, then filtered"});
  }
  return table.text() + "\n" + by_position(c);
}

Exit run(const Options& options) {
  const TaskConfig task = options.task.config();
  const auto sampler = options.sequences.sampler(options.grammar.load(), options.grammar.config.seed);
  CeilingRequest request;
  request.split = parse_split(options.sequences.split);
  request.first = options.start;
  request.samples = options.samples;
  request.threads = options.threads;
  std::optional<Ceiling> ceiling;
  {
    Progress progress("samples", options.samples);
    request.progress = [&](uint64_t done) {
      end_if_stopped("ceiling");
      progress.update(done);
    };
    ceiling = exact_ceiling(sampler, task, request);
  }
  std::optional<Baselines> learnt;
  if (options.baselines) learnt = baselines(sampler, task, options.train_samples, options.samples, options.threads);
  end_if_stopped("ceiling");
  if (!options.json.empty()) deliver(options.json, as_json(options, task, *ceiling, learnt));
  if (options.json != "-") print(as_text(*ceiling, learnt));
  return Exit::done;
}

}  // namespace

void add_ceiling(Program& program) {
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "ceiling", "The best accuracy any causal model can have, by exact filtering",
      {"selectivbench ceiling --task 1 --seed 1", "selectivbench ceiling --task 3 --baselines --json ceiling.json"},
      [options] { return run(*options); });
  options->grammar.add_to(arguments);
  options->sequences.add_to(arguments);
  options->task.add_to(arguments, 1);
  arguments.heading("Output");
  arguments.integer("--start", options->start, 0, uint64_t{1} << 62, "Index of the first sample");
  arguments.integer("--samples", options->samples, 1, 100'000'000, "How many samples the mean is taken over");
  arguments.flag("--baselines", options->baselines, "Also chance, majority, n-grams and a table learner");
  arguments.integer("--train-samples", options->train_samples, 1, 100'000'000,
                    "Labelled samples the baselines learn from");
  arguments.text("--json", options->json, "FILE", "Write the result as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
