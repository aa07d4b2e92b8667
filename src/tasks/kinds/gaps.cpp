// Gaps: sequences of a random automaton, with a gap after each element and noise on the frames. The paper's tasks 1-4
// are parameter sets of this kind.
#include <algorithm>

#include "grammar/build.h"
#include "tasks/gap_task.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

std::shared_ptr<const Task> make_gaps(const TaskSetup& setup, const Poll& poll) {
  std::shared_ptr<const Automaton> automaton = setup.automaton ? setup.automaton : build_automaton(setup.grammar, poll);
  const SamplerConfig sampling{setup.seed, setup.length, setup.stream};
  return std::make_shared<const GapTask>(std::make_shared<const Sampler>(std::move(automaton), sampling), setup.gaps);
}

// Shares the language, or at least the automaton, which takes long to build.
std::shared_ptr<const Task> make_gaps_stage(const Task& configured, const TaskSetup& setup, const Poll& poll) {
  const auto& gaps = dynamic_cast<const GapTask&>(configured);
  if (gaps.language().length() == setup.length)
    return std::make_shared<const GapTask>(gaps.shared_language(), setup.gaps);
  TaskSetup other = setup;
  other.automaton = std::make_shared<const Automaton>(dynamic_cast<const Sampler&>(gaps.language()).automaton());
  return make_gaps(other, poll);
}

double mean_frames(const GapConfig& gap, int length) {
  const int free = gap.law == GapLaw::none ? length : std::min(gap.start, length);  // elements that have no gap
  return free + (length - free) * mean_element_frames(gap);
}

// Without building the automaton, which takes long.
TaskSize gaps_size(const TaskSetup& setup, std::optional<int> gap) {
  const GrammarConfig& g = setup.grammar;
  const int vocab = setup.automaton ? setup.automaton->vocab : g.vocab;
  const int64_t states =
      setup.automaton ? setup.automaton->states() : int64_t{g.vocab} - g.ambiguities + int64_t{g.ambiguities} * g.depth;
  const TaskConfig& task = setup.gaps;
  const GapConfig test = gap ? with_gap(task, Split::test, *gap).test : task.test;
  return {vocab, answer_count(task.objective, static_cast<int>(std::min<int64_t>(states, kMaxStates)), vocab),
          int64_t{setup.length} * (1 + int64_t{longest_gap(task.train)}), mean_frames(task.train, setup.length),
          mean_frames(test, setup.length)};
}

}  // namespace

TaskRow gaps_row() {
  return {.name = kGapsKind,
          .about = {"Gaps", "Sequences of a random automaton, with gaps and noise."},
          .axis = TestAxis{"gap", "gaps", 0, kMaxGap, "gap lengths tested without retraining",
                           "length of test gaps, frames"},
          .make = make_gaps,
          .make_stage = make_gaps_stage,
          .size = gaps_size,
          .has_reference_split = true,
          .has_grammars = true,
          .numbered = {
              {"custom task", "A task with its own settings; the section Method lists them."},
              {"memorisation",
               "Most symbols are emitted by many states, so a symbol alone does not determine the state. The model "
               "names the hidden state of every element from the context before it. A blank frame follows each "
               "element."},
              {"noise rejection",
               "As task 1 with noise on every channel and gaps of blank frames after each element. The state has to be "
               "held through the gap: every frame of the gap counts."},
              {"context-aware selectivity",
               "From some element on, frames with a symbol that cannot follow are inserted at random. Only context "
               "tells such distractors from data."},
              {"generalisation",
               "Models trained on short gaps are tested, without retraining, on gaps longer than any they have "
               "seen."}}};
}

}  // namespace sb
