// Against an installed library: a task, a batch of it, a predictor's score and the ceiling beside it.
#include <selectivbench/ceiling.h>
#include <selectivbench/grammar.h>
#include <selectivbench/score.h>
#include <selectivbench/task.h>

#include <cstdio>

int main() try {
  const auto automaton = sb::build_automaton({.vocab = 6, .ambiguities = 2, .depth = 3});
  const auto language = std::make_shared<const sb::Sampler>(automaton, sb::SamplerConfig{.seed = 1, .length = 50});
  const sb::GapTask task(language, sb::paper_task(2));
  sb::Batch batch;
  task.fill(sb::Split::test, 0, 4, batch);
  std::vector<float> frames(batch.symbol.size() * static_cast<size_t>(batch.channels));
  sb::expand_frames(batch, frames.data());
  sb::OraclePredictor predictor(task, sb::Split::test);
  const sb::Evaluation score = sb::evaluate(predictor, task, {.split = sb::Split::test, .samples = 20});
  const sb::Ceiling ceiling = sb::exact_ceiling(task, {.split = sb::Split::test, .samples = 20});
  std::printf("states %d, frames %d, accuracy %.6f, ceiling %.6f\n", language->states(), batch.frames,
              score.elements.value(), ceiling.filter_accuracy);
} catch (const sb::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.code());
}
