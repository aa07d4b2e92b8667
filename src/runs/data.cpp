#include "runs/data.h"

#include <algorithm>

#include "base/error.h"
#include "grammar/build.h"
#include "tasks/gap_task.h"

namespace sb {

RunData make_data(const RunConfig& config, const std::function<void()>& poll) {
  // A file's automaton lives as long as what was read.
  const auto& file = config.grammar.file;
  if (!file && !config.grammar.automaton.empty()) throw bad_input("grammar.automaton", "named, but not read");
  std::shared_ptr<const Automaton> automaton =
      file ? std::shared_ptr<const Automaton>(file, &file->automaton) : build_automaton(config.grammar.build, poll);
  SamplerConfig sampling;
  sampling.seed = config.grammar.build.seed;
  sampling.length = config.task.length;
  sampling.stream = config.task.stream;
  RunData data;
  data.automaton = automaton;
  data.language = std::make_shared<const Sampler>(std::move(automaton), sampling);
  data.task_config = config.task.task;
  data.task = make_task(data, data.task_config);
  if (config.quirks.select_on_test) data.select = Split::test;
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

namespace {

double mean_frames(const GapConfig& gap, int length) {
  const int free = gap.law == GapLaw::none ? length : std::min(gap.start, length);  // elements that have no gap
  return free + (length - free) * mean_element_frames(gap);
}

}  // namespace

double training_frames(const RunConfig& config) {
  return mean_frames(config.task.task.train, config.task.length);
}

double test_frames(const RunConfig& config, std::optional<int> gap) {
  const TaskConfig& task = config.task.task;
  return mean_frames(gap ? with_gap(task, Split::test, *gap).test : task.test, config.task.length);
}

NetworkEnds network_ends(const RunConfig& config) {
  const GrammarConfig& g = config.grammar.build;
  const auto& file = config.grammar.file;
  const int vocab = file ? file->automaton.vocab : g.vocab;
  const int64_t states =
      file ? file->automaton.states() : int64_t{g.vocab} - g.ambiguities + int64_t{g.ambiguities} * g.depth;
  return {vocab,
          answer_count(config.task.task.objective, static_cast<int>(std::min<int64_t>(states, kMaxStates)), vocab)};
}

}  // namespace sb
