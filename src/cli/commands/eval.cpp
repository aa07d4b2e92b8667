#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/training.h"
#include "store/checkpoint.h"
#include "store/evaluation_file.h"
#include "store/open_run.h"
#include "store/result_parts.h"
#include "store/run_check.h"
#include "store/seal.h"
#include "train/gates.h"
#include "train/gpu.h"
#include "train/network_predictor.h"
#include "train/provenance.h"
#include "train/trainer.h"

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

// Without a GPU, a GPU run is evaluated on the CPU in fp32; a note reports this.
TrainSection as_here(TrainSection train) {
  if (train.device == DeviceKind::cuda && !has_gpu()) {
    train.device = DeviceKind::cpu;
    if (train.precision != Precision::fp64) train.precision = Precision::fp32;
  }
  return train;
}

class Evaluator {
 public:
  Evaluator(const Options& options, const OpenRun& run)
      : options_(options),
        run_(run),
        config_(run.config.values),
        data_(make_data(config_)),
        train_(as_here(config_.train)),
        type_(storage_type(train_)),
        network_(network_config(config_, data_.task->shape()), type_, device_of(train_),
                 train_.precision == Precision::amp),
        split_(parse_split(options.split)) {
    if (split_ == Split::reference && !find_task(config_.task.kind).has_reference_split)
      throw bad_input("eval --split",
                      "expected train, valid or test with task.kind = " + config_.task.kind + ", got reference");
    data_.task->check_split(split_);
    out_.run_id = run.config.run_id;
    out_.model = config_.model.name;
    out_.task = config_.task.task.number;
    out_.objective = data_.task->objective();
    out_.split = options.split;
    if (options.samples > 0) out_.samples = static_cast<int64_t>(options.samples);
    out_.at = points_of(options, config_);
    out_.with_gates = options.gates;
    if (train_.device != config_.train.device || train_.precision != config_.train.precision) {
      out_.device = to_string(train_.device);
      out_.precision = to_string(train_.precision);
    }
  }

  // One line if device or precision differ from those of the run; else empty.
  std::string computed_note() const {
    if (!out_.device) return "";
    return "note: the run was made with device " + std::string(to_string(config_.train.device)) + " in " +
           to_string(config_.train.precision) + ", this is computed with device " + *out_.device + " in " +
           *out_.precision + " and rounds otherwise: " + gpu_facts().missing;
  }

  void load_weights() {
    if (!options_.weights.empty()) {
      out_.weights = "file";
      std::string content = read_file(options_.weights, kMaxWeightsBytes);
      // Weights of other programs have no seal.
      if (find_seal(content) != std::string::npos && !is_sealed(content) && !was_sealed(content)) {
        throw bad_input("eval --weights", "SHA-256 mismatch, " + printable(options_.weights, 400));
      }
      out_.weights_sha256 = sha256_hex(content);
      const auto own = run_.result ? run_.result->files : std::map<std::string, std::string>();
      const auto final_weights = own.find("final.safetensors");
      if (final_weights != own.end() && final_weights->second == out_.weights_sha256) out_.weights = "final";
      const Safetensors file = Safetensors::parse(std::move(content), options_.weights);
      expect_fit(file);
      network_.load(file);
    } else if (options_.checkpoint) {
      out_.weights = "checkpoint";
      load_checkpoint();
    } else {
      out_.weights = "final";
      expect_final_weights();
      network_.load(open_weights(run_));
      out_.weights_sha256 = run_.result->files.at("final.safetensors");
    }
  }

  const SavedEvaluation& request() const { return out_; }

  SavedEvaluation run() {
    for (const auto& [task, at] : tasks()) {
      out_.points.push_back(evaluate_at(*task, at));
    }
    if (options_.gates) {
      for (const auto& [task, at] : tasks()) {
        GateReport report = record_gates(network_, *task, gate_request(*task));
        out_.gates.push_back({at, std::move(report.figures), std::move(report.decays)});
      }
    }
    out_.made = provenance();
    if (train_.device == DeviceKind::cuda) out_.made->device = gpu_facts().name;
    out_.made->precision = to_string(train_.precision);
    out_.made->finished = utc_now();
    return out_;
  }

 private:
  // Weights from elsewhere: one line for each tensor that does not fit, before anything is loaded.
  void expect_fit(const Safetensors& file) const {
    constexpr size_t most_lines = 20;
    const std::vector<std::string> lines = network_.misfits(file);
    if (lines.empty()) return;
    for (size_t i = 0; i < std::min(lines.size(), most_lines); ++i) complain(lines[i]);
    if (lines.size() > most_lines) complain("and " + std::to_string(lines.size() - most_lines) + " more");
    throw bad_input("eval --weights", "expected the run's " + std::to_string(network_.parameters().all().size()) +
                                          " tensors, " + std::to_string(lines.size()) + " do not fit, " +
                                          printable(file.name(), 400));
  }

