// What a run trains and is tested on, built from its config.
#pragma once
#include <memory>
#include <optional>

#include "runs/config.h"
#include "tasks/task.h"

namespace sb {

// The one place that knows which language and which task a config names.
struct RunData {
  std::shared_ptr<const Language> language;
  std::shared_ptr<const Automaton> automaton;  // the language's; null where it has none
  TaskConfig task;
  std::shared_ptr<const Task> maker;  // `task`: fills its batches
  Split select = Split::valid;        // what periodic evaluation looks at
};

RunData make_data(const RunConfig& config);
std::shared_ptr<const Task> make_task(const RunData& data, const TaskConfig& task);  // another one of its language
// The task with gaps of `gap` frames on this split: a point of the generalisation grid. Which elements have one, and
// what fills it, stays as it is.
TaskConfig with_gap(TaskConfig task, Split split, int gap);

// Frames of a sample, on average over the law of its gaps: one of training, one of the other splits, the same at
// another gap length.
double training_frames(const RunConfig& config);
double test_frames(const RunConfig& config, std::optional<int> gap = {});

// What a network for the run takes and gives, known without building the automaton.
struct NetworkEnds {
  int64_t inputs = 0, outputs = 0;
};
NetworkEnds network_ends(const RunConfig& config);

}  // namespace sb
