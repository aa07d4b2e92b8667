#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <cmath>
#include <deque>

#include "base/error.h"
#include "base/number.h"
#include "grammar/figures.h"
#include "runs/measure.h"
#include "runs/schema.h"
#include "train/gates.h"
#include "train/gpu.h"
#include "train/network_predictor.h"
#include "train/provenance.h"
#include "train/rules.h"
#include "train/samples.h"
#include "train/trainer.h"
#include "train/writer.h"

namespace sb {
namespace {

// Since 1970, to the millisecond.
double unix_seconds() {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch());
  return static_cast<double>(now.count()) / 1000;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

// Work of all processes on the run, as far as checkpoints have kept it.
struct Spent {
  double train_seconds = 0, total_seconds = 0;
  double frames = 0;  // of training

  std::map<std::string, std::string> metadata() const {
    return {{"spent_train_seconds", shortest(train_seconds)},
            {"spent_total_seconds", shortest(total_seconds)},
            {"spent_frames", shortest(frames)}};
  }
  static Spent from(const std::map<std::string, std::string>& metadata) {
    const auto field = [&](const char* key) {
      const auto found = metadata.find(key);
      const auto value = found == metadata.end() ? std::nullopt : parse_finite(found->second);
      return value && *value >= 0 && *value < 1e12 ? *value : 0;
    };
    return {field("spent_train_seconds"), field("spent_total_seconds"), field("spent_frames")};
  }
};

// An update that was handed over.
struct UnderWay {
  StepHandle handle;
  int64_t frames = 0;
};

// The state of one run while it is being worked on.
class Run {
 public:
  Run(PreparedRun& prepared, RunStore& store, const TrainHooks& hooks)
      : config_(prepared.config.values),
        resolved_(prepared.config),
        store_(store),
        hooks_(hooks),
        data_(prepared.data),
        trainer_(prepared.trainer),
        executor_(*prepared.executor),
        order_{config_.train.order_seed, static_cast<uint64_t>(config_.train.updates) * config_.train.batch},
        prepared_(prepared.seconds),
        writer_(prepared.executor->beside_host()) {}

  RunStatus work() {
    resume();
    try {
      return train_and_test();
    } catch (const NotFinite& seen) {  // on the valid samples: the last update broke the network
      divergence_ = locate(seen, data_.task).value_or(Divergence{done_, -1, "decoder"});
      return diverged();
    }
  }

 private:
  RunStatus train_and_test() {
    while (true) {
      if (!evaluated_ && evaluation_due()) {
        if (!settle()) return diverged();
        // Before, not after: whatever an evaluation ends in, the updates stand. Resuming evaluates again. A checkpoint
        // takes longer to write than some updates take to make: where the one before is still being written, the
        // next evaluation saves.
        const bool last = begun() == config_.train.updates;
        if (saved_ != done_ && (last || !writer_.busy())) save();
        if (!evaluate_periodically()) return stop();
        // Those who watch can wait for the next one; a checkpoint brings its rows along.
        if (!writer_.busy()) writer_.run(store_.rows_writing());
      }
      if (begun() == config_.train.updates) break;
      if (asked_to_stop()) return settle() ? stop() : diverged();
      begin_update();
      if (!settle(executor_.ahead())) return diverged();
      if (config_.run.checkpoint_every > 0 && begun() % config_.run.checkpoint_every == 0) {
        if (!settle()) return diverged();
        save();
      }
    }
    try {
      Result result = final_result();
      writer_.wait();
      store_.finish(std::move(result), trainer_.weights(), metadata());
    } catch (const Stopped&) {
      return stop();
    }
    return RunStatus::done;
  }

  // Where in the network the outputs of an evaluation of this task cease to be finite; nothing where it cannot be seen.
  std::optional<Divergence> locate(const NotFinite& seen, const TaskConfig& task) {
    constexpr int most_frames = 4096;
    if (seen.frame >= most_frames) return std::nullopt;
    const std::shared_ptr<const Task> measured = make_task(data_, task);
    Batch frames;
    measured->fill(seen.split, static_cast<uint64_t>(seen.sample), 1, frames);
    const TensorBatch batch = to_tensors(std::move(frames), *measured, storage_type(config_.train));
    const at::Tensor input = batch.input.narrow(1, 0, std::min<int64_t>(seen.frame + 1, batch.input.size(1)));
    executor_.release();
    Divergence found = trainer_.locate_forward(input, batch.samples, done_, Trainer::Forward::evaluation);
    return found.tensor.empty() ? std::nullopt : std::optional(std::move(found));
  }

