#include "train/stored_run_evaluator.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/checkpoint.h"
#include "store/result_parts.h"
#include "store/seal.h"
#include "train/gpu.h"
#include "train/network_predictor.h"
#include "train/provenance.h"
#include "train/trainer.h"

namespace sb {
namespace {

// Without a GPU, a GPU run is evaluated on the CPU in fp32; a note reports this.
TrainSection as_here(TrainSection train) {
  if (train.device == DeviceKind::cuda && !has_gpu()) {
    train.device = DeviceKind::cpu;
    if (train.precision != Precision::fp64) train.precision = Precision::fp32;
  }
  return train;
}

}  // namespace

StoredRunEvaluator::StoredRunEvaluator(StoredRunRequest request, const OpenRun& run)
    : request_(std::move(request)),
      run_(run),
      config_(run.config.values),
      data_(make_data(config_)),
      train_(as_here(config_.train)),
      type_(storage_type(train_)),
      network_(network_config(config_, data_.task->shape()), type_, device_of(train_),
               train_.precision == Precision::amp) {
  if (request_.split == Split::reference && !find_task(config_.task.kind).has_reference_split)
    throw bad_input("eval --split",
                    "expected train, valid or test with task.kind = " + config_.task.kind + ", got reference");
  data_.task->check_split(request_.split);
  out_.run_id = run.config.run_id;
  out_.model = config_.model.name;
  out_.task = config_.task.task.number;
  out_.objective = data_.task->objective();
  out_.split = to_string(request_.split);
  if (request_.samples > 0) out_.samples = request_.samples;
  out_.at = request_.points;
  out_.with_gates = request_.gates;
  if (train_.device != config_.train.device || train_.precision != config_.train.precision) {
    out_.device = to_string(train_.device);
    out_.precision = to_string(train_.precision);
  }
}

std::string StoredRunEvaluator::computed_note() const {
  if (!out_.device) return "";
  return "note: the run was made with device " + std::string(to_string(config_.train.device)) + " in " +
         to_string(config_.train.precision) + ", this is computed with device " + *out_.device + " in " +
         *out_.precision + " and rounds otherwise: " + gpu_facts().missing;
}

void StoredRunEvaluator::load_weights(const std::function<void(const std::string&)>& warning) {
  if (!request_.weights.empty()) {
    load_file(warning);
  } else if (request_.checkpoint) {
    load_checkpoint(warning);
  } else {
    out_.weights = "final";
    expect_final_weights();
    network_.load(open_weights(run_));
    out_.weights_sha256 = run_.result->files.at("final.safetensors");
  }
}

void StoredRunEvaluator::load_file(const std::function<void(const std::string&)>& warning) {
  out_.weights = "file";
  std::string content = read_file(request_.weights, kMaxWeightsBytes);
  // Weights of other programs have no seal.
  if (find_seal(content) != std::string::npos && !is_sealed(content)) {
    throw bad_input("eval --weights", "SHA-256 mismatch, " + printable(request_.weights, 400));
  }
  out_.weights_sha256 = sha256_hex(content);
  const auto own = run_.result ? run_.result->files : std::map<std::string, std::string>();
  const auto final_weights = own.find("final.safetensors");
  if (final_weights != own.end() && final_weights->second == out_.weights_sha256) out_.weights = "final";
  const Safetensors file = Safetensors::parse(std::move(content), request_.weights);
  expect_fit(file, warning);
  network_.load(file);
}

// Loads the newest intact checkpoint and records the digest of its bytes.
void StoredRunEvaluator::load_checkpoint(const std::function<void(const std::string&)>& warning) {
  out_.weights = "checkpoint";
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
      warning("warning: " + std::string(error.what()) + "; passed over");
    }
  }
  throw bad_input("eval --checkpoint", "expected a checkpoint, got none, " + printable(run_.folder, 400));
}

// Weights from elsewhere: one line for each tensor that does not fit, before anything is loaded.
void StoredRunEvaluator::expect_fit(const Safetensors& file,
                                    const std::function<void(const std::string&)>& warning) const {
  constexpr size_t most_lines = 20;
  const std::vector<std::string> lines = network_.misfits(file);
  if (lines.empty()) return;
  for (size_t i = 0; i < std::min(lines.size(), most_lines); ++i) warning(lines[i]);
  if (lines.size() > most_lines) warning("and " + std::to_string(lines.size() - most_lines) + " more");
  throw bad_input("eval --weights", "expected the run's " + std::to_string(network_.parameters().all().size()) +
                                        " tensors, " + std::to_string(lines.size()) + " do not fit, " +
                                        printable(file.name(), 400));
}

// Throws bad_input with the remedy if a finished run lacks its weights.
void StoredRunEvaluator::expect_final_weights() const {
  std::error_code failed;
  if (!run_.result || run_.result->status != "done") return;
  if (std::filesystem::exists(run_.folder + "/final.safetensors", failed) || failed) return;
  const bool kept = !list_checkpoints(run_.folder).empty();
  const std::string again = "to make it again, remove result.json and run `train`";
  throw bad_input("eval", printable(run_.folder + "/final.safetensors", 400) +
                              ", expected the weights of the finished run, got no file; " +
                              (kept ? "`eval --checkpoint` tests the newest checkpoint, " : "") + again);
}

SavedEvaluation StoredRunEvaluator::run() {
  for (const auto& [task, at] : tasks()) {
    out_.points.push_back(evaluate_at(*task, at));
  }
  if (request_.gates) {
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

std::vector<std::pair<std::shared_ptr<const Task>, std::optional<int>>> StoredRunEvaluator::tasks() const {
  if (out_.at.empty()) return {{data_.task, std::nullopt}};
  std::vector<std::pair<std::shared_ptr<const Task>, std::optional<int>>> all;
  for (const int at : out_.at) all.emplace_back(data_.task->at(request_.split, at), at);
  return all;
}

Measurement StoredRunEvaluator::evaluate_at(const Task& task, std::optional<int> at) {
  // Without a grid, eval.grid_samples has no effect on the run, so its default is used.
  const bool grid = !run_.config.keys_without_effect.contains("eval.grid_samples");
  const int64_t usual = at                               ? (grid ? config_.eval : EvalSection()).grid_samples
                        : request_.split == Split::valid ? config_.eval.valid_samples
                                                         : config_.eval.test_samples;
  EvaluationRequest request;
  request.split = request_.split;
  request.samples = out_.samples.value_or(usual);
  request.batch = config_.eval.batch;
  request.chunk = config_.eval.chunk;
  request.padding_correct = config_.quirks.padding_correct;
  request.breakdowns = !at && !task.has_law();
  request.threads = at::get_num_threads();
  NetworkPredictor predictor(network_);
  std::optional<TestPoint> point;
  if (at) point = {find_task(config_.task.kind).axis->name, *at};
  Measurement out = measurement(evaluate(predictor, task, request), request_.split, task, point, !at);
  // As many samples as in the run's own result, unless --samples asks for fewer.
  const int64_t most = config_.eval.ceiling_samples;
  out.ceiling = measured_ceiling(task, request_.split, std::min(out_.samples.value_or(most), most), request.threads);
  return out;
}

GateRequest StoredRunEvaluator::gate_request(const Task& task) const {
  GateRequest ask;
  ask.split = request_.split;
  ask.samples = out_.samples.value_or(affordable_gate_samples(network_, task, request_.split, 50));
  ask.batch = config_.eval.batch;
  ask.chunk = config_.eval.chunk;
  ask.type = type_;
  return ask;
}

}  // namespace sb