  // Loads the newest intact checkpoint and records the digest of its bytes.
  void load_checkpoint() {
    for (const StoredCheckpoint& stored : list_checkpoints(run_.folder)) {
      try {
        std::string content = read_file(stored.path, kMaxWeightsBytes);
        std::string digest = sha256_hex(content);
        const Checkpoint checkpoint = parse_checkpoint(std::move(content), stored, out_.run_id, {});
        network_.load(checkpoint.file);
        out_.update = checkpoint.update;
        out_.weights_sha256 = std::move(digest);
        return;
      } catch (const Error& error) {
        complain("warning: " + std::string(error.what()) + "; passed over");
      }
    }
    throw bad_input("eval --checkpoint", "expected a checkpoint, got none, " + shown_folder());
  }

  // Throws bad_input with the remedy if a finished run lacks its weights.
  void expect_final_weights() const {
    std::error_code failed;
    if (!run_.result || run_.result->status != "done") return;
    if (std::filesystem::exists(run_.folder + "/final.safetensors", failed) || failed) return;
    const bool kept = !list_checkpoints(run_.folder).empty();
    const std::string again = "to make it again, remove result.json and run `train`";
    throw bad_input("eval", printable(run_.folder + "/final.safetensors", 400) +
                                ", expected the weights of the finished run, got no file; " +
                                (kept ? "`eval --checkpoint` tests the newest checkpoint, " : "") + again);
  }

  std::string shown_folder() const { return printable(run_.folder, 400); }

  std::vector<std::pair<std::shared_ptr<const Task>, std::optional<int>>> tasks() const {
    if (out_.at.empty()) return {{data_.task, std::nullopt}};
    std::vector<std::pair<std::shared_ptr<const Task>, std::optional<int>>> all;
    for (const int at : out_.at) all.emplace_back(data_.task->at(split_, at), at);
    return all;
  }

  Measurement evaluate_at(const Task& task, std::optional<int> at) {
    // Without a grid, eval.grid_samples has no effect on the run, so its default is used.
    const bool grid = !run_.config.keys_without_effect.contains("eval.grid_samples");
    const int64_t usual = at                          ? (grid ? config_.eval : EvalSection()).grid_samples
                          : options_.split == "valid" ? config_.eval.valid_samples
                                                      : config_.eval.test_samples;
    EvaluationRequest request;
    request.split = split_;
    request.samples = out_.samples.value_or(usual);
    request.batch = config_.eval.batch;
    request.chunk = config_.eval.chunk;
    request.padding_correct = config_.quirks.padding_correct;
    request.breakdowns = !at && !task.has_law();
    request.threads = at::get_num_threads();
    NetworkPredictor predictor(network_);
    std::optional<TestPoint> point;
    if (at) point = {find_task(config_.task.kind).axis->name, *at};
    Measurement out = measurement(evaluate(predictor, task, request), split_, task, point, !at);
    // As many samples as in the run's own result, unless --samples asks for fewer.
    const int64_t most = config_.eval.ceiling_samples;
    out.ceiling = measured_ceiling(task, split_, std::min(out_.samples.value_or(most), most), request.threads);
    return out;
  }

  GateRequest gate_request(const Task& task) const {
    GateRequest ask;
    ask.split = split_;
    ask.samples = out_.samples.value_or(affordable_gate_samples(network_, task, split_, 50));
    ask.batch = config_.eval.batch;
    ask.chunk = config_.eval.chunk;
    ask.type = type_;
    return ask;
  }

  const Options& options_;
  const OpenRun& run_;
  const RunConfig& config_;
  RunData data_;
  TrainSection train_;  // where and how the network is computed here
  at::ScalarType type_;
  Network network_;
  Split split_;
  SavedEvaluation out_;
};

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
    throw bad_input("eval", "expected --checkpoint or --weights, got both");
  }
  std::error_code failed;
  if (!std::filesystem::exists(options.folder + "/config.json", failed))
    throw bad_input("eval RUNDIR",
                    "expected the folder of one run, got '" + printable(options.folder, 400) +
                        (failed ? "', which cannot be read: " + failed.message() : "', which has no config.json"));
  const OpenRun opened = open_run(options.folder, model_rules());
  use_threads(options.threads);
  Evaluator evaluator(options, opened);
  evaluator.load_weights();
  if (const std::string line = evaluator.computed_note(); !line.empty()) complain(line);
  if (options.save) {
    const std::string fault = evaluation_fault(options.folder, evaluator.request());
    if (!fault.empty()) complain("warning: " + fault + "; replaced by what is measured now");
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
