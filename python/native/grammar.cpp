#include "config/automaton_file.h"
#include "grammar/automaton_json.h"
#include "grammar/build.h"
#include "grammar/draw.h"
#include "native/config.h"

namespace sb::python {
namespace {

struct Grammar {
  std::shared_ptr<const Config> config;
  std::shared_ptr<const Automaton> automaton;

  std::optional<GrammarConfig> origin() const {
    return config->automaton ? std::nullopt : std::optional(config->resolved.values.grammar.build);
  }
};

Grammar make_grammar(std::shared_ptr<const Config> config) {
  const Unlocked here;
  const GrammarSection& section = config->resolved.values.grammar;
  std::shared_ptr<const Automaton> automaton =
      section.file ? std::shared_ptr<const Automaton>(section.file, &section.file->automaton)
                   : build_automaton(section.build, &end_if_interrupted);
  return {std::move(config), std::move(automaton)};
}

py::dict figures_of(const Grammar& grammar, int length) {
  const Figures f = unlocked([&] { return figures(*grammar.automaton, length, &end_if_interrupted); });
  py::dict out;
  out["states"] = f.states;
  out["transitions"] = f.transitions;
  out["mean_out_degree"] = f.mean_out_degree;
  out["ending_states"] = f.ending_states;
  out["start_symbols"] = f.start_symbols;
  out["topological_entropy"] = f.topological_entropy;
  out["mixing_rate"] = f.mixing_rate;
  out["relaxation"] = f.relaxation;
  out["mean_string_length"] = f.mean_string_length;
  out["fit_probability"] = f.fit_probability;
  out["fit_length"] = f.fit_length;
  return out;
}

// Source of each transition, in the order of `dst`.
std::vector<int32_t> sources(const Automaton& a) {
  std::vector<int32_t> out(a.dst.size());
  for (int s = 0; s < a.states(); ++s) std::fill(out.begin() + a.row[s], out.begin() + a.row[s + 1], s);
  return out;
}

}  // namespace

void bind_grammar(py::module_& m) {
  py::class_<Grammar>(m, "Grammar")
      .def(py::init(&make_grammar))
      .def_property_readonly("config", [](const Grammar& g) { return std::const_pointer_cast<Config>(g.config); })
      .def_property_readonly("vocab", [](const Grammar& g) { return g.automaton->vocab; })
      .def_property_readonly("seed", [](const Grammar& g) { return g.config->resolved.values.grammar.build.seed; })
      .def_property_readonly("names", [](const Grammar& g) { return g.automaton->names; })
      .def_property_readonly("symbols", [](const Grammar& g) { return copied(g.automaton->symbol); })
      .def_property_readonly("ids", [](const Grammar& g) { return copied(g.automaton->id); })
      .def_property_readonly("starts", [](const Grammar& g) { return copied(g.automaton->start); })
      .def_property_readonly("transitions",
                             [](const Grammar& g) {
                               return py::make_tuple(copied(sources(*g.automaton)), copied(g.automaton->dst),
                                                     copied(g.automaton->prob));
                             })
      .def_property_readonly("entropy",
                             [](const Grammar& g) {
                               return unlocked([&] { return topological_entropy(*g.automaton, &end_if_interrupted); });
                             })
      .def("figures", &figures_of)
      .def("json",
           [](const Grammar& g, int length) {
             return unlocked([&] {
               return automaton_to_json(*g.automaton, g.origin(), figures(*g.automaton, length, &end_if_interrupted));
             });
           })
      .def("svg", [](const Grammar& g) { return to_svg(*g.automaton); })
      .def("dot", [](const Grammar& g) { return to_dot(*g.automaton); });
  m.def("read_automaton_text", [](const std::string& path) { return read_automaton_file(path, {path, 1, 1})->text; });
  m.def("symbol_name", [](int symbol) { return symbol == 0 ? std::string("#") : letter_name(symbol - 1); });
}

}  // namespace sb::python
