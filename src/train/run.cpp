#include <ATen/Parallel.h>

#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/number.h"
#include "runs/schema.h"
#include "tasks/ceiling.h"
#include "train/network_predictor.h"
#include "train/trainer.h"

namespace sb {
namespace {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The state of one run while it is being worked on.
class Run {
 public:
  Run(PreparedRun& prepared, RunStore& store, const TrainHooks& hooks)
      : config_(prepared.config.values),
        resolved_(prepared.config),
        store_(store),
        hooks_(hooks),
        data_(prepared.data),
        trainer_(prepared.trainer) {}

  RunStatus work() {
    resume();
    while (true) {
      if (!evaluated_ && evaluation_due()) {
        if (!evaluate_periodically()) return stop();
        save();
      }
      if (done_ == config_.train.updates) break;
      if (asked_to_stop()) return stop();
      if (!one_update()) return diverged();
      if (config_.run.checkpoint_every > 0 && done_ % config_.run.checkpoint_every == 0) save();
    }
    try {
      store_.finish(final_result(), trainer_.weights(), metadata());
    } catch (const Stopped&) {
      return stop();
    }
    return RunStatus::done;
  }

 private:
  bool asked_to_stop() const { return hooks_.stop && hooks_.stop(); }

  bool evaluation_due() const {
    if (done_ == config_.train.updates) return true;
    return config_.eval.every > 0 && done_ > 0 && done_ % config_.eval.every == 0;
  }

  void report(const std::string& phase) {
    if (hooks_.progress) hooks_.progress({phase, done_, config_.train.updates, loss_, valid_});
  }

  std::map<std::string, std::string> metadata() const {
    return {{"adam_updates", std::to_string(done_)},
            {"evaluated", evaluated_ ? "1" : "0"},
            {"config", resolved_.canonical},
            {"model", config_.model.name}};
  }

  void resume() {
    std::vector<std::string> warnings;
    const auto checkpoint = store_.resume(warnings);
    if (hooks_.warning) {
      for (const auto& line : warnings) hooks_.warning(line);
    }
    if (!checkpoint) return;
    trainer_.restore(checkpoint->file);
    done_ = checkpoint->update;
    evaluated_ = checkpoint->file.metadata().at("evaluated") == "1";
    for (const MetricRow& row : store_.metrics()) {
      for (const auto& [name, value] : row.values) {
        if (row.phase == "valid" && name == "accuracy") valid_ = value;
        if (row.phase == "train" && name == "loss") loss_ = value;
      }
    }
  }

  void save() { store_.save(done_, trainer_.state(), metadata()); }

  RunStatus stop() {
    save();
    return RunStatus::stopped;
  }

  bool one_update() {
    if (!loader_) {
      loader_ = std::make_unique<Loader>(data_.maker, Split::train, config_.train.batch, done_, config_.train.updates,
                                         storage_type(config_.train));
    }
    const TensorBatch batch = loader_->next();
    const Trainer::Step step = trainer_.step(batch, done_);
    if (!step.finite) {
      divergence_ = trainer_.locate(batch, done_);
      return false;
    }
    loss_ = step.loss;
    store_.add({done_, "train", {{"loss", step.loss}, {"grad_norm", step.norm}, {"lr", step.lr}}});
    ++done_;
    evaluated_ = false;
    report("train");
    return true;
  }

  EvaluationRequest request(Split split, int64_t samples) const {
    EvaluationRequest out;
    out.split = split;
    out.samples = samples;
    out.batch = config_.eval.batch;
    out.chunk = config_.eval.chunk;
    out.padding_correct = config_.quirks.padding_correct;
    out.type = storage_type(config_.train);
    out.stop = hooks_.stop;
    return out;
  }

  Evaluation run_evaluation(const TaskConfig& task, const EvaluationRequest& request) {
    NetworkPredictor predictor(trainer_.network());
    return evaluate(predictor, data_.sampler, task, request);
  }

  bool evaluate_periodically() {
    report("valid");
    try {
      last_valid_ = run_evaluation(data_.task, request(data_.select, config_.eval.valid_samples));
    } catch (const Stopped&) {
      return false;
    }
    valid_ = last_valid_->elements.value();
    MetricRow row{done_, "valid", {{"accuracy", valid_}, {"loss", last_valid_->loss}}};
    if (data_.task.objective == Objective::predict) row.values.emplace_back("kl", last_valid_->kl);
    store_.add(row);
    store_.add_timing({done_, "valid", {{"wall", unix_seconds()}}});
    evaluated_ = true;
    return true;
  }

