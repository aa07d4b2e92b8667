#include <fmt/format.h>

#include <memory>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "models/declare.h"
#include "models/probe.h"

namespace sb::cli {
namespace {

struct Options {
  int width = 256, layers = 8, inputs = 41, outputs = 1601, length = 400;
  bool probe = false;
  std::string json;
};

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
    line.config = model_config(model, options.width, {}, options.layers, options.inputs, options.outputs);
    const Declared built = declare(line.config);
    line.cost = cost(line.config, options.length);
    line.row = built.mixers[0]->taxonomy();
    line.counted = true;
    built.mixers[0]->check_runnable();
  } catch (const Error& error) {
    line.refused = error.what();
  }
  return line;
}

std::string yes_no(bool truth) {
  return truth ? "yes" : "no";
}

std::string as_text(const std::vector<Line>& lines, const Options& options) {
  using Align = TextTable::Align;
  TextTable table({"model", "width", "heads", "parameters", "state/layer", "MFLOP/token", "matmul", "mixing", "A acts",
                   "from data", "complementary", "reaches 0", "mixes"},
                  {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::left, Align::left, Align::left, Align::left, Align::left});
  std::string notes;
  for (const auto& line : lines) {
    if (!line.refused.empty()) notes += line.model + ": " + line.refused + "\n";
    if (!line.counted) continue;
    const Cost& c = line.cost;
    const bool cache = line.row.action == Taxonomy::Action::cache;
    const auto state =
        cache ? fmt::format("{} T", c.cache_per_frame) : grouped(static_cast<uint64_t>(c.state_elements));
    const auto fact = [&](bool truth) { return cache ? std::string("-") : yes_no(truth); };
    table.row({line.model, std::to_string(line.config.mixer.width), std::to_string(line.config.mixer.heads),
               grouped(static_cast<uint64_t>(c.parameters)), state, fixed((c.matmul_flops + c.mixing_flops) / 1e6, 1),
               fixed(c.matmul_flops / 1e6, 1), fixed(c.mixing_flops / 1e6, 1),
               std::string(action_name(line.row.action)), fact(line.row.data_dependent), fact(line.row.complementary),
               fact(line.row.reaches_zero), fact(line.row.channel_mixing)});
  }
  return table.text() +
         fmt::format("{} layers, {} inputs, {} outputs; FLOPs of a forward pass at T = {}, training 3x\n",
                     options.layers, options.inputs, options.outputs, options.length) +
         notes;
}

void write_row(JsonWriter& json, const Taxonomy& row) {
  json.member("action", action_name(row.action));
  json.member("data_dependent", row.data_dependent);
  json.member("complementary", row.complementary);
  json.member("reaches_zero", row.reaches_zero);
  json.member("channel_mixing", row.channel_mixing);
}

std::string as_json(const std::vector<Line>& lines, const Options& options) {
  JsonWriter json;
  json.begin_object();
  json.member("width", options.width).member("layers", options.layers).member("inputs", options.inputs);
  json.member("outputs", options.outputs).member("length", options.length);
  json.key("models").begin_array();
  for (const auto& line : lines) {
    json.begin_object().member("name", line.model);
    json.member("runs", line.counted && line.refused.empty());
    if (!line.refused.empty()) json.member("reason", line.refused);
    if (line.counted) {
      const Cost& c = line.cost;
      json.member("width", line.config.mixer.width).member("heads", line.config.mixer.heads);
      json.member("parameters", c.parameters).member("layer_parameters", c.layer_parameters);
      json.member("state_elements", c.state_elements);
      json.member("cache_elements_per_frame", c.cache_per_frame);
      json.member("flops_per_token", c.matmul_flops + c.mixing_flops);
      json.member("matmul_flops_per_token", c.matmul_flops).member("mixing_flops_per_token", c.mixing_flops);
      json.member("training_flops_per_token", c.training_flops());
      json.key("taxonomy").begin_object();
      write_row(json, line.row);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

struct Probed {
  std::string model;
  Taxonomy declared;
  Measured measured;
};

std::string as_text(const std::vector<Probed>& rows) {
  using Align = TextTable::Align;
  TextTable table({"model", "A acts", "smallest decay", "write-forget", "off-diagonal", "from data", "complementary",
                   "reaches 0", "mixes", "as declared"},
                  {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left, Align::left,
                   Align::left, Align::left, Align::left});
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
  JsonWriter json;
  json.begin_object().key("models").begin_array();
  for (const auto& [model, declared, m] : rows) {
    json.begin_object().member("name", model).member("as_declared", declared == m.row);
    json.member("smallest_decay", m.smallest_decay).member("write_forget_correlation", m.write_forget_correlation);
    json.member("off_diagonal_mass", m.off_diagonal_mass);
    json.key("declared").begin_object();
    write_row(json, declared);
    json.end_object().key("measured").begin_object();
    write_row(json, m.row);
    json.end_object().end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

Exit run_probe(const Options& options) {
  std::vector<Probed> rows;
  bool all = true;
  for (const auto& model : model_names()) {
    rows.push_back({model, declared_row(model), probe(model)});
    all &= rows.back().declared == rows.back().measured.row;
  }
  if (options.json.empty())
    print(as_text(rows));
  else
    deliver(options.json, as_json(rows));
  return all ? Exit::done : Exit::check_failed;
}

Exit run(const Options& options) {
  if (options.probe) return run_probe(options);
  std::vector<Line> lines;
  for (const auto& model : model_names()) lines.push_back(line_of(model, options));
  if (options.json.empty())
    print(as_text(lines, options));
  else
    deliver(options.json, as_json(lines, options));
  return Exit::done;
}

}  // namespace

void add_models(Program& program) {
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "models", "The models: parameters, state, FLOPs a token, and their place in the taxonomy",
      {"selectivbench models", "selectivbench models --width 1152 --json -", "selectivbench models --probe"},
      [options] { return run(*options); });
  arguments.integer("--width", options->width, 1, 65536, "Channels of a layer");
  arguments.integer("--layers", options->layers, 1, 1024, "Layers");
  arguments.integer("--inputs", options->inputs, 1, 1 << 24, "Input symbols");
  arguments.integer("--outputs", options->outputs, 1, 1 << 24, "Output classes");
  arguments.integer("--length", options->length, 1, 1 << 24, "Frames of a sequence, for the FLOPs of mixing");
  arguments.flag("--probe", options->probe, "Measure the taxonomy on built layers instead; exit 1 where it differs");
  arguments.text("--json", options->json, "FILE", "Write JSON there, - for standard output");
}

}  // namespace sb::cli
