#include "cli/settings.h"

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "grammar/automaton_json.h"
#include "grammar/build.h"

namespace sb::cli {
namespace {

constexpr uint64_t kAnySeed = UINT64_MAX;
constexpr int kMaxThreads = 1024;

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
  file();
  return {file_, &file_->automaton};
}

const AutomatonFile& GrammarSettings::file() const {
  if (!file_) file_ = read_automaton_file(automaton_file, {"--automaton", 0, 0});
  return *file_;
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
    json.member("automaton_sha256", file().sha256);
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

void TaskSettings::add(Arguments& arguments, const std::string& flag, const std::string& key, const std::string& help) {
  const ConfigKey& known = *find_config_key("task." + key);
  Option& option = options_.emplace_back();
  option.flag = flag;
  option.key = known.name();
  if (known.kind == ConfigKey::Kind::whole) {
    arguments.integer(flag, option.whole, static_cast<int>(known.least), static_cast<int>(known.most), help);
  } else if (known.kind == ConfigKey::Kind::real) {
    arguments.real(flag, option.real, known.low, known.high, help);
  } else {
    arguments.choice(flag, option.word, known.choices, help);
  }
}

void TaskSettings::add_to(Arguments& arguments, int default_task) {
  number_ = default_task;
  arguments.heading("Task");
  arguments.integer(
      "--task", number_, 0, 4,
      "The paper's task: 1 memorisation, 2 noise rejection, 3 context, 4 generalisation; 0 bare sequences");
  for (const bool test : {false, true}) {
    const std::string flag = test ? "--test-gap-" : "--gap-", key = test ? "test_gap_" : "gap_";
    add(arguments, flag + "law", key + "law",
        test ? "Law of gap lengths, other splits; they follow training unless given" : "Law of gap lengths, training");
    add(arguments, flag + "min", key + "min", "Shortest gap, frames; the length for law constant");
    add(arguments, flag + "max", key + "max",
        test ? "Longest gap, frames" : "Longest gap, frames; tasks 2 and 4 are tested at it");
    add(arguments, flag + "mu", key + "mu", "Law lognormal: mean of the logarithm");
    add(arguments, flag + "sigma", key + "sigma", "Law lognormal: its standard deviation");
    add(arguments, flag + "probability", key + "probability", "An element has a gap at all");
    add(arguments, flag + "start", key + "start", "First element that may have one");
    add(arguments, flag + "content", key + "content", "What a gap holds");
  }
  add(arguments, "--noise", "noise", "Added to each channel of every frame, times a uniform draw");
  add(arguments, "--objective", "objective", "What a model is asked for");
}

TaskConfig TaskSettings::config(const SequenceSettings& sequences) const {
  Settings settings;
  const auto set = [&](const std::string& key, const std::string& flag, auto value, const std::string& text) {
    const Place place{flag + " " + text, 0, 0};
    TomlValue stored;
    stored.content = value;
    stored.place = place;
    settings[key] = Setting{stored, place, place};
  };
  set("task.number", "--task", int64_t{number_}, std::to_string(number_));
  set("task.length", "--length", int64_t{sequences.length}, std::to_string(sequences.length));
  for (const Option& option : options_) {
    if (option.whole) set(option.key, option.flag, int64_t{*option.whole}, std::to_string(*option.whole));
    if (option.real) set(option.key, option.flag, *option.real, shortest(*option.real));
    if (!option.word.empty()) set(option.key, option.flag, option.word, option.word);
  }
  return resolve_task(settings, "--task").task;
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
