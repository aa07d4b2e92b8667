#include "cli/settings.h"

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/text.h"
#include "grammar/automaton_json.h"
#include "grammar/build.h"

namespace sb::cli {
namespace {

constexpr uint64_t kAnySeed = UINT64_MAX;
constexpr int kMaxThreads = 1024;

bool same(const GapConfig& a, const GapConfig& b) {
  return a.law == b.law && a.min == b.min && a.max == b.max && a.mu == b.mu && a.sigma == b.sigma &&
         a.probability == b.probability && a.start == b.start && a.content == b.content;
}

void describe_gap(JsonWriter& json, const GapConfig& gap) {
  json.begin_object().member("law", to_string(gap.law));
  if (gap.law != GapLaw::none) {
    json.member("min", gap.min).member("max", gap.max);
    if (gap.law == GapLaw::lognormal) json.member("mu", gap.mu).member("sigma", gap.sigma);
    json.member("probability", gap.probability).member("start", gap.start).member("content", to_string(gap.content));
  }
  json.end_object();
}

}  // namespace

void GrammarSettings::add_to(Arguments& arguments) {
  arguments.heading("Grammar");
  arguments.integer("--vocab", config.vocab, 2, kMaxFileVocab, "Symbols, the end symbol '#' counted");
  arguments.integer("--ambiguities", config.ambiguities, 0, kMaxFileVocab, "Symbols that stand for several states");
  arguments.integer("--depth", config.depth, 1, kMaxStates, "States of an ambiguous symbol");
  arguments.density("--density", config.density, "Probability of an edge between two states; auto is 0.4 / depth");
  arguments.integer("--start-states", config.start_states, 1, kMaxStates, "States a string can start with");
  arguments.integer("--seed", config.seed, 0, kAnySeed, "Seed of grammar and sequences");
  arguments.text("--automaton", automaton_file, "FILE", "Your own automaton, JSON as `grammar --json` writes it");
  arguments_ = &arguments;
}

std::shared_ptr<const Automaton> GrammarSettings::load() const {
  if (automaton_file.empty()) return build_automaton(config);
  for (const char* name : {"--vocab", "--ambiguities", "--depth", "--density", "--start-states"}) {
    if (arguments_->given(name)) {
      throw bad_input(arguments_->where(name),
                      "has no meaning for an automaton from a file, expected it without --automaton");
    }
  }
  return std::make_shared<const Automaton>(read_automaton(automaton_file));
}

std::optional<GrammarConfig> GrammarSettings::origin() const {
  return automaton_file.empty() ? std::optional(config) : std::nullopt;
}

void GrammarSettings::describe(JsonWriter& json) const {
  json.begin_object();
  if (automaton_file.empty()) {
    json.member("vocab", config.vocab).member("ambiguities", config.ambiguities).member("depth", config.depth);
    json.member("density", config.density < 0 ? 0.4 / config.depth : config.density);
    json.member("start_states", config.start_states).member("seed", config.seed);
  } else {
    json.member("automaton", automaton_file);
    json.member("automaton_sha256", sha256_hex(read_file(automaton_file, kMaxAutomatonFile)));
    json.member("seed", config.seed);
  }
  json.end_object();
}

void SequenceSettings::add_length(Arguments& arguments) {
  arguments.integer("--length", length, 1, 1'000'000, "Elements of a sample, and the longest accepted string");
}

void SequenceSettings::add_to(Arguments& arguments) {
  arguments.heading("Sequences");
  add_length(arguments);
  arguments.choice("--stream", stream, {"reference", "direct"},
                   "Rejection exactly as published, or the same law without rejection");
  arguments.choice("--split", split, {"train", "valid", "test", "reference"}, "Which samples");
}

std::shared_ptr<const Sampler> SequenceSettings::sampler(std::shared_ptr<const Automaton> automaton,
                                                         uint64_t seed) const {
  const SamplerConfig config{seed, length, parse_stream(stream)};
  check_split(config, parse_split(split));
  return std::make_shared<const Sampler>(std::move(automaton), config);
}

void SequenceSettings::describe(JsonWriter& json) const {
  json.begin_object().member("length", length).member("stream", stream).member("split", split).end_object();
}

void TaskSettings::GapOverrides::add_to(Arguments& arguments, const std::string& prefix, const std::string& whose) {
  arguments.choice(prefix + "-law", law, {"none", "constant", "uniform", "lognormal"}, "Law of gap lengths" + whose);
  arguments.integer(prefix + "-min", min, 0, kMaxGap, "Shortest gap, frames; the length for law constant");
  arguments.integer(prefix + "-max", max, 0, kMaxGap, "Longest gap, frames");
  arguments.real(prefix + "-mu", mu, -100, 100, "Law lognormal: mean of the logarithm");
  arguments.real(prefix + "-sigma", sigma, 0, 100, "Law lognormal: its standard deviation");
  arguments.real(prefix + "-probability", probability, 0, 1, "An element has a gap at all");
  arguments.integer(prefix + "-start", start, 0, 1'000'000, "First element that may have one");
  arguments.choice(prefix + "-content", content, {"blank", "forbidden_symbol"}, "What a gap holds");
}

void TaskSettings::GapOverrides::apply(GapConfig& gap) const {
  if (!law.empty()) gap.law = parse_gap_law(law);
  if (!content.empty()) gap.content = parse_gap_content(content);
  if (min) gap.min = *min;
  if (max) gap.max = *max;
  if (min && !max && gap.max < gap.min) gap.max = gap.min;
  if (mu) gap.mu = *mu;
  if (sigma) gap.sigma = *sigma;
  if (probability) gap.probability = *probability;
  if (start) gap.start = *start;
}

void TaskSettings::add_to(Arguments& arguments, int default_task) {
  number_ = default_task;
  arguments.heading("Task");
  arguments.integer(
      "--task", number_, 0, 4,
      "The paper's task: 1 memorisation, 2 noise rejection, 3 context, 4 generalisation; 0 bare sequences");
  train_.add_to(arguments, "--gap", ", training");
  test_.add_to(arguments, "--test-gap", ", other splits");
  arguments.real("--noise", noise_, 0, 1000, "Added to each channel of every frame, times a uniform draw");
  arguments.choice("--objective", objective_, {"state", "predict"}, "What a model is asked for");
}

TaskConfig TaskSettings::config() const {
  TaskConfig task = paper_task(number_);
  const bool one_law = same(task.train, task.test);
  train_.apply(task.train);
  if (one_law) train_.apply(task.test);
  test_.apply(task.test);
  if (noise_) task.noise = *noise_;
  if (!objective_.empty()) task.objective = parse_objective(objective_);
  check(task);
  return task;
}

void describe(JsonWriter& json, const TaskConfig& task) {
  json.begin_object().member("number", task.number).key("train_gap");
  describe_gap(json, task.train);
  json.key("test_gap");
  describe_gap(json, task.test);
  json.member("noise", task.noise).member("objective", to_string(task.objective)).end_object();
}

void add_threads(Arguments& arguments, int& threads) {
  arguments.heading("Running");
  arguments.integer("--threads", threads, 0, kMaxThreads, "Threads, 0 for all cores; results do not depend on it");
}

void add_color(Arguments& arguments, std::string& mode) {
  arguments.choice("--color", mode, {"auto", "always", "never"}, "Colours; auto respects NO_COLOR");
}

}  // namespace sb::cli
