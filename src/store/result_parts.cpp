#include "store/result_parts.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "store/baseline_file.h"
#include "tasks/ceiling.h"
#include "tasks/ngram.h"

namespace sb {
namespace {

std::vector<AccuracyBin> bins(const std::vector<Share>& shares, double width) {
  std::vector<AccuracyBin> out;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].total > 0) out.push_back({static_cast<double>(i) * width, shares[i].value(), shares[i].total});
  }
  return out;
}

}  // namespace

Result result_header(const ResolvedConfig& run, const RunData& data, int64_t updates) {
  const RunConfig& config = run.values;
  Result out;
  out.model = config.model.name;
  out.task = config.task.task.number;
  out.objective = data.task->objective();
  out.precision = to_string(config.train.precision);
  out.device = to_string(config.train.device);
  out.config = config_map(run.canonical);
  out.label = config.run.label;
  out.run_seed = config.run.seed;
  out.grammar_seed = config.grammar.build.seed;
  out.train_seed = config.train.seed;
  out.width = config.model.width;
  out.layers = config.model.layers;
  out.updates = updates;
  out.samples_seen = updates * config.train.batch;
  out.states = data.task->states();
  out.lr = config.train.lr;
  out.topological_entropy = data.task->topological_entropy();
  return out;
}

Measurement measurement(const Evaluation& evaluation, Split split, const Task& task,
                        const std::optional<TestPoint>& point, bool breakdowns) {
  Measurement out;
  out.split = to_string(split);
  if (point) {
    if (point->axis != "gap") out.axis = point->axis;
    out.at = point->at;
  }
  out.samples = evaluation.samples;
  out.elements = evaluation.elements.total;
  out.frames = evaluation.frames;
  out.accuracy = evaluation.elements.value();
  out.stderr_ = evaluation.stderr_;
  out.loss = std::max(0.0, evaluation.loss);  // probabilities rounded to float can exceed 1 by a little
  if (task.has_law()) out.kl = evaluation.kl;
  if (task.shape().loss == Loss::squared_error) out.mse = out.loss;
  if (!breakdowns || out.mse) return out;
  for (size_t i = 0; i < evaluation.by_position.size() && i < recorded_positions; ++i) {
    const Share& s = evaluation.by_position[i];
    out.by_position.push_back(s.total == 0 ? std::nullopt : std::optional(s.value()));
  }
  out.by_gap_frame = bins(evaluation.by_gap_frame, 1);
  out.by_since_certain = bins(evaluation.by_since_certain, 1);
  out.by_entropy = bins(evaluation.by_entropy, kEntropyBin);
  for (size_t c = 0; c < evaluation.confusion.size(); ++c) {
    const Confusion& n = evaluation.confusion[c];
    if (n.right + n.same_symbol + n.other_symbol == 0) continue;
    out.confusion.push_back({static_cast<int>(c), n.right, n.same_symbol, n.other_symbol});
  }
  return out;
}

std::optional<CeilingFigure> measured_ceiling(const Task& task, Split split, int64_t samples, int threads,
                                              const std::function<bool()>& stop) {
  const bool squared = task.shape().loss == Loss::squared_error;
  if (samples == 0 || (squared ? !task.estimator(split) : !task.oracle(split))) return std::nullopt;
  CeilingRequest ask;
  ask.progress = [&](uint64_t) {
    if (stop && stop()) throw Stopped{};
  };
  ask.split = split;
  ask.samples = static_cast<uint64_t>(samples);
  ask.threads = threads;
  CeilingFigure out;
  out.samples = samples;
  const auto take = [&](const auto& ceiling) {
    out.accuracy = ceiling.accuracy;
    out.stderr_ = ceiling.stderr_;
    out.upper_bound = ceiling.upper_bound;
    out.exact = ceiling.exact;
  };
  if (squared) {
    const ErrorCeiling ceiling = error_ceiling(task, ask);
    out.mse = ceiling.mse;
    out.stderr_ = ceiling.stderr_;
  } else if (task.has_law()) {
    const PredictCeiling ceiling = predict_ceiling(task, ask);
    take(ceiling);
    out.kl = std::max(0.0, ceiling.kl);
  } else {
    const Ceiling ceiling = exact_ceiling(task, ask);
    if (ceiling.asked == 0) return std::nullopt;
    take(ceiling);
  }
  return out;
}

