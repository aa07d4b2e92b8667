#include <algorithm>
#include <memory>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kind_settings.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "grammar/build.h"
#include "tasks/gap_task.h"

namespace sb::cli {
namespace show_command {

struct Options {
  GrammarSettings grammar;
  SequenceSettings sequences{"test"};
  TaskSettings task;
  KindSettings kind;
  uint64_t index = 0;
  int from = 0, elements = 40;
  std::string color = "auto";
};

std::string symbol_name(int symbol) {
  return symbol == 0 ? "#" : letter_name(symbol - 1);
}

std::string padded(std::string text, size_t width) {
  text.append(width - std::min(width, display_width(text)), ' ');
  return text;
}

// Gap frames of an element: dots for blanks, the symbols for wrong ones; long gaps are counted.
struct GapText {
  std::string shown;
  bool wrong = false;
};
GapText gap_text(const Batch& batch, int element) {
  constexpr int kShown = 10;
  GapText out;
  const int begin = batch.start[element] + 1, end = batch.start[element + 1];
  for (int t = begin; t < std::min(end, begin + kShown); ++t) {
    const int16_t symbol = batch.symbol[t];
    out.wrong = out.wrong || symbol >= 0;
    out.shown += symbol >= 0 ? symbol_name(symbol) : "·";
  }
  if (end - begin > kShown) out.shown += " x" + std::to_string(end - begin);
  return out;
}

Exit run(const Options& options) {
  if (options.kind.asked()) {
    const auto task = options.kind.task(options.grammar, options.sequences, options.task);
    print(sample_text(*task, options.kind.name(), options.kind.shows_bytes(options.grammar, options.sequences),
                      parse_split(options.sequences.split), options.index, options.from, options.elements,
                      options.color));
    return Exit::done;
  }
  if (options.task.asks_objective())
    throw bad_input("show --objective", "has no effect: the filter's belief is about the state; use `ceiling`");
  const TaskConfig task = options.task.config(options.sequences);
  const auto sampler = options.sequences.sampler(options.grammar.load(), options.grammar.config.seed);
  const Automaton& automaton = sampler->automaton();
  const Split split = parse_split(options.sequences.split);
  if (options.from >= options.sequences.length) {
    throw bad_input("show --from", "expected an element below the length " + std::to_string(options.sequences.length) +
                                       ", got " + std::to_string(options.from));
  }
  Batch batch;
  const GapTask frames(sampler, task);
  frames.fill(split, options.index, 1, batch);
  const std::unique_ptr<Oracle> filter = frames.oracle(split);
  const std::vector<ElementBelief> beliefs = follow(*filter, batch, 0);

  std::vector<int32_t> state_of(automaton.names.size());
  for (int s = 0; s < automaton.states(); ++s) state_of[automaton.id[s]] = s;
  const Palette palette(options.color);
  print(palette.bold("sample " + std::to_string(options.index) + " of split " + options.sequences.split + ", task " +
                     std::to_string(task.number) + ", " + std::to_string(batch.frames) + " frames") +
        "\n");
  print(palette.dim("element  symbol  state     id  gap           filter believes      p  entropy") + "\n");
  const int end = std::min(options.sequences.length, options.from + options.elements);
  for (int e = options.from; e < end; ++e) {
    const int state = state_of[batch.state[e]], symbol = automaton.symbol[state];
    const Belief& belief = beliefs[e].given_segment;
    const bool right = belief.best == batch.state[e];
    const GapText gap = gap_text(batch, e);
    const std::string number = std::to_string(e), id = std::to_string(batch.state[e]);
    std::string line = std::string(7 - std::min<size_t>(7, number.size()), ' ') + number + "  ";
    line += palette.symbol(symbol, padded(symbol_name(symbol), 6)) + "  ";
    line += padded(printable(automaton.names[state], 7), 7) + std::string(5 - std::min<size_t>(5, id.size()), ' ') +
            id + "  ";
    line += (gap.wrong ? palette.bad(padded(gap.shown, 14)) : palette.dim(padded(gap.shown, 14)));
    const std::string best = padded(printable(automaton.names[state_of[belief.best]], 10), 13);
    line += (right ? palette.good("= ") : palette.bad("x ")) + (right ? best : palette.bad(best));
    line += "  " + fixed(belief.probability, 3) + "    " + fixed(std::max(0.0, belief.entropy), 3);
    print(line.substr(0, line.find_last_not_of(' ') + 1) + "\n");
  }
  if (end < options.sequences.length) {
    print(palette.dim("… " + std::to_string(options.sequences.length - end) + " more (--from " + std::to_string(end) +
                      ")") +
          "\n");
  }
  return Exit::done;
}

}  // namespace show_command

void add_show(Program& program) {
  using namespace show_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("show", "Show a sample: symbols, hidden states, gaps, and the exact filter's belief",
                      {"selectivbench show --task 3 --index 7 --from 45",
                       "selectivbench show --vocab 6 --ambiguities 2 --depth 3 --task 1",
                       "selectivbench show --kind copying --set task.symbols=4 --length 5"},
                      [options] { return run(*options); });
  options->grammar.add_to(arguments);
  options->sequences.add_to(arguments);
  options->task.add_to(arguments, 1);
  options->kind.add_to(arguments);
  arguments.heading("Output");
  arguments.integer("--index", options->index, 0, UINT64_MAX, "Index of the sample");
  arguments.integer("--from", options->from, 0, 1'000'000, "First element to show");
  arguments.integer("--elements", options->elements, 1, 1'000'000, "Number of elements to show");
  add_color(arguments, options->color);
}

}  // namespace sb::cli