  Json ceiling_json(const TaskConfig& task, double accuracy, Json& out) const {
    if (config_.eval.ceiling_samples == 0) return out;  // none asked for
    CeilingRequest ask;
    ask.split = data_.test;
    ask.samples = static_cast<uint64_t>(config_.eval.ceiling_samples);
    ask.threads = at::get_num_threads();
    const Ceiling ceiling = exact_ceiling(data_.sampler, task, ask);
    out["ceiling"] = ceiling.accuracy;
    out["ceiling_stderr"] = ceiling.stderr_;
    if (ceiling.accuracy > 0) out["fraction_of_ceiling"] = accuracy / ceiling.accuracy;
    return out;
  }

  Json header(const char* status) const {
    const Automaton& automaton = data_.sampler->automaton();
    Json switches = Json::object();
    for (const auto& [key, value] : config_.model.switches) switches[key] = value;
    return {{"status", status},
            {"model", config_.model.name},
            {"task", config_.task.task.number},
            {"objective", to_string(config_.task.task.objective)},
            {"seed", config_.run.seed},
            {"grammar_seed", config_.grammar.build.seed},
            {"train_seed", config_.train.seed},
            {"width", config_.model.width},
            {"layers", config_.model.layers},
            {"switches", switches},
            {"params", trainer_.network().parameters().count()},
            {"lr", config_.train.lr},
            {"precision", to_string(config_.train.precision)},
            {"device", to_string(config_.train.device)},
            {"quirks", quirk_names(config_.quirks)},
            {"label", config_.run.label},
            {"states", automaton.states()},
            {"chance", 1.0 / static_cast<double>(trainer_.network().config().outputs)},
            {"updates", done_},
            {"samples_seen", done_ * config_.train.batch}};
  }

  Json final_result() {
    Json out = header("done");
    if (!last_valid_) last_valid_ = run_evaluation(data_.task, request(data_.select, config_.eval.valid_samples));
    report("test");
    EvaluationRequest ask = request(data_.test, config_.eval.test_samples);
    ask.breakdowns = data_.task.objective == Objective::state;
    const Evaluation test = run_evaluation(data_.task, ask);
    out["test"] = evaluation_json(test, data_.task.objective, true);
    out["valid"] = evaluation_json(*last_valid_, data_.task.objective, false);
    if (data_.task.objective == Objective::state) ceiling_json(data_.task, test.elements.value(), out);
    if (!config_.eval.gaps.empty()) out["grid"] = grid();
    return out;
  }

  Json grid() {
    Json points = Json::array();
    for (const int gap : config_.eval.gaps) {
      report("grid");
      const TaskConfig task = with_test_gap(data_.task, gap);
      const Evaluation result = run_evaluation(task, request(data_.test, config_.eval.grid_samples));
      Json point = {{"gap", gap}};
      point.update(evaluation_json(result, task.objective, false));
      if (task.objective == Objective::state) ceiling_json(task, result.elements.value(), point);
      points.push_back(std::move(point));
    }
    return points;
  }

  RunStatus diverged() {
    Json out = header("diverged");
    out["diverged"] = {{"update", divergence_.update}, {"layer", divergence_.layer}, {"tensor", divergence_.tensor}};
    store_.finish(out, {});
    return RunStatus::diverged;
  }

  const RunConfig& config_;
  const ResolvedConfig& resolved_;
  RunStore& store_;
  const TrainHooks& hooks_;
  const RunData& data_;
  Trainer& trainer_;
  std::unique_ptr<Loader> loader_;
  std::optional<Evaluation> last_valid_;
  Divergence divergence_;
  int64_t done_ = 0;
  bool evaluated_ = false;
  double loss_ = 0, valid_ = -1;
};

}  // namespace

PreparedRun::PreparedRun(const ResolvedConfig& resolved)
    : config(resolved), data(make_data(config.values)), trainer(config.values, data) {}

RunStatus train(PreparedRun& run, RunStore& store, const TrainHooks& hooks) {
  return Run(run, store, hooks).work();
}

}  // namespace sb
