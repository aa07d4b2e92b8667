
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "config/size_match.h"
#include "models/match.h"
#include "models/probe.h"

namespace sb::cli {
namespace models_command {

struct Options {
  int width = 256, layers = 8, inputs = 41, outputs = 1601, length = 400, step = 1;
  bool probe = false;
  std::string json;
  std::string model;  // empty: all
  std::vector<std::string> sets;
  std::string match_params, match_state, match_flops;  // empty: the width given
  const Arguments* arguments = nullptr;

  Switches switches() const;
  std::vector<std::string> models() const { return model.empty() ? model_names() : std::vector{model}; }
};

Switches Options::switches() const {
  Switches out;
  for (const auto& text : sets) {
    const size_t equals = text.find('=');
    const size_t from = text.starts_with("model.") ? 6 : 0;
    if (equals == std::string::npos || equals <= from)
      throw bad_input("models --set", "expected SWITCH=VALUE, got '" + printable(text) + "'");
    out[text.substr(from, equals - from)] = text.substr(equals + 1);
  }
  if (!model.empty()) {
    std::vector<std::string> known;
    for (const Switch& each : find_model(model).switches) known.push_back(each.name());
    for (const auto& [key, value] : out)
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw bad_input("models --set", formatted("{} has no switch '{}', expected {}", model, printable(key),
                                                  known.empty() ? "none" : join_or(nearest_first(key, known))));
  }
  for (const auto& [key, value] : out)
    if (model.empty())
      check_switch(key, value);  // a model may lack a switch
    else
      check_switch_of(find_model(model), key, value);
  return out;
}

// 80k, 1.5M, 2G or a plain number
double amount(const std::string& option, const std::string& text) {
  static const std::map<char, double> factors = {{'k', 1e3}, {'M', 1e6}, {'G', 1e9}};
  const auto found = text.empty() ? factors.end() : factors.find(text.back());
  const auto number = parse_finite(found == factors.end() ? text : text.substr(0, text.size() - 1));
  const double value = number ? *number * (found == factors.end() ? 1 : found->second) : 0;
  if (!(value >= 1 && value <= 1e15))
    throw bad_input("models " + option, "expected a number such as 80k or 1.5M, got '" + printable(text) + "'");
  return value;
}

struct Line {
  std::string model;
  std::string refused;  // why there is no such network, or it can be counted but not run
  bool counted = false;
  ModelConfig config;
  Cost cost;
  Taxonomy row;
};

Line line_of(const std::string& model, const Options& options) {
  Line line{model, "", false, {}, {}, {}};
  try {
    line.config =
        model_config(model, options.width, options.switches(), options.layers, options.inputs, options.outputs);
    const Declared built = declare(line.config);
    line.cost = cost(line.config, options.length);
    line.row = built.mixers[0]->taxonomy();
    line.counted = true;
    check_network(line.config);
  } catch (const Error& error) {
    line.refused = error.what();
  }
  return line;
}

std::string yes_no(bool truth) {
  return truth ? "yes" : "no";
}

std::string as_text(const std::vector<Line>& lines, const Options& options) {
  TextTable table({"model", "width", "heads", "parameters", "state/layer", "MFLOP/token", "matmul", "mixing", "A acts",
                   "from data", "complementary", "reaches 0", "mixes"},
                  "lrrrrrrrlllll");
  std::string notes;
  for (const auto& line : lines) {
    if (!line.refused.empty()) notes += line.model + ": " + line.refused + "\n";
    if (!line.counted) continue;
    const Cost& c = line.cost;
    const bool cache = line.row.action == Taxonomy::Action::cache;
    const auto state = cache ? formatted("{} T", c.cache_per_frame) : grouped(static_cast<uint64_t>(c.state_elements));
    const auto fact = [&](bool truth) { return cache ? std::string("-") : yes_no(truth); };
    table.row({line.model, std::to_string(line.config.mixer.width), std::to_string(line.config.mixer.heads()),
               grouped(static_cast<uint64_t>(c.parameters)), state, fixed((c.matmul_flops + c.mixing_flops) / 1e6, 1),
               fixed(c.matmul_flops / 1e6, 1), fixed(c.mixing_flops / 1e6, 1),
               std::string(action_name(line.row.action)), fact(line.row.data_dependent), fact(line.row.complementary),
               fact(line.row.reaches_zero), fact(line.row.channel_mixing)});
  }
  return table.text() +
         formatted("{} layers, {} inputs, {} outputs; FLOPs of a forward pass at T = {}, training 3x\n", options.layers,
                   options.inputs, options.outputs, options.length) +
         notes;
}

Json json_of(const Taxonomy& row) {
  return {{"action", std::string(action_name(row.action))},
          {"data_dependent", row.data_dependent},
          {"complementary", row.complementary},
          {"reaches_zero", row.reaches_zero},
          {"channel_mixing", row.channel_mixing}};
}

// Switches of one model: the value here, the default at this width, range and meaning.
struct SwitchLine {
  std::string name, value, initial, range, meaning;
};

std::vector<SwitchLine> switch_lines(const Line& line) {
  const ModelRow& row = find_model(line.model);
  std::optional<MixerOptions> plain;
  try {
    plain = model_config(line.model, line.config.width).mixer;
  } catch (const Error&) {
    plain.reset();  // this width is valid only with the given switches
  }
  std::vector<SwitchLine> out;
  for (const auto& each : row.switches) {
    const std::string name = each.name();
    out.push_back({name, line.counted ? line.config.mixer.text(name) : "-",
                   plain ? plain->text(name) : each.initial_text(), each.range(), each.meaning()});
  }
  return out;
}

std::string described(const Line& line) {
  const ModelRow& row = find_model(line.model);
  std::string out = line.model + "\n";
  for (size_t from = 0; from < row.equations.size();) {
    const size_t end = std::min(row.equations.find('\n', from), row.equations.size());
    out += "  " + row.equations.substr(from, end - from) + "\n";
    from = end + 1;
  }
  TextTable table({"switch", "value", "default", "range", "meaning"}, "lllll");
  for (const auto& s : switch_lines(line)) table.row({s.name, s.value, s.initial, s.range, s.meaning});
  return out + "\n" + table.text() + "\n";
}

std::string as_json(const std::vector<Line>& lines, const Options& options) {
  Json json = {{"width", options.width},     {"layers", options.layers}, {"inputs", options.inputs},
               {"outputs", options.outputs}, {"length", options.length}, {"models", Json::array()}};
  for (const auto& line : lines) {
    Json& entry =
        json["models"].emplace_back(Json{{"name", line.model}, {"runs", line.counted && line.refused.empty()}});
    if (!line.refused.empty()) entry["reason"] = line.refused;
    if (!options.model.empty()) {
      entry["equations"] = find_model(line.model).equations;
      Json& switches = entry["switches"] = Json::array();
      for (const auto& s : switch_lines(line)) {
        switches.push_back(
            {{"name", s.name}, {"value", s.value}, {"default", s.initial}, {"range", s.range}, {"meaning", s.meaning}});
      }
    }
    if (line.counted) {
      const Cost& c = line.cost;
      entry["width"] = line.config.mixer.width;
      entry["heads"] = line.config.mixer.heads();
      entry["parameters"] = c.parameters;
      entry["layer_parameters"] = c.layer_parameters;
      entry["state_elements"] = c.state_elements;
      entry["cache_elements_per_frame"] = c.cache_per_frame;
      entry["flops_per_token"] = c.matmul_flops + c.mixing_flops;
      entry["matmul_flops_per_token"] = c.matmul_flops;
      entry["mixing_flops_per_token"] = c.mixing_flops;
      entry["training_flops_per_token"] = c.training_flops();
      entry["taxonomy"] = json_of(line.row);
    }
  }
  return json_document(json);
}

struct Match {
  std::string option;
  SizeMatch asked;
  double (*size)(const Cost&) = nullptr;

