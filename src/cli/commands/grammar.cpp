#include <memory>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "grammar/automaton_json.h"
#include "grammar/draw.h"
#include "grammar/figures.h"

namespace sb::cli {
namespace grammar_command {

struct Options {
  GrammarSettings grammar;
  SequenceSettings sequences{"train"};
  std::string json, svg, dot;
};

std::string start_names(const Automaton& a) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < a.start.size() && i < kShown; ++i) text += (i > 0 ? " " : "") + a.names[a.start[i]];
  return a.start.size() > kShown ? text + " …" : text;
}

std::string described(const Options& options, const Automaton& a, const Figures& f) {
  TextTable table({}, "lrl");
  if (const auto config = options.grammar.origin()) {
    table.row({"vocab", std::to_string(a.vocab), "symbols, including '#'"});
    table.row({"ambiguities", std::to_string(config->ambiguities), "symbols that several states emit"});
    table.row({"depth", std::to_string(config->depth), "states per ambiguous symbol"});
    table.row({"density", shortest(config->density < 0 ? 0.4 / config->depth : config->density), "of edges"});
    table.row({"seed", std::to_string(config->seed), ""});
  } else {
    table.row({"vocab", std::to_string(a.vocab), "symbols, including '#'"});
  }
  table.row({"states", grouped(static_cast<uint64_t>(f.states)), ""});
  table.row({"transitions", grouped(static_cast<uint64_t>(f.transitions)), ""});
  table.row({"mean out-degree", fixed(f.mean_out_degree, 3), "successors of a state"});
  table.row({"ending states", grouped(static_cast<uint64_t>(f.ending_states)), "with an edge to '#'"});
  table.row({"start states", std::to_string(a.start.size()), start_names(a)});
  table.row({"start symbols", std::to_string(f.start_symbols), "distinct"});
  table.row({"topological entropy", fixed(f.topological_entropy, 4), "nats, a measure of difficulty"});
  table.row({"mixing rate", fixed(f.mixing_rate, 4), "modulus of the second eigenvalue"});
  table.row({"relaxation", fixed(f.relaxation, 2), "steps to forget by a factor e"});
  table.row({"mean string length", fixed(f.mean_string_length, 1), "elements, strings of any length"});
  table.row({"fits length", fixed(f.fit_probability, 4),
             "probability that a string has at most " + std::to_string(f.fit_length) + " elements"});
  return table.text();
}

Exit run(const Options& options) {
  const auto automaton = options.grammar.load();
  const bool quiet = !options.json.empty() || !options.svg.empty() || !options.dot.empty();
  if (!options.svg.empty()) deliver(options.svg, to_svg(*automaton));
  if (!options.dot.empty()) deliver(options.dot, to_dot(*automaton));
  if (!quiet || !options.json.empty()) {
    const Figures about = figures(*automaton, options.sequences.length);
    if (!options.json.empty()) deliver(options.json, automaton_to_json(*automaton, options.grammar.origin(), about));
    if (!quiet) print(described(options, *automaton, about));
  }
  return Exit::done;
}

}  // namespace grammar_command

void add_grammar(Program& program) {
  using namespace grammar_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("grammar", "Build or read an automaton; show its figures, write it as JSON, draw it",
                      {"selectivbench grammar --vocab 41 --ambiguities 40 --depth 40 --seed 1",
                       "selectivbench grammar --vocab 6 --ambiguities 2 --depth 3 --json my.json --svg my.svg"},
                      [options] { return run(*options); });
  options->grammar.add_to(arguments);
  arguments.heading("Output");
  options->sequences.add_length(arguments);
  arguments.text("--json", options->json, "FILE", "Write the automaton and its figures as JSON, - for standard output");
  arguments.text("--svg", options->svg, "FILE",
                 "Draw the automaton: as a graph up to 40 states, else as an adjacency matrix");
  arguments.text("--dot", options->dot, "FILE", "Write the automaton for Graphviz");
}

}  // namespace sb::cli
