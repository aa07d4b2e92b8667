#include <algorithm>
#include <cmath>
#include <memory>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kind_settings.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/standard_error.h"
#include "jobs/progress.h"
#include "tasks/baselines.h"
#include "tasks/ceiling.h"
#include "tasks/gap_task.h"
#include "tasks/ngram_source.h"

namespace sb::cli {
namespace ceiling_command {

struct Options {
  GrammarSettings grammar;
  SequenceSettings sequences{"test"};
  TaskSettings task;
  KindSettings kind;
  uint64_t samples = 1000, start = 0, train_samples = 10000;
  bool baselines = false;
  std::string json;
  int threads = 0;
  const Arguments* arguments = nullptr;
};

using Describe = std::function<void(Json&)>;  // adds the request to the output

void describe_all(Json& json, const Options& options, const TaskConfig& task) {
  json["grammar"] = options.grammar.description();
  json["sequences"] = options.sequences.description();
  json["start"] = options.start;
  json["task"] = description_of(task);
}

std::string as_json(const Describe& describe, const Ceiling& c, const std::optional<Baselines>& b = {}) {
  Json json = {{"ceiling", c.accuracy}, {"samples", c.samples}};
  if (c.samples > 1) json["stderr"] = c.stderr_;
  json["upper_bound"] = c.upper_bound;
  json["counted"] = c.filter_accuracy;
  json["exact"] = c.exact;
  json["mean_entropy"] = c.mean_entropy;
  if (c.entropy_rate) json["entropy_rate"] = *c.entropy_rate;
  describe(json);
  json["by_position"] = c.by_position;
  json["entropy_by_position"] = c.entropy_by_position;
  if (b) {
    json["baselines"] = {{"chance", b->chance},
                         {"majority", b->majority},
                         {"n_gram", b->n_gram},
                         {"n", b->n},
                         {"n_gram_stderr", b->n_gram_stderr},
                         {"table_learner", b->table_learner},
                         {"train_samples", b->train_samples},
                         {"test_samples", b->test_samples}};
  }
  return json_document(json);
}

std::string as_json(const Describe& describe, const PredictCeiling& c) {
  Json json = {{"ceiling", c.accuracy}, {"samples", c.samples}};
  if (c.samples > 1) json["stderr"] = c.stderr_;
  json["upper_bound"] = c.upper_bound;
  json["counted"] = c.counted;
  json["exact"] = c.exact;
  json["kl"] = c.kl;
  if (c.samples > 1) json["kl_stderr"] = c.kl_stderr;
  json["kl_bound"] = c.kl_bound;
  json["kl_counted"] = c.kl_counted;
  describe(json);
  json["by_position"] = c.by_position;
  json["kl_by_position"] = c.kl_by_position;
  return json_document(json);
}

// Mean over elements [from, to); NaN: the element is never asked for.
std::string mean(const std::vector<double>& values, size_t from, size_t to) {
  double sum = 0;
  size_t asked = 0;
  for (size_t i = from; i < to; ++i) {
    if (std::isnan(values[i])) continue;
    sum += values[i];
    ++asked;
  }
  return asked == 0 ? "–" : fixed(sum / static_cast<double>(asked), 4);
}

// A table of one or two columns by element index, in ranges of doubling width.
std::string by_position(const std::vector<double>& a, const std::string& name_a, const std::vector<double>& b,
                        const std::string& name_b) {
  TextTable table(b.empty() ? std::vector<std::string>{"elements", name_a}
                            : std::vector<std::string>{"elements", name_a, name_b});
  const size_t n = b.empty() ? a.size() : std::min(a.size(), b.size());
  for (size_t from = 0, width = 1; from < n; from += width, width *= 2) {
    const size_t to = std::min(n, from + width);
    std::vector<std::string> row = {std::to_string(from) + (to - from > 1 ? "-" + std::to_string(to - 1) : ""),
                                    mean(a, from, to)};
    if (!b.empty()) row.push_back(mean(b, from, to));
    table.row(row);
  }
  return table.text();
}

TextTable figures() {
  return TextTable({}, "lrl");
}

// "standard error 0.00120, "; empty for one sample.
std::string spread_text(double error, uint64_t samples) {
  return samples > 1 ? "standard error " + fixed(error, 5) + ", " : "";
}

// Why a figure is only a bound.
std::string bound_text(const Options& options) {
  return options.kind.asked() ? "upper bound only"
                              : "not reached; noise above 1 hides symbols; computed for a filter that sees all symbols";
}

// Whether the baselines are scored on samples they learnt from.
bool overlaps(const Options& options) {
  return (options.sequences.split == "train" || options.sequences.split == "reference") &&
         options.start < options.train_samples;
}

std::string as_text(const Options& options, const Ceiling& c, const std::optional<Baselines>& b) {
  TextTable table = figures();
  if (c.exact) {
    table.row(
        {"ceiling", fixed(c.accuracy, 5),
         spread_text(c.stderr_, c.samples) + (options.kind.asked() ? "score of the task's oracle under the metric"
                                                                   : "score of the exact filter under the metric")});
    table.row({"upper bound", fixed(c.upper_bound, 5), "no causal model exceeds it"});
  } else {
    table.row({"upper bound", fixed(c.upper_bound, 5), spread_text(c.stderr_, c.samples) + bound_text(options)});
  }
  table.row({"entropy", fixed(c.mean_entropy, 5),
             "nats per element, of the " + std::string(options.kind.asked() ? "oracle" : "filter") + "'s belief"});
  if (c.entropy_rate)
    table.row({"entropy rate", fixed(*c.entropy_rate, 5),
               spread_text(c.entropy_rate_stderr, c.samples) + "nats per element, of the frames without noise"});
  table.row({"samples", grouped(c.samples), options.sequences.split + " from " + grouped(options.start)});
  if (b) {
    table.row({"chance", fixed(b->chance, 5), "1 / states"});
    table.row({"majority", fixed(b->majority, 5), "the most common state"});
    for (size_t n = 0; n < b->n_gram.size(); ++n) {
      const bool chosen = static_cast<int>(n) + 1 == b->n;
      table.row({std::to_string(n + 1) + "-gram", fixed(b->n_gram[n], 5),
                 (chosen ? spread_text(b->n_gram_stderr, b->test_samples) + "best on valid: " : std::string()) +
                     "the most common state after the last " +
                     (n == 0 ? "symbol" : std::to_string(n + 1) + " symbols")});
    }
    table.row({"table learner", fixed(b->table_learner, 5),
               "transitions counted in " + grouped(b->train_samples) + " labelled samples, then filtered"});
    table.row({"", "", "scored on these samples only, so a baseline may by chance exceed a bound of the mean"});
    if (!c.exact) table.row({"", "", "the baselines see the true symbols, without noise"});
    if (overlaps(options)) table.row({"", "", "the baselines are scored on samples they learnt from"});
  }
  return table.text() + "\n" +
         by_position(c.by_position, c.exact ? "ceiling" : "bound", c.entropy_by_position, "entropy");
}

std::string as_json(const Describe& describe, const ErrorCeiling& c) {
  Json json = {{"bound", c.mse}, {"samples", c.samples}};
  if (c.samples > 1) json["stderr"] = c.stderr_;
  json["counted"] = c.counted;
  describe(json);
  json["by_position"] = c.by_position;
  return json_document(json);
}

std::string as_text(const Options& options, const ErrorCeiling& c) {
  TextTable table = figures();
  table.row({"bound", fixed(c.mse, 5),
             spread_text(c.stderr_, c.samples) + "squared error; no causal model has less in expectation"});
  table.row({"samples", grouped(c.samples), options.sequences.split + " from " + grouped(options.start)});
  return table.text() + "\n" + by_position(c.by_position, "bound", {}, "");
}

std::string as_text(const Options& options, const PredictCeiling& c) {
  TextTable table = figures();
  const std::string spread = spread_text(c.stderr_, c.samples), kl_spread = spread_text(c.kl_stderr, c.samples);
  if (c.exact) {
    table.row(
        {"ceiling", fixed(c.accuracy, 5), spread + "accuracy of predicting the next symbol by its exact distribution"});
    table.row({"upper bound", fixed(c.upper_bound, 5), "no causal model exceeds it"});
    table.row({"KL", fixed(c.kl, 5),
               kl_spread + "nats per element, from the grammar's distribution to the mean over states"});
    table.row({"lower bound", fixed(c.kl_bound, 5), "no causal model has less KL"});
  } else {
    table.row({"upper bound", fixed(c.upper_bound, 5), spread + bound_text(options)});
    table.row({"KL, lower bound", fixed(c.kl_bound, 5), kl_spread + "nats per element; not reached"});
  }
  table.row({"samples", grouped(c.samples), options.sequences.split + " from " + grouped(options.start)});
  return table.text() + "\n" + by_position(c.by_position, c.exact ? "ceiling" : "bound", c.kl_by_position, "KL");
}

struct Answer {
  std::string text, json;
};

// Any kind's ceiling, by the oracle or estimator that the task has.
Answer ceiling_of(const Options& options, const Task& task, const CeilingRequest& request, const Describe& describe) {
  const auto both = [&](const auto& ceiling, const auto& text) -> Answer { return {text, as_json(describe, ceiling)}; };
  if (task.shape().loss == Loss::squared_error) {
    const ErrorCeiling ceiling = error_ceiling(task, request);
    return both(ceiling, as_text(options, ceiling));
  }
  if (task.has_law()) {
    const PredictCeiling ceiling = predict_ceiling(task, request);
    return both(ceiling, as_text(options, ceiling));
  }
  const Ceiling ceiling = exact_ceiling(task, request);
  expect_asked(ceiling);
  return both(ceiling, as_text(options, ceiling, {}));
}

CeilingRequest request_of(const Options& options) {
  CeilingRequest request;
  request.split = parse_split(options.sequences.split);
  request.first = options.start;
  request.samples = options.samples;
  request.threads = options.threads;
  return request;
}

// Only kinds without an oracle have n-grams, and this command prints ceilings.
void refuse_baselines(const Options& options, const Task& task) {
  for (const char* flag : {"--baselines", "--train-samples"})
    if (options.arguments->given(flag))
      throw bad_input(options.arguments->where(flag),
                      task.ngrams() ? formatted("kind {} has n-grams but no ceiling; results of its runs and "
                                                "sb.baselines of the Python package have the n-grams",
                                                options.kind.name())
                                    : "no baselines: n-grams cannot answer --kind " + options.kind.name());
}

Exit run_kind(const Options& options) {
  const std::shared_ptr<const Task> task = options.kind.task(options.grammar, options.sequences, options.task);
  refuse_baselines(options, *task);
  CeilingRequest request = request_of(options);
  Answer answer;
  {
    Progress progress("samples", options.samples, standard_error());
    request.progress = [&](uint64_t done) { progress.update(done); };
    answer = ceiling_of(options, *task, request, [&](Json& json) {
      json["task"] = options.kind.description(options.grammar, *task);
      json["split"] = options.sequences.split;
      json["start"] = options.start;
    });
  }
  deliver_both(options.json, answer.json, answer.text);
  return Exit::done;
}

Exit run(const Options& options) {
  if (options.kind.asked()) return run_kind(options);
  const TaskConfig task = options.task.config(options.sequences);
  const bool predict = task.objective == Objective::predict;
  if (predict && options.baselines) throw bad_input("ceiling --baselines", "requires --objective state, got predict");
  if (!options.baselines && options.arguments->given("--train-samples"))
    throw bad_input("ceiling --train-samples", "has no effect without --baselines, which learn from them");
  const auto sampler = options.sequences.sampler(options.grammar.load(), options.grammar.config.seed);
  CeilingRequest request = request_of(options);
  const Describe describe = [&](Json& json) { describe_all(json, options, task); };
  Answer answer;
  {
    Progress progress("samples", options.samples, standard_error());
    request.progress = [&](uint64_t done) { progress.update(done); };
    const GapTask gaps(sampler, task);
    if (options.baselines) {
      const Ceiling ceiling = exact_ceiling(gaps, request);
      const Baselines learnt = baselines(sampler, task, options.train_samples, options.samples, options.threads,
                                         request.split, options.start);
      answer = {as_text(options, ceiling, learnt), as_json(describe, ceiling, learnt)};
    } else {
      answer = ceiling_of(options, gaps, request, describe);
    }
  }
  deliver_both(options.json, answer.json, answer.text);
  return Exit::done;
}

}  // namespace ceiling_command

void add_ceiling(Program& program) {
  using namespace ceiling_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "ceiling", "Compute the best accuracy any causal model can expect, by exact filtering",
      {"selectivbench ceiling --task 1 --seed 1", "selectivbench ceiling --task 3 --baselines --json ceiling.json",
       "selectivbench ceiling --kind tracking --set task.missing=50 --at 90"},
      [options] { return run(*options); });
  options->arguments = &arguments;
  options->grammar.add_to(arguments);
  options->sequences.add_to(arguments);
  options->task.add_to(arguments, 1);
  options->kind.add_to(arguments);
  arguments.heading("Output");
  arguments.integer("--start", options->start, 0, uint64_t{1} << 62, "Index of the first sample");
  arguments.integer("--samples", options->samples, 1, 100'000'000, "Number of samples to average over");
  arguments.flag("--baselines", options->baselines, "Also compute chance, majority, n-grams and a table learner");
  arguments.integer("--train-samples", options->train_samples, 1, 100'000'000, "Labelled samples for the baselines");
  arguments.text("--json", options->json, "FILE", "Write the result as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