  bool asked_to_stop() const { return hooks_.stop && hooks_.stop(); }

  bool evaluation_due() const {
    if (begun() == config_.train.updates) return true;
    return config_.eval.every > 0 && begun() > 0 && begun() % config_.eval.every == 0;
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

  // What restoring takes for granted.
  CheckpointRules rules() const {
    CheckpointRules out;
    out.tensors = trainer_.state_layout();
    out.fault = [this](const Checkpoint& checkpoint) -> std::string {
      const auto& metadata = checkpoint.file.metadata();
      const auto field = [&](const char* key) {
        const auto found = metadata.find(key);
        return found == metadata.end() ? std::string() : found->second;
      };
      if (checkpoint.update > config_.train.updates) return "more updates than the run has";
      if (field("adam_updates") != std::to_string(checkpoint.update)) return "adam_updates is not its update";
      if (field("evaluated") != "0" && field("evaluated") != "1") return "evaluated is neither 0 nor 1";
      if (metadata.contains("micro_batches") && !micro_batches_of(metadata))
        return "micro_batches does not divide batch";
      return "";
    };
    return out;
  }

  std::optional<int64_t> micro_batches_of(const std::map<std::string, std::string>& metadata) const {
    const auto found = metadata.find("micro_batches");
    const auto value = found == metadata.end() ? std::nullopt : parse_integer(found->second);
    return value && *value >= 1 && config_.train.batch % *value == 0 ? value : std::nullopt;
  }

  // Equal bytes need equal micro-batches: those that the run began with, where they fit.
  void keep_split(std::optional<int64_t> before) {
    const int64_t now = trainer_.micro_batches();
    if (!trainer_.may_split()) {
      if (before && *before != now && hooks_.warning)
        hooks_.warning("train.accumulate is " + std::to_string(now) + ", the updates so far were made with " +
                       std::to_string(*before) + ", and the rest rounds otherwise");
      return;
    }
    if (before && *before > now) trainer_.split(*before);
    if (!hooks_.warning) return;
    if (before && *before < now) {
      hooks_.warning("train.accumulate comes to " + std::to_string(now) + ", the updates so far were made with " +
                     std::to_string(*before) + ": the GPU has less memory free, and the rest rounds otherwise");
    } else if (!before && now > 1) {
      hooks_.warning("train.accumulate comes to " + std::to_string(now) +
                     ": the GPU's memory does not hold more at once");
    }
  }

  void resume() {
    std::vector<std::string> warnings;
    const auto checkpoint = store_.resume(warnings, rules());
    if (hooks_.warning) {
      for (const auto& line : warnings) hooks_.warning(line);
    }
    keep_split(checkpoint ? micro_batches_of(checkpoint->file.metadata()) : std::nullopt);
    if (!checkpoint) return;
    trainer_.restore(checkpoint->file);
    done_ = saved_ = checkpoint->update;
    evaluated_ = checkpoint->file.metadata().at("evaluated") == "1";
    spent_ = Spent::from(checkpoint->file.metadata());
    for (const MetricRow& row : store_.metrics()) {
      for (const auto& [name, value] : row.values) {
        if (row.phase == "valid" && name == "accuracy") valid_ = value;
        if (row.phase == "train" && name == "loss") loss_ = value;
      }
    }
  }

  Spent spent() const {
    Spent out = spent_;
    out.total_seconds += prepared_ + seconds_since(began_);
    return out;
  }

  // A signal that would end the program at once waits for `call`.
  template <class Call>
  void holding_end(const Call& call) {
    const auto tell = [&](bool begins) {
      if (hooks_.saving) hooks_.saving(begins);
    };
    tell(true);
    try {
      call();
    } catch (...) {
      tell(false);
      throw;
    }
    tell(false);
  }

  // `written`: returns when the file is there; else it may be under way.
  void save(bool written = false) {
    auto all = metadata();
    all.merge(spent().metadata());
    all["micro_batches"] = std::to_string(trainer_.micro_batches());
    holding_end([&] {
      if (!writer_.beside()) return store_.save(done_, trainer_.state(), std::move(all));
      writer_.wait();  // its bytes are those of the snapshot before
      Trainer::Snapshot now = trainer_.snapshot();
      writer_.run(
          [write = store_.saving(done_, std::move(now.tensors), std::move(all)), arrived = std::move(now.arrived)] {
            if (arrived) arrived();
            write();
          });
      if (written) writer_.wait();
    });
    saved_ = done_;
  }

  RunStatus stop() {
    save(true);
    return RunStatus::stopped;
  }

  int64_t begun() const { return done_ + static_cast<int64_t>(under_way_.size()); }

  void begin_update() {
    const auto began = Clock::now();
    if (!loader_) {
      loader_ = std::make_unique<Loader>(data_.maker, Split::train, config_.train.batch, begun(), config_.train.updates,
                                         order_);
    }
    const bool for_gpu = !trainer_.device().is_cpu();
    const TensorBatch batch = to_tensors(loader_->next(), *data_.maker, storage_type(config_.train), for_gpu);
    int64_t frames = 0;
    for (int b = 0; b < batch.frames.batch; ++b) frames += batch.frames.real_frames(b);
    under_way_.push_back({executor_.step(batch, begun()), frames});
    evaluated_ = false;
    spent_.train_seconds += seconds_since(began);
  }

  // Waits until at most so many updates are under way, and keeps what came of the others. False: one diverged, and none
  // after it was made.
  bool settle(size_t under_way = 0) {
    while (under_way_.size() > under_way) {
      const auto began = Clock::now();
      const StepFigures step = under_way_.front().handle.read();
      if (!step.finite) {
        under_way_.clear();
        Batch frames;
        data_.maker->fill(Split::train, samples_of_update(order_, config_.train.batch, done_), frames);
        executor_.release();
        const bool for_gpu = !trainer_.device().is_cpu();
        divergence_ =
            trainer_.locate(to_tensors(std::move(frames), *data_.maker, storage_type(config_.train), for_gpu), done_);
        return false;
      }
      loss_ = step.loss;
      store_.add_timing({done_, "train", {{"wall", unix_seconds()}}});
      store_.add({done_, "train", {{"loss", step.loss}, {"grad_norm", step.norm}, {"lr", step.lr}}});
      spent_.frames += static_cast<double>(under_way_.front().frames);
      under_way_.pop_front();
      ++done_;
      spent_.train_seconds += seconds_since(began);
      report("train");
    }
    return true;
  }

  EvaluationRequest request(Split split, int64_t samples) const {
    EvaluationRequest out;
    out.split = split;
    out.samples = samples;
    out.batch = config_.eval.batch;
    out.chunk = config_.eval.chunk;
    out.padding_correct = config_.quirks.padding_correct;
    out.threads = at::get_num_threads();
    out.stop = hooks_.stop;
    return out;
  }

  // What `call` measures, with all of a GPU's memory where it does not do with what training leaves.
  template <class Call>
  auto with_memory(const Call& call) {
    try {
      return call();
    } catch (const c10::OutOfMemoryError&) {
      executor_.release();
    }
    try {
      return call();
    } catch (const c10::OutOfMemoryError&) {
      if (saved_ != done_) save();
      throw bad_input("eval.batch", "the GPU's memory does not hold an evaluation, expected more of it free (the run " +
                                        ("goes on after update " + std::to_string(done_)) +
                                        ") or a smaller number (which is another run), got " +
                                        std::to_string(config_.eval.batch));
    }
  }

  Evaluation run_evaluation(const TaskConfig& task, const EvaluationRequest& request) {
    return with_memory([&] {
      NetworkPredictor predictor(trainer_.network());
      return evaluate(predictor, *make_task(data_, task), request);
    });
  }

  Evaluation evaluate_valid() {
    constexpr double kept_frames = 1 << 23;  // some ten bytes each
    EvaluationRequest ask = request(data_.select, config_.eval.valid_samples);
    const double frames = data_.maker->mean_frames(data_.select) * static_cast<double>(ask.samples);
    if (executor_.beside_host() && frames <= kept_frames) ask.kept = &valid_batches_;
    return run_evaluation(data_.task, ask);
  }

  bool evaluate_periodically() {
    report("valid");
    try {
      last_valid_ = evaluate_valid();
    } catch (const Stopped&) {
      return false;
    }
    valid_ = last_valid_->elements.value();
    MetricRow row{done_, "valid", {{"accuracy", valid_}, {"loss", last_valid_->loss}}};
    if (data_.task.objective == Objective::predict) row.values.emplace_back("kl", last_valid_->kl);
    store_.add(row);
    store_.add_timing({done_, "valid", {{"wall", unix_seconds()}}});
    evaluated_ = true;
    report("evaluated");
    return true;
  }

  void announce(const char* phase) {
    if (asked_to_stop()) throw Stopped{};
    report(phase);
  }

  Result header(const char* status) const {
    const Network& network = trainer_.network();
    Result out;
    out.status = status;
    out.model = config_.model.name;
    out.task = config_.task.task.number;
    out.objective = to_string(config_.task.task.objective);
    const bool whole_bf16 = config_.train.precision == Precision::amp && keeps_bf16(config_);
    out.precision = whole_bf16 ? "bf16" : to_string(config_.train.precision);  // what ran
    out.device = to_string(config_.train.device);
    out.config = config_map(resolved_.canonical);
    out.label = config_.run.label;
    out.run_seed = config_.run.seed;
    out.grammar_seed = config_.grammar.build.seed;
    out.train_seed = config_.train.seed;
    out.width = config_.model.width;
    out.layers = config_.model.layers;
    out.quirks = quirk_names(acting_quirks());
    out.params = network.parameters().count();
    const Taxonomy row = network.mixer(0).taxonomy();
    if (row.action != Taxonomy::Action::cache && row.action != Taxonomy::Action::unknown) {
      out.state_size = row.state_elements;
    }
    out.updates = done_;
    out.samples_seen = done_ * config_.train.batch;
    out.states = data_.language->states();
    out.lr = config_.train.lr;
    out.chance = 1.0 / static_cast<double>(network.config().outputs);
    if (data_.automaton) {
      const double entropy = topological_entropy(*data_.automaton);
      if (std::isfinite(entropy)) out.topological_entropy = entropy;
    }
    return out;
  }

  // Runs that differ in the others alone have one id, and one result.
  Quirks acting_quirks() const {
    RunConfig acting = config_;
    for (const auto& name : idle_keys(config_)) {
      if (name.starts_with("quirks.")) find_config_key(name)->set(acting, false);
    }
    const ModelRow& row = find_model(config_.model.name);
    acting.quirks.delta_bf16 = config_.quirks.delta_bf16 && row.traits.published_in_bf16;
    // Can also be asked for as the model's switch, and most models lack it.
    acting.quirks.double_residual =
        row.find("double_residual") != nullptr && trainer_.network().config().mixer.text("double_residual") == "on";
    return acting.quirks;
  }

  Provenance made() const {
    const Spent all = spent();
    Provenance out = provenance();
    if (!trainer_.device().is_cpu()) out.device = gpu_facts().name;
    out.accumulate = trainer_.micro_batches();
    out.train_seconds = all.train_seconds;
    out.total_seconds = all.total_seconds;
    if (all.train_seconds > 0) out.tokens_per_second = all.frames / all.train_seconds;
    out.finished = utc_now();
    return out;
  }

  Measurement test_at(const TaskConfig& task, int64_t samples, std::optional<int> gap, bool breakdowns) {
    EvaluationRequest ask = request(data_.test, samples);
    ask.breakdowns = breakdowns && task.objective == Objective::state;
    Measurement out = measurement(run_evaluation(task, ask), data_.test, task, gap, breakdowns);
    announce("ceiling");
    out.ceiling =
        measured_ceiling(data_, task, data_.test, config_.eval.ceiling_samples, at::get_num_threads(), hooks_.stop);
    return out;
  }

  // Nothing where the outputs are not finite there: what else was found stands, and so do the weights.
  std::optional<Measurement> tested(const TaskConfig& task, int64_t samples, std::optional<int> gap, bool breakdowns) {
    try {
      return test_at(task, samples, gap, breakdowns);
    } catch (const NotFinite& seen) {
      const std::string at = gap ? ", gap " + std::to_string(*gap) : "";
      std::string place;
      if (const auto found = locate(seen, task)) {
        place = (found->layer < 0 ? ", " : ", layer " + std::to_string(found->layer) + ", ") + found->tensor;
      }
      if (hooks_.warning) {
        hooks_.warning(seen.what() + at + place + "; the result has no accuracy of " + to_string(seen.split) + at);
      }
      return std::nullopt;
    }
  }

  Result final_result() {
    Result out = header("done");
    if (!last_valid_) {
      announce("valid");
      last_valid_ = evaluate_valid();
      report("evaluated");
    }
    out.valid = measurement(*last_valid_, data_.select, data_.task, std::nullopt, false);
    announce("test");
    out.test = tested(data_.task, config_.eval.test_samples, std::nullopt, true);
    for (const int gap : config_.eval.gaps) {
      announce("grid");
      auto point = tested(with_gap(data_.task, data_.test, gap), config_.eval.grid_samples, gap, false);
      if (point) out.grid.push_back(std::move(*point));
    }
    announce("records");
    add_records(out);
    out.made = made();
    return out;
  }

  // What cannot be had any more once the weights are gone.
  void add_records(Result& out) {
    const Network& network = trainer_.network();
    GateRequest ask;
    ask.split = data_.test;
    ask.samples = affordable_gate_samples(network, data_, data_.task, data_.test,
                                          std::min<int64_t>(50, config_.eval.test_samples));
    ask.batch = config_.eval.batch;
    ask.chunk = config_.eval.chunk;
    ask.type = storage_type(config_.train);
    ask.stop = hooks_.stop;
    GateReport gates = with_memory([&] { return record_gates(network, data_, data_.task, ask); });
    if (!gates.figures.gates.empty()) out.gates = std::move(gates.figures);
    out.decays = std::move(gates.decays);
    out.samples =
        with_memory([&] { return record_samples(network, data_, data_.test, config_.eval.chunk, hooks_.stop); });
    out.baselines = measured_baselines(data_, out.samples_seen, config_.eval.test_samples, at::get_num_threads(),
                                       hooks_.stop, hooks_.warning);
  }

  RunStatus diverged() {
    Result out = header("diverged");
    out.divergence = DivergenceFigure{divergence_.update, divergence_.layer, divergence_.tensor};
    out.made = made();
    writer_.wait();
    store_.finish(std::move(out), {});
    return RunStatus::diverged;
  }

  const RunConfig& config_;
  const ResolvedConfig& resolved_;
  RunStore& store_;
  const TrainHooks& hooks_;
  const RunData& data_;
  Trainer& trainer_;
  Executor& executor_;
  const SampleOrder order_;
  std::unique_ptr<Loader> loader_;
  std::deque<UnderWay> under_way_;
  std::deque<Batch> valid_batches_;  // made once where the host has other things to do
  std::optional<Evaluation> last_valid_;
  Divergence divergence_;
  int64_t done_ = 0;        // updates made and read
  int64_t saved_ = -1;      // those of the last checkpoint
  bool evaluated_ = false;  // after the last one begun
  double loss_ = 0, valid_ = -1;
  Spent spent_;            // total_seconds: of the processes before this one
  const double prepared_;  // seconds before `began_`
  const Clock::time_point began_ = Clock::now();
  Writer writer_;  // last: what it writes lies in the others
};

}  // namespace

PreparedRun::PreparedRun(const ResolvedConfig& resolved) : PreparedRun(resolved, Clock::now()) {}

PreparedRun::PreparedRun(const ResolvedConfig& resolved, Clock::time_point began)
    : config((check_dropout(resolved.values), resolved)),
      data(make_data(config.values)),
      trainer(config.values, data),
      executor(trainer.device().is_cpu() ? std::make_unique<CpuExecutor>(trainer) : gpu_executor(trainer)) {
  executor->expect(config.values.train.batch, data.maker->longest(Split::train), data.maker->shape().channels);
  seconds = seconds_since(began);
}

RunStatus train(PreparedRun& run, RunStore& store, const TrainHooks& hooks) {
  return Run(run, store, hooks).work();
}

}  // namespace sb
