#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/training.h"
#include "store/evaluation_file.h"
#include "store/open_run.h"
#include "store/result_parts.h"
#include "train/stored_run_evaluator.h"

namespace sb::cli {
namespace eval_command {

struct Options {
  std::string folder, split = "test", json, weights;
  std::vector<std::string> gaps, at;
  bool gates = false, checkpoint = false, save = false;
  uint64_t samples = 0;
  int threads = 0;
};

// Values of the task's test axis.
std::vector<int> points_of(const Options& options, const RunConfig& config) {
  const auto& axis = find_task(config.task.kind).axis;
  if (!options.gaps.empty() && config.task.kind != kGapsKind)
    throw bad_input("eval --gap", "has no effect with task.kind = " + config.task.kind +
                                      (axis ? "; --at tests at values of " + axis->name : ""));
  const std::string where = options.at.empty() ? "eval --gap" : "eval --at";
  std::vector<std::string> texts = options.gaps;
  texts.insert(texts.end(), options.at.begin(), options.at.end());
  std::vector<int> out;
  for (const auto& text : texts) {
    if (!axis) throw bad_input(where, "the kind of task " + config.task.kind + " has no test axis");
    const auto value = parse_unsigned(text);
    if (!value || *value < static_cast<uint64_t>(axis->least) || *value > static_cast<uint64_t>(axis->most)) {
      throw bad_input(where, "expected " + std::to_string(axis->least) + ".." + std::to_string(axis->most) + ", got " +
                                 printable(text));
    }
    if (std::find(out.begin(), out.end(), static_cast<int>(*value)) != out.end()) {
      throw bad_input(where, "expected different values, got " + printable(text) + " twice");
    }
    out.push_back(static_cast<int>(*value));
  }
  return out;
}

StoredRunRequest request_of(const Options& options, const RunConfig& config) {
  return {parse_split(options.split),
          points_of(options, config),
          static_cast<int64_t>(options.samples),
          options.gates,
          options.checkpoint,
          options.weights};
}

std::string line_of(const std::string& name, const Measurement& m) {
  return name + ": " + accuracy_text(m, true) + "\n";
}

std::string bins_text(const std::vector<AccuracyBin>& bins, const std::string& title, int decimals) {
  if (bins.empty()) return {};
  TextTable table({title, "accuracy", "count"});
  for (const auto& bin : bins) {
    table.row({fixed(bin.from, decimals), fixed(bin.accuracy, 4), grouped(static_cast<uint64_t>(bin.count))});
  }
  return "\n" + table.text();
}

std::string confusion_text(const std::vector<SymbolConfusion>& symbols) {
  SymbolConfusion all;
  for (const auto& s : symbols) {
    all.right += s.right;
    all.same_symbol += s.same_symbol;
    all.other_symbol += s.other_symbol;
  }
  const auto total = static_cast<double>(all.right + all.same_symbol + all.other_symbol);
  if (total == 0) return {};
  return "\nright state " + fixed(static_cast<double>(all.right) / total, 4) + ", right symbol and wrong state " +
         fixed(static_cast<double>(all.same_symbol) / total, 4) + ", wrong symbol " +
         fixed(static_cast<double>(all.other_symbol) / total, 4) + "\n";
}

std::string gates_text(const std::string& name, const GatePoint& point) {
  if (point.figures.gates.empty()) return "\n" + name + ": this model has no gates\n";
  TextTable table({"layer", "gate", "mean on data", "mean in gaps"}, "rlrr");
  const auto mean = [](const GateCounts& c) { return c.total == 0 ? std::string("-") : fixed(c.mean, 4); };
  for (const auto& g : point.figures.gates) {
    table.row({std::to_string(g.layer), printable(g.gate), mean(g.data), mean(g.gap)});
  }
  std::string out = "\n" + name + ":\n" + table.text();
  const auto& [gates, write, forget] = point.figures;
  if (write) out += "write selectivity " + fixed(*write, 4) + "\n";
  if (forget) out += "forget selectivity " + fixed(*forget, 4) + "\n";
  return out;
}

std::string as_text(const SavedEvaluation& e, const Options& options, const RunConfig& config) {
  std::string out;
  if (e.weights == "checkpoint") out += "weights: checkpoint after " + std::to_string(*e.update) + " updates\n";
  if (e.weights == "file") out += "weights: " + printable(options.weights, 400) + ", not the run's own\n";
  if (e.weights == "final" && !options.weights.empty())
    out += "weights: " + printable(options.weights, 400) + ", the run's own final.safetensors\n";
  const std::string task = "task " + task_name(config.task) + ", ";
  const auto& axis = find_task(config.task.kind).axis;
  const auto name = [&](const std::string& split, const std::optional<int>& at) {
    const std::string shown = split == e.split ? split : e.split + " (" + split + " samples)";
    return task + shown + (at ? ", " + axis->name + " " + std::to_string(*at) : "");
  };
  for (const auto& point : e.points) {
    out += line_of(name(point.split, point.at), point);
    out += confusion_text(point.confusion) + bins_text(point.by_gap_frame, "gap frame", 0) +
           bins_text(point.by_since_certain, "since certain", 0) + bins_text(point.by_entropy, "entropy from", 2);
  }
  for (const auto& point : e.gates) out += gates_text(name(e.points.front().split, point.at) + ", gates", point);
  return out;
}

Exit evaluated(const Options& options) {
  if (options.checkpoint && !options.weights.empty()) {
    throw bad_input("eval", "--checkpoint cannot be combined with --weights");
  }
  std::error_code failed;
  if (!std::filesystem::exists(options.folder + "/config.json", failed))
    throw bad_input("eval RUNDIR",
                    "expected the folder of one run, got '" + printable(options.folder, 400) +
                        (failed ? "', which cannot be read: " + failed.message() : "', which has no config.json"));
  const OpenRun opened = open_run(options.folder, model_rules());
  use_threads(options.threads);
  StoredRunEvaluator evaluator(request_of(options, opened.config.values), opened);
  evaluator.load_weights([](const std::string& line) { complain(line); });
  if (const std::string line = evaluator.computed_note(); !line.empty()) complain(line);
  if (options.save) {
    const std::string fault = evaluation_fault(options.folder, evaluator.request());
    if (!fault.empty()) complain("warning: " + fault + "; replaced by the new measurement");
  }
  const SavedEvaluation found = evaluator.run();
  deliver_both(options.json, evaluation_text(found), as_text(found, options, opened.config.values));
  if (options.save) {
    const std::string path = save_evaluation(options.folder, found);
    if (options.json != "-") print("saved: " + printable(path, 400) + "\n");
  }
  return Exit::done;
}

Exit run(const Options& options) {
  try {
    return evaluated(options);
  } catch (const c10::OutOfMemoryError&) {
    throw bad_input("eval",
                    "the evaluation does not fit into the GPU's free memory (`nvidia-smi` lists the processes that "
                    "use it; set CUDA_VISIBLE_DEVICES= to evaluate on the CPU)");
  }
}

}  // namespace eval_command

void add_eval(Program& program) {
  using namespace eval_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("eval", "Test a trained model on other splits or gap lengths, or record its gates",
                      {"selectivbench eval runs/0123456789abcdef --gap 10 --gap 100",
                       "selectivbench eval runs/0123456789abcdef --gates --json gates.json",
                       "selectivbench eval runs/0123456789abcdef --weights elsewhere.safetensors --save"},
                      [options] { return run(*options); });
  arguments.positional("RUNDIR", options->folder, true, "Folder of the run");
  arguments.texts("--gap", options->gaps, "N",
                  "Test with gaps of N frames, on the samples of --split; can be repeated");
  arguments.texts("--at", options->at, "N",
                  "Test at this value of the task's test axis (`config keys` lists the axes); can be repeated");
  arguments.choice("--split", options->split, {"train", "valid", "test", "reference"}, "Split to test on");
  arguments.integer("--samples", options->samples, 0, 100'000'000, "Number of samples; 0: that of the run's config");
  arguments.flag("--gates", options->gates, "Record decay, write strength and step size, on data frames and in gaps");
  arguments.text("--weights", options->weights, "FILE",
                 "Use these weights (safetensors with the run's tensor names and shapes)");
  arguments.flag("--checkpoint", options->checkpoint, "Use the newest checkpoint instead of the final weights");
  arguments.flag("--save", options->save, "Save the result in the run's folder, where `table` finds it");
  arguments.text("--json", options->json, "FILE", "Write the result as JSON, - for standard output");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
