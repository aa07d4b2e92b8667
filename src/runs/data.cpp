#include "runs/data.h"

#include "base/error.h"
#include "grammar/build.h"
#include "tasks/gap_task.h"

namespace sb {

RunData make_data(const RunConfig& config) {
  // A file's automaton lives as long as what was read.
  const auto& file = config.grammar.file;
  if (!file && !config.grammar.automaton.empty()) throw bad_input("grammar.automaton", "named, but not read");
  std::shared_ptr<const Automaton> automaton =
      file ? std::shared_ptr<const Automaton>(file, &file->automaton) : build_automaton(config.grammar.build);
  SamplerConfig sampling;
  sampling.seed = config.grammar.build.seed;
  sampling.length = config.task.length;
  sampling.stream = config.task.stream;
  RunData data;
  data.automaton = automaton;
  data.language = std::make_shared<const Sampler>(std::move(automaton), sampling);
  data.task = config.task.task;
  data.maker = make_task(data, data.task);
  if (config.quirks.test_in_train) data.test = Split::reference;
  if (config.quirks.select_on_test) data.select = data.test;
  return data;
}

std::shared_ptr<const Task> make_task(const RunData& data, const TaskConfig& task) {
  return std::make_shared<const GapTask>(data.language, task);
}

TaskConfig with_gap(TaskConfig task, Split split, int gap) {
  GapConfig& law = split == Split::train ? task.train : task.test;
  law.law = gap == 0 ? GapLaw::none : GapLaw::constant;
  law.min = law.max = gap;
  return task;
}

}  // namespace sb