  std::string what() const { return in_words(asked.by); }
};

std::optional<Match> match_of(const Options& options) {
  std::vector<Match> asked;
  const auto add = [&](const char* option, const std::string& text, MatchedSize by, double (*size)(const Cost&)) {
    if (!text.empty()) asked.push_back({option, {by, amount(option, text), options.step}, size});
  };
  add("--match-params", options.match_params, MatchedSize::params, parameters_of);
  add("--match-state", options.match_state, MatchedSize::state, state_of);
  add("--match-flops", options.match_flops, MatchedSize::flops, flops_of);
  if (asked.size() > 1) throw bad_input("models " + asked[1].option, "expected one --match option, got two");
  return asked.empty() ? std::nullopt : std::optional(asked.front());
}

Exit run_match(const Options& options, const Match& match) {
  TextTable table({"model", "width", "heads", "parameters", "state/layer", "MFLOP/token", "of asked"});
  Json json = {{"matched", match.what()}, {"asked", match.asked.target}, {"models", Json::array()}};
  std::string notes;
  size_t matched = 0;
  const Switches switches = options.switches();
  for (const auto& model : options.models()) {
    const MatchRequest request{
        model,          switches,   options.layers,     options.inputs, options.outputs,
        options.length, match.size, match.asked.target, options.step,   match.asked.by == MatchedSize::state};
    const auto found = nearest_width(request);
    std::optional<SizeFound> nearest;
    if (found) nearest = SizeFound{found->config.mixer.width, found->d_state, found->size};
    const std::string fault = size_fault(match.asked, nearest);
    if (!fault.empty() && !options.model.empty()) throw bad_input("models " + match.option, model + ": " + fault);
    Json& entry = json["models"].emplace_back(Json{{"name", model}, {"found", fault.empty()}});
    if (fault.empty()) {
      ++matched;
      const Cost& c = found->cost;
      const double flops = c.matmul_flops + c.mixing_flops, ratio = found->size / match.asked.target;
      table.row({model, std::to_string(found->config.mixer.width), std::to_string(found->config.mixer.heads()),
                 grouped(static_cast<uint64_t>(c.parameters)),
                 c.cache_per_frame > 0 ? formatted("{} T", c.cache_per_frame)
                                       : grouped(static_cast<uint64_t>(c.state_elements)),
                 fixed(flops / 1e6, 3), fixed(ratio, 4)});
      if (found->d_state) {
        notes += formatted("{}: with d_state {}\n", model, *found->d_state);
        entry["d_state"] = *found->d_state;
      }
      entry["width"] = found->config.mixer.width;
      entry["heads"] = found->config.mixer.heads();
      entry["value"] = found->size;
      entry["ratio"] = ratio;
      entry["parameters"] = c.parameters;
      entry["state_elements"] = c.state_elements;
      entry["flops_per_token"] = flops;
    } else {
      notes += model + ": " + fault + "\n";
      entry["reason"] = fault;
    }
  }
  if (matched == 0)
    throw bad_input("models " + match.option,
                    formatted("no model has {} {} within {} %; try another size",
                              grouped(static_cast<uint64_t>(match.asked.target)), match.what(), 100 * kMatchTolerance));
  if (!options.json.empty()) {
    deliver(options.json, json_document(json));
    return Exit::done;
  }
  print(table.text() +
        formatted("The width nearest to {} {}: {} layers, {} inputs, {} outputs, T = {}\n",
                  grouped(static_cast<uint64_t>(match.asked.target)), match.what(), options.layers, options.inputs,
                  options.outputs, options.length) +
        notes);
  return Exit::done;
}

struct Probed {
  std::string model;
  Taxonomy declared;
  Measured measured;
};

std::string as_text(const std::vector<Probed>& rows) {
  TextTable table({"model", "A acts", "smallest decay", "write-forget", "off-diagonal", "from data", "complementary",
                   "reaches 0", "mixes", "as declared"},
                  "llrrrlllll");
  for (const auto& [model, declared, m] : rows) {
    const bool cache = m.row.action == Taxonomy::Action::cache;
    const auto number = [&](double value) { return cache ? std::string("-") : fixed(value, 4); };
    const auto fact = [&](bool truth) { return cache ? std::string("-") : yes_no(truth); };
    table.row({model, std::string(action_name(m.row.action)), number(m.smallest_decay),
               number(m.write_forget_correlation), number(m.off_diagonal_mass), fact(m.row.data_dependent),
               fact(m.row.complementary), fact(m.row.reaches_zero), fact(m.row.channel_mixing),
               yes_no(declared == m.row)});
  }
  return table.text() + "Measured on layers of width 16 with 2 heads and 16 states, from dS_t/dS_{t-1}.\n";
}

std::string as_json(const std::vector<Probed>& rows) {
  Json models = Json::array();
  for (const auto& [model, declared, m] : rows) {
    models.push_back({{"name", model},
                      {"as_declared", declared == m.row},
                      {"smallest_decay", m.smallest_decay},
                      {"write_forget_correlation", m.write_forget_correlation},
                      {"off_diagonal_mass", m.off_diagonal_mass},
                      {"declared", json_of(declared)},
                      {"measured", json_of(m.row)}});
  }
  return json_document(Json::object({{"models", std::move(models)}}));
}

Exit run_probe(const Options& options) {
  std::vector<Probed> rows;
  bool all = true;
  const Switches switches = options.switches();
  for (const auto& model : options.models()) {
    rows.push_back({model, declared_row(model, switches), probe(model, switches)});
    all &= rows.back().declared == rows.back().measured.row;
  }
  if (options.json.empty())
    print(as_text(rows));
  else
    deliver(options.json, as_json(rows));
  return all ? Exit::done : Exit::check_failed;
}

// Rejects options that have no effect because of another option.
void refuse_idle(const Options& options) {
  const auto refuse = [&](std::initializer_list<const char*> names, const std::string& other) {
    for (const char* name : names)
      if (options.arguments->given(name))
        throw bad_input(options.arguments->where(name), "cannot be combined with " + other);
  };
  if (const auto match = match_of(options))
    refuse({"--width", "--probe"}, match->option);
  else if (options.arguments->given("--match-step"))
    throw bad_input(options.arguments->where("--match-step"),
                    "requires --match-params, --match-state or --match-flops");
  if (options.probe) refuse({"--width", "--layers", "--inputs", "--outputs", "--length"}, "--probe");
}

Exit run(const Options& options) {
  if (!options.model.empty()) find_model(options.model);
  refuse_idle(options);
  options.switches();  // rejects an invalid name or value once, not for every model
  if (const auto match = match_of(options)) return run_match(options, *match);
  if (options.probe) return run_probe(options);
  std::vector<Line> lines;
  for (const auto& model : options.models()) lines.push_back(line_of(model, options));
  if (!options.model.empty() && !lines.front().refused.empty()) throw Error(Exit::bad_input, lines.front().refused);
  if (options.json.empty())
    print((options.model.empty() ? "" : described(lines.front())) + as_text(lines, options));
  else
    deliver(options.json, as_json(lines, options));
  return Exit::done;
}

}  // namespace models_command

void add_models(Program& program) {
  using namespace models_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "models",
      "List the models: parameters, state, FLOPs per token, taxonomy; with NAME also its equations and switches",
      {"selectivbench models", "selectivbench models mamba2 --width 512 --set d_state=64",
       "selectivbench models --match-params 80k --layers 2 --inputs 13 --outputs 145", "selectivbench models --probe"},
      [options] { return run(*options); });
  options->arguments = &arguments;
  arguments.positional("NAME", options->model, false, "Show only this model, with its equations and switches");
  arguments.integer("--width", options->width, 1, 65536, "Channels per layer");
  arguments.integer("--layers", options->layers, 1, 1024, "Layers");
  arguments.integer("--inputs", options->inputs, 1, 1 << 24, "Input symbols");
  arguments.integer("--outputs", options->outputs, 1, 1 << 24, "Output classes");
  arguments.integer("--length", options->length, 1, 1 << 24, "Frames per sequence, for the FLOPs of mixing");
  arguments.texts("--set", options->sets, "SWITCH=VALUE", "Set a switch; can be repeated");
  arguments.text("--match-params", options->match_params, "N",
                 "Find the width with N parameters within 10 %, e.g. 80k");
  arguments.text("--match-state", options->match_state, "N", "Find the width with N state elements per layer");
  arguments.text("--match-flops", options->match_flops, "N", "Find the width with N FLOPs per token, e.g. 1.5M");
  arguments.integer("--match-step", options->step, 1, kMaxMatchStep, "Try only widths that are multiples of this");
  arguments.flag("--probe", options->probe,
                 "Measure the taxonomy on built layers; exit code 1 if it differs from the declared one");
  arguments.text("--json", options->json, "FILE", "Write JSON there, - for standard output");
}

}  // namespace sb::cli