std::optional<BaselineFigures> measured_baselines(const RunData& data, const BaselineRequest& request) {
  const std::unique_ptr<NgramSource> source = data.task->ngrams();
  if (!source) return std::nullopt;
  NgramRequest ask;
  ask.train_samples = std::min(static_cast<uint64_t>(request.train_samples), most_counted_samples(*source));
  ask.valid = data.select;
  ask.valid_samples = static_cast<uint64_t>(request.valid_samples);
  ask.test = Split::test;
  ask.test_samples = static_cast<uint64_t>(request.test_samples);
  ask.threads = request.threads;
  ask.poll = [&] {
    if (request.stop && request.stop()) throw Stopped{};
  };
  const std::string of =
      formatted("{}train = {}\nvalid = {} {}\ntest = {} {}\n", source->canonical_text(), ask.train_samples,
                to_string(ask.valid), ask.valid_samples, to_string(ask.test), ask.test_samples);
  const auto warn = [&](const std::exception& error, const char* what) {
    if (request.warning) request.warning(std::string(error.what()) + what);
  };
  std::optional<BaselineFigures> out;
  if (!request.root.empty()) out = load_baselines(request.root, of);
  if (!out) {
    NgramFigures found;
    try {
      found = count_ngrams(*source, ask);
    } catch (const std::exception& error) {  // missing baselines must not lose a trained network
      warn(error, "; the result has no baselines");
      return std::nullopt;
    }
    out.emplace();
    out->majority = found.majority;
    out->n_gram.assign(found.test.begin(), found.test.end());
    out->n = found.n;
    if (request.test_samples > 1) out->n_gram_stderr = found.stderr_;
    out->train_samples = static_cast<int64_t>(ask.train_samples);
    out->test_samples = request.test_samples;
    try {
      if (!request.root.empty()) save_baselines(request.root, of, *out);
    } catch (const Error& error) {
      warn(error, "; the next run counts its n-grams again");
    }
  }
  if (data.task->hides_symbols()) {
    out->n_gram.clear();
    out->n.reset();
    out->n_gram_stderr.reset();
  }
  return out;
}

std::string accuracy_text(const Measurement& measurement, bool with_loss) {
  const auto figure = [](double value, double error, int64_t samples) {
    if (samples == 1) return fixed(value, 4) + " over 1 sample";  // which has no spread
    return fixed(value, 4) + " (s.e. " + fixed(error, 4) + ") over " + std::to_string(samples) + " samples";
  };
  std::string out = (measurement.mse ? "mean squared error " : "accuracy ") +
                    figure(measurement.score(), measurement.stderr_, measurement.samples);
  if (with_loss && !measurement.mse) out += ", loss " + fixed(measurement.loss, 4);
  if (measurement.kl) out += ", KL " + fixed(*measurement.kl, 4);
  if (!measurement.ceiling) return out;
  const CeilingFigure& c = *measurement.ceiling;
  if (c.mse) return out + ", bound " + figure(*c.mse, c.stderr_, c.samples);
  return out + (c.exact ? ", ceiling " : ", upper bound ") +
         figure(c.exact ? c.accuracy : c.upper_bound, c.stderr_, c.samples);
}

std::vector<std::string> quirk_names(const Quirks& quirks) {
  std::vector<std::string> out;
  if (quirks.delta_bf16) out.emplace_back("delta_bf16");
  if (quirks.padding_correct) out.emplace_back("padding_correct");
  if (quirks.sum_accumulated) out.emplace_back("sum_accumulated");
  if (quirks.first_lr_zero) out.emplace_back("first_lr_zero");
  if (quirks.select_on_test) out.emplace_back("select_on_test");
  return out;
}

}  // namespace sb
