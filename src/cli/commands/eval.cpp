#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/stop.h"
#include "cli/training.h"
#include "runs/checkpoint.h"
#include "tasks/ceiling.h"
#include "train/gates.h"
#include "train/network_predictor.h"

namespace sb::cli {
namespace {

struct Options {
  std::string folder, split = "test", json;
  std::vector<std::string> gaps;
  bool gates = false;
  uint64_t samples = 0;
  int threads = 0;
};

// The weights of a finished run, or of its newest whole checkpoint.
Safetensors weights_of(const std::string& folder, const std::string& run_id) {
  const std::string final = folder + "/final.safetensors";
  if (std::filesystem::exists(final)) return load_sealed_safetensors(final);
  std::vector<std::string> warnings;
  auto checkpoint = load_newest_checkpoint(folder, run_id, warnings);
  for (const auto& line : warnings) complain("warning: " + line);
  if (!checkpoint) throw bad_input("eval", "expected final.safetensors or a checkpoint, got neither, " + folder);
  return std::move(checkpoint->file);
}

std::vector<int> gap_lengths(const std::vector<std::string>& texts) {
  std::vector<int> out;
  for (const auto& text : texts) {
    const auto value = parse_unsigned(text);
    if (!value || *value > kMaxGap) {
      throw bad_input("eval --gap", "expected 0.." + std::to_string(kMaxGap) + ", got " + printable(text));
    }
    out.push_back(static_cast<int>(*value));
  }
  return out;
}

class Evaluator {
 public:
  Evaluator(const Options& options, const RunConfig& config)
      : options_(options),
        config_(config),
        data_(make_data(config)),
        type_(storage_type(config.train)),
        network_(network_config(config, data_.sampler->automaton()), type_),
        split_(parse_split(options.split)) {}

  Network& network() { return network_; }

  Json evaluate_at(const TaskConfig& task, int64_t default_samples, bool breakdowns) {
    EvaluationRequest request;
    request.split = split_;
    request.samples = options_.samples > 0 ? static_cast<int64_t>(options_.samples) : default_samples;
    request.batch = config_.eval.batch;
    request.chunk = config_.eval.chunk;
    request.padding_correct = config_.quirks.padding_correct;
    request.breakdowns = breakdowns && task.objective == Objective::state;
    request.type = type_;
    request.stop = [] { return stop_requested(); };
    NetworkPredictor predictor(network_);
    Evaluation result;
    try {
      result = evaluate(predictor, data_.sampler, task, request);
    } catch (const Stopped&) {
      end_if_stopped("eval");
    }
    Json out = evaluation_json(result, task.objective, breakdowns);
    if (task.objective == Objective::state) {
      CeilingRequest ask;
      ask.split = split_;
      ask.samples = static_cast<uint64_t>(std::min<int64_t>(request.samples, config_.eval.ceiling_samples));
      const Ceiling ceiling = exact_ceiling(data_.sampler, task, ask);
      out["ceiling"] = ceiling.accuracy;
      if (ceiling.accuracy > 0) out["fraction_of_ceiling"] = result.elements.value() / ceiling.accuracy;
    }
    return out;
  }

  Json run() {
    Json out = {{"split", options_.split}, {"model", config_.model.name}, {"task", config_.task.task.number}};
    const std::vector<int> gaps = gap_lengths(options_.gaps);
    if (gaps.empty()) {
      out.update(evaluate_at(data_.task,
                             split_ == Split::valid ? config_.eval.valid_samples : config_.eval.test_samples, true));
    } else {
      Json points = Json::array();
      for (const int gap : gaps) {
        Json point = {{"gap", gap}};
        point.update(evaluate_at(with_test_gap(data_.task, gap), config_.eval.grid_samples, false));
        points.push_back(std::move(point));
      }
      out["grid"] = std::move(points);
    }
    if (options_.gates) {
      const int64_t samples = options_.samples > 0 ? static_cast<int64_t>(options_.samples) : 50;
      out["gates"] = gates_json(record_gates(network_, data_, split_, samples, config_.eval.batch, type_));
    }
    return out;
  }

