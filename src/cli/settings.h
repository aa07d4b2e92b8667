// Option groups that several commands share: grammar, sequences, task.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/arguments.h"
#include "config/config_file.h"
#include "grammar/automaton.h"
#include "grammar/sampler.h"
#include "tasks/task_config.h"

namespace sb::cli {

// --vocab --ambiguities --depth --density --start-states --seed, or --automaton FILE.
struct GrammarSettings {
  GrammarConfig config;
  std::string automaton_file;  // empty: built from `config`; otherwise read once

  void add_to(Arguments& arguments);
  std::shared_ptr<const Automaton> load() const;
  std::optional<GrammarConfig> origin() const;  // nullopt for a user's own automaton
  Json description() const;

 private:
  const AutomatonFile& file() const;
  const Arguments* arguments_ = nullptr;
  mutable std::shared_ptr<const AutomatonFile> file_;
};

// --length --stream --split
struct SequenceSettings {
  int length = 200;
  std::string stream = "reference";
  std::string split;

  explicit SequenceSettings(std::string default_split) : split(std::move(default_split)) {}
  void add_to(Arguments& arguments);
  void add_length(Arguments& arguments);
  std::shared_ptr<const Sampler> sampler(std::shared_ptr<const Automaton> automaton, uint64_t seed) const;
  Json description() const;
};

// --task N and options that override its parameters: the keys of [task], with the defaults, ranges and rules of a
// config. --gap-* change the distribution of training gaps and, as in a config, that of test gaps.
class TaskSettings {
 public:
  void add_to(Arguments& arguments, int default_task);
  // Throws if an option has no effect with the other values.
  TaskConfig config(const SequenceSettings& sequences) const;
  // The first task option that was given, including --task; empty: none.
  std::string first_given() const;
  bool asks_objective() const { return arguments_->given("--objective"); }

 private:
  struct Option {
    std::string flag, key;
    std::optional<int> whole;
    std::optional<double> real;
    std::string word;
  };
  Settings settings(const SequenceSettings& sequences) const;
  void add(Arguments& arguments, const std::string& flag, const std::string& key, const std::string& help);
  const Arguments* arguments_ = nullptr;
  int number_ = 0;
  std::deque<Option> options_;  // a deque, since callers keep addresses of its elements
};

Json description_of(const TaskConfig& task);

void add_threads(Arguments& arguments, int& threads);
void add_color(Arguments& arguments, std::string& mode);

}  // namespace sb::cli
