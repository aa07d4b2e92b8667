#include "config/data.h"

#include "base/error.h"

namespace sb {

TaskSetup task_setup(const RunConfig& config) {
  const GrammarSection& grammar = config.grammar;
  TaskSetup out;
  out.kind = config.task.kind;
  out.seed = grammar.build.seed;
  out.length = config.task.length;
  out.keys = config.task.keys;
  out.files = config.task.files;
  out.grammar = grammar.build;
  // Shares ownership of the file, which contains the automaton.
  if (grammar.file) out.automaton = std::shared_ptr<const Automaton>(grammar.file, &grammar.file->automaton);
  out.stream = config.task.stream;
  out.gaps = config.task.task;
  return out;
}

RunData make_data(const RunConfig& config, const std::function<void()>& poll) {
  if (!config.grammar.file && !config.grammar.automaton.empty())
    throw bad_input("grammar.automaton", "the automaton file has not been read");
  RunData data;
  data.task = make_task(task_setup(config), poll);
  if (config.quirks.select_on_test) data.select = Split::test;
  return data;
}

TaskSize size_of_task(const RunConfig& config, std::optional<int> point) {
  return task_size(task_setup(config), point);
}

}  // namespace sb