 private:
  const Options& options_;
  const RunConfig& config_;
  RunData data_;
  at::ScalarType type_;
  Network network_;
  Split split_;
};

std::string line_of(const std::string& name, const Json& j) {
  std::string out = name + "accuracy " + fixed(j.at("accuracy").get<double>(), 4) + " ± " +
                    fixed(j.at("stderr").get<double>(), 4) + ", loss " + fixed(j.at("loss").get<double>(), 4);
  if (j.contains("kl")) out += ", KL " + fixed(j.at("kl").get<double>(), 4);
  if (j.contains("ceiling")) out += ", ceiling " + fixed(j.at("ceiling").get<double>(), 4);
  return out + "\n";
}

std::string bins_text(const Json& j, const char* key, const std::string& title) {
  if (!j.contains(key) || j.at(key).empty()) return {};
  TextTable table({title, "accuracy", "count"});
  for (const auto& bin : j.at(key)) {
    table.row({shortest(bin.at("from").get<double>()), fixed(bin.at("accuracy").get<double>(), 4),
               grouped(bin.at("count").get<uint64_t>())});
  }
  return "\n" + table.text();
}

std::string gates_text(const Json& gates) {
  TextTable table({"layer", "gate", "mean on data", "mean in gaps"},
                  {TextTable::Align::right, TextTable::Align::left, TextTable::Align::right, TextTable::Align::right});
  for (const auto& g : gates.at("gates")) {
    table.row({g.at("layer").dump(), g.at("gate").get<std::string>(), fixed(g.at("data").at("mean").get<double>(), 4),
               fixed(g.at("gap").at("mean").get<double>(), 4)});
  }
  std::string out = "\n" + table.text();
  for (const auto& [name, value] : gates.at("selectivity").items()) {
    out += name + " selectivity " + fixed(value.get<double>(), 4) + "\n";
  }
  return out;
}

std::string as_text(const Json& j) {
  std::string out;
  if (j.contains("grid")) {
    for (const auto& point : j.at("grid")) out += line_of("gap " + point.at("gap").dump() + ": ", point);
  } else {
    out = line_of(j.at("split").get<std::string>() + ": ", j);
    out += bins_text(j, "by_gap_frame", "gap frame");
    out += bins_text(j, "by_since_certain", "since certain");
    out += bins_text(j, "by_entropy", "entropy from");
  }
  if (j.contains("gates")) out += gates_text(j.at("gates"));
  return out;
}

Exit run(const Options& options) {
  const ResolvedConfig config = resolve_config(options.folder + "/config.toml", {}, model_rules());
  use_threads(options.threads);
  Evaluator evaluator(options, config.values);
  evaluator.network().load(weights_of(options.folder, config.run_id));
  Json out = {{"run_id", config.run_id}};
  out.update(evaluator.run());
  if (!options.json.empty()) deliver(options.json, out.dump(2) + "\n");
  if (options.json != "-") print(as_text(out));
  return Exit::done;
}

}  // namespace

void add_eval(Program& program) {
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("eval", "Test a trained model again: other splits, other gap lengths, its gates",
                      {"selectivbench eval runs/0123456789abcdef --gap 10 --gap 100",
                       "selectivbench eval runs/0123456789abcdef --gates --json gates.json"},
                      [options] { return run(*options); });
  arguments.positional("RUNDIR", options->folder, true, "Folder of the run");
  arguments.texts("--gap", options->gaps, "N", "Test with N gap frames after every element; may be given many times");
  arguments.choice("--split", options->split, {"train", "valid", "test", "reference"}, "Which samples");
  arguments.integer("--samples", options->samples, 0, 100'000'000, "How many samples, 0: as the run's config says");
  arguments.flag("--gates", options->gates, "Record decay, write strength and step size on data and in gaps");
  arguments.text("--json", options->json, "FILE", "Write the result as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
