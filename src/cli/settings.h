// Option groups that several commands share: the grammar, its sequences, the task.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/arguments.h"
#include "grammar/automaton.h"
#include "grammar/sampler.h"
#include "tasks/task.h"

namespace sb::cli {

// --vocab --ambiguities --depth --density --start-states --seed, or --automaton FILE.
struct GrammarSettings {
  GrammarConfig config;
  std::string automaton_file;  // empty: built from `config`

  void add_to(Arguments& arguments);
  std::shared_ptr<const Automaton> load() const;
  std::optional<GrammarConfig> origin() const;  // nothing for a user's own automaton
  void describe(JsonWriter& json) const;

 private:
  const Arguments* arguments_ = nullptr;
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
  void describe(JsonWriter& json) const;
};

// --task N and what overrides its parameters. --gap-* change the training law, and the test law too where the task has
// one law for both; --test-gap-* change the law of the other splits alone.
class TaskSettings {
 public:
  void add_to(Arguments& arguments, int default_task);
  TaskConfig config() const;

 private:
  struct GapOverrides {
    std::string law, content;
    std::optional<int> min, max, start;
    std::optional<double> mu, sigma, probability;
    void add_to(Arguments& arguments, const std::string& prefix, const std::string& whose);
    void apply(GapConfig& gap) const;
  };
  int number_ = 0;
  GapOverrides train_, test_;
  std::optional<double> noise_;
  std::string objective_;
};

void describe(JsonWriter& json, const TaskConfig& task);  // an object, the value of the last key

void add_threads(Arguments& arguments, int& threads);
void add_color(Arguments& arguments, std::string& mode);

}  // namespace sb::cli
