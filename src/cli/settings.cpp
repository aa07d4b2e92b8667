#include "cli/settings.h"

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "config/automaton_file.h"
#include "grammar/automaton_json.h"
#include "grammar/build.h"

namespace sb::cli {
namespace {

constexpr uint64_t kAnySeed = UINT64_MAX;
constexpr int kMaxThreads = 1024;

Json describe(const GapConfig& gap) {
  Json out = Json::object({{"law", to_string(gap.law)}});
  if (gap.law == GapLaw::none) return out;
  out["min"] = gap.min;
  out["max"] = gap.max;
  if (gap.law == GapLaw::lognormal) {
    out["mu"] = gap.mu;
    out["sigma"] = gap.sigma;
  }
  out["probability"] = gap.probability;
  out["start"] = gap.start;
  out["content"] = to_string(gap.content);
  return out;
}

}  // namespace

void GrammarSettings::add_to(Arguments& arguments) {
  arguments.heading("Grammar");
  arguments.integer("--vocab", config.vocab, 2, kMaxFileVocab, "Number of symbols, including the end symbol '#'");
  arguments.integer("--ambiguities", config.ambiguities, 0, kMaxFileVocab,
                    "Number of ambiguous symbols, each emitted by several states");
  arguments.integer("--depth", config.depth, 1, kMaxStates, "Number of states per ambiguous symbol");
  arguments.density("--density", config.density, "Probability of an edge between two states; auto: 0.4 / depth");
  arguments.integer("--start-states", config.start_states, 1, kMaxStates,
                    "Number of states in which a string can start");
  arguments.integer("--seed", config.seed, 0, kAnySeed, "Seed of grammar and sequences");
  arguments.text("--automaton", automaton_file, "FILE",
                 "Read the automaton from this file, in the format of `grammar --json`");
  arguments_ = &arguments;
}

std::shared_ptr<const Automaton> GrammarSettings::load() const {
  if (automaton_file.empty()) return build_automaton(config);
  for (const char* name : {"--vocab", "--ambiguities", "--depth", "--density", "--start-states"}) {
    if (arguments_->given(name)) {
      throw bad_input(arguments_->where(name), "cannot be combined with --automaton: the file defines the grammar");
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

Json GrammarSettings::description() const {
  if (!automaton_file.empty()) {
    return {{"automaton", automaton_file}, {"automaton_sha256", file().sha256}, {"seed", config.seed}};
  }
  return {{"vocab", config.vocab},
          {"ambiguities", config.ambiguities},
          {"depth", config.depth},
          {"density", config.density < 0 ? 0.4 / config.depth : config.density},
          {"start_states", config.start_states},
          {"seed", config.seed}};
}

void SequenceSettings::add_length(Arguments& arguments) {
  arguments.integer("--length", length, 1, 1'000'000, "Elements per sample, and maximum length of an accepted string");
}

void SequenceSettings::add_to(Arguments& arguments) {
  arguments.heading("Sequences");
  add_length(arguments);
  arguments.choice("--stream", stream, {"reference", "direct"},
                   "Rejection sampling as published, or direct sampling from the same distribution");
  arguments.choice("--split", split, {"train", "valid", "test", "reference"}, "Split to draw samples from");
}

std::shared_ptr<const Sampler> SequenceSettings::sampler(std::shared_ptr<const Automaton> automaton,
                                                         uint64_t seed) const {
  const SamplerConfig config{seed, length, parse_stream(stream)};
  check_split(config, parse_split(split));
  return std::make_shared<const Sampler>(std::move(automaton), config);
}

Json SequenceSettings::description() const {
  return {{"length", length}, {"stream", stream}, {"split", split}};
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
  arguments_ = &arguments;
  arguments.heading("Task");
  arguments.integer(
      "--task", number_, 0, 4,
      "The paper's task: 1 memorisation, 2 noise rejection, 3 context, 4 generalisation; 0: plain sequences");
  add(arguments, "--gap-law", "gap_law", "Distribution of gap lengths; test gaps follow from it as in a config");
  add(arguments, "--gap-min", "gap_min", "Shortest gap in frames; for constant, the length");
  add(arguments, "--gap-max", "gap_max", "Longest gap in frames; tasks 2 and 4 are tested with it");
  add(arguments, "--gap-mu", "gap_mu", "For lognormal: mean of the logarithm");
  add(arguments, "--gap-sigma", "gap_sigma", "For lognormal: standard deviation of the logarithm");
  add(arguments, "--gap-probability", "gap_probability", "Probability that an element has a gap");
  add(arguments, "--gap-start", "gap_start", "First element that can have a gap");
  add(arguments, "--gap-content", "gap_content", "Content of gap frames");
  add(arguments, "--noise", "noise",
      "Noise amplitude: uniform noise in [0, X) is added to every channel of every frame");
  add(arguments, "--objective", "objective",
      "What the model predicts; state is the current state, predict the next symbol");
}

Settings TaskSettings::settings(const SequenceSettings& sequences) const {
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
  return settings;
}

TaskConfig TaskSettings::config(const SequenceSettings& sequences) const {
  RunConfig resolved;
  resolved.task = resolve_task(settings(sequences), "--task");
  for (const Option& option : options_) {
    if (!arguments_->given(option.flag) || !silenced(resolved, *find_config_key(option.key))) continue;
    const std::string wanted = option.flag.ends_with("-mu") || option.flag.ends_with("-sigma") ? "lognormal"
                               : option.flag.ends_with("-max")                                 ? "uniform or lognormal"
                                                               : "constant, uniform or lognormal";
    throw bad_input(arguments_->where(option.flag), std::string("has no effect with --gap-law ") +
                                                        to_string(resolved.task.task.train.law) +
                                                        "; requires --gap-law " + wanted);
  }
  return resolved.task.task;
}

std::string TaskSettings::first_given() const {
  if (arguments_->given("--task")) return "--task";
  for (const Option& option : options_)
    if (arguments_->given(option.flag)) return option.flag;
  return "";
}

Json description_of(const TaskConfig& task) {
  return {{"number", task.number},
          {"train_gap", describe(task.train)},
          {"test_gap", describe(task.test)},
          {"noise", task.noise},
          {"objective", to_string(task.objective)}};
}

void add_threads(Arguments& arguments, int& threads) {
  arguments.heading("Running");
  arguments.integer("--threads", threads, 0, kMaxThreads, "Threads; 0: all cores. Results do not depend on this");
}

void add_color(Arguments& arguments, std::string& mode) {
  arguments.choice("--color", mode, {"auto", "always", "never"},
                   "Colours; auto uses them on a terminal unless NO_COLOR is set");
}

}  // namespace sb::cli
